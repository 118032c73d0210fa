import type { Stage } from './stage.ts';

export interface StepContext {
  readonly stage: Stage;
  /** Aborted when the step's time is over. */
  readonly signal: AbortSignal;
  /** What is not yet as it should be; shown when the step fails. */
  lastSeen: readonly string[];
}

export interface Step {
  readonly name: string;
  /** The step may take as long as it needs. Default false. */
  readonly isUnlimited?: boolean;
  /** What a user would type for it. Default: the step is nothing that a user does. */
  readonly command?: () => string;
  run(context: StepContext): Promise<void>;
}

/** A step that was not seen to succeed. */
export class StepFailure extends Error {
  readonly step: string;
  readonly lastSeen: readonly string[];

  constructor(step: string, { reason, lastSeen }: { reason: string; lastSeen: readonly string[] }) {
    super(`${step}: ${reason}`);
    this.step = step;
    this.lastSeen = lastSeen;
  }
}

/** Resolves when `check` finds no fault: asked now, and again at each change. Ends unsettled with the step. */
export function untilFaultless(context: StepContext, check: () => readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const look = (): void => {
      try {
        context.lastSeen = check();
      } catch (error) {
        end();
        reject(error);
        return;
      }
      if (context.lastSeen.length > 0) return;
      end();
      resolve();
    };
    const stopListening = context.stage.onChange(look);
    const end = (): void => {
      stopListening();
      context.signal.removeEventListener('abort', end);
    };
    context.signal.addEventListener('abort', end, { once: true });
    look();
  });
}

/** Runs one step; throws StepFailure when its time is over, when it throws, or when a controller ends. */
export async function runStep(step: Step, { stage, timeoutMs }: { stage: Stage; timeoutMs: number }): Promise<void> {
  const over = new AbortController();
  const context: StepContext = { stage, signal: over.signal, lastSeen: [] };
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    if (step.isUnlimited) return;
    timer = setTimeout(() => reject(new Error(`not seen within ${timeoutMs / 1000} s`)), timeoutMs);
  });
  try {
    const racing = [step.run(context), timeout];
    for (const process of stage.processes) racing.push(process.failWhenEnded());
    await Promise.race(racing);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StepFailure(step.name, { reason, lastSeen: context.lastSeen });
  } finally {
    clearTimeout(timer);
    over.abort();
  }
}
