import { monitorEventLoopDelay } from 'node:perf_hooks';
import { messageOf } from '../../src/errors.ts';
import { numberText } from './report.ts';
import { type CaseResult, type CaseRun, resultOf } from './result.ts';
import type { BenchCase, Measurement, Stage, Suite } from './suite.ts';
import { UsageMeter } from './usage.ts';

const PAUSE_RESOLUTION_MS = 10;

export interface RunnerOptions {
  readonly runs: number;
  readonly bases: number;
  /** Empty: all. */
  readonly cases: readonly string[];
  readonly onProgress: (line: string) => void;
  /** Whoever interrupts closes it. */
  readonly onStage: (stage: Stage) => void;
}

/** Runs the cases as often as asked, each run on a new stage. A case that fails ends its run, not the others. */
export async function runSuite<S extends Stage>(suite: Suite<S>, options: RunnerOptions): Promise<CaseResult[]> {
  const isWanted = ({ name }: BenchCase<S>): boolean => options.cases.length === 0 || options.cases.includes(name);
  const steps = suite.steps.map((step) => step.filter(isWanted)).filter((step) => step.length > 0);
  const runs = new Map<BenchCase<S>, CaseRun[]>(steps.flat().map((benchCase) => [benchCase, []]));
  for (let run = 1; run <= options.runs; run++) {
    const onProgress = (line: string): void => options.onProgress(`run ${run}/${options.runs}: ${line}`);
    const stage = suite.open({ bases: options.bases, onProgress });
    options.onStage(stage);
    try {
      for (const step of steps) {
        const done = await runStep(step, { stage, run, onProgress });
        for (const [benchCase, of] of done) runs.get(benchCase)?.push(of);
        if (done.some(([, { failure }]) => failure !== undefined)) break;
      }
    } finally {
      await stage.close();
    }
  }
  return [...runs].map(([benchCase, of]) => resultOf(benchCase, of));
}

interface StepOptions<S> {
  readonly stage: S;
  readonly run: number;
  readonly onProgress: (line: string) => void;
}

async function runStep<S extends Stage>(
  step: readonly BenchCase<S>[],
  options: StepOptions<S>,
): Promise<[BenchCase<S>, CaseRun][]> {
  const { stage, run, onProgress } = options;
  try {
    await prepareAll(step, options);
    return await Promise.all(step.map(async (one) => [one, await runCase(one, options)] as [BenchCase<S>, CaseRun]));
  } catch (error) {
    onProgress(`FAILED: ${messageOf(error)}`);
    return step.map((one) => [one, failedRun(run, error)]);
  } finally {
    for (const benchCase of step) await benchCase.finish?.(stage);
  }
}

async function prepareAll<S>(step: readonly BenchCase<S>[], { stage, onProgress }: StepOptions<S>): Promise<void> {
  // One that fails leaves the others to their end: the stage is not closed under their hands.
  const prepared = await Promise.allSettled(
    step.map((benchCase) => {
      onProgress(`${benchCase.name}: preparing`);
      return benchCase.prepare(stage);
    }),
  );
  const failed = prepared.find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
}

async function runCase<S>(benchCase: BenchCase<S>, { stage, run, onProgress }: StepOptions<S>): Promise<CaseRun> {
  const { name, figures } = benchCase;
  onProgress(`${name}: measuring`);
  const meter = new UsageMeter(benchCase.watched(stage));
  const pauses = monitorEventLoopDelay({ resolution: PAUSE_RESOLUTION_MS });
  pauses.enable();
  const startedAt = performance.now();
  try {
    const { values, details = {} } = await benchCase.measure(stage);
    const tookSeconds = Math.round((performance.now() - startedAt) / 100) / 10;
    onProgress(`${name}: ${wordsOf(figures, values)}`);
    const usage = meter.read(benchCase.watched(stage));
    return { run, tookSeconds, values, details, usage, pauseMs: Math.round(pauses.max / 1e6) - PAUSE_RESOLUTION_MS };
  } catch (error) {
    onProgress(`${name} FAILED: ${messageOf(error)}`);
    return failedRun(run, error);
  } finally {
    pauses.disable();
  }
}

function failedRun(run: number, error: unknown): CaseRun {
  return { run, tookSeconds: 0, values: {}, details: {}, usage: [], pauseMs: 0, failure: messageOf(error) };
}

function wordsOf(figures: BenchCase<never>['figures'], values: Measurement['values']): string {
  const parts = Object.entries(figures).map(([key, { text, unit }]) => {
    return `${text} ${numberText(values[key] ?? Number.NaN)} ${unit}`.trimEnd();
  });
  return parts.join('; ');
}
