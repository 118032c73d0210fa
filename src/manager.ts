import { type Clock, sleep } from './clock.ts';
import type { Logger } from './logger.ts';

/** A part with a life of its own: works until `signal` is aborted and resolves when it has ended. */
export interface Runnable {
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
  /** Resolves when the parts of the next group may start. Default: at once. */
  whenReady?(signal: AbortSignal): Promise<unknown>;
}

export interface ManagerOptions {
  /** Started in this order, stopped in the reverse one. */
  readonly groups: readonly (readonly Runnable[])[];
  /** Started after all groups, side by side, each group by group: one that waits holds up no other. Default none. */
  readonly branches?: readonly (readonly (readonly Runnable[])[])[];
  /** All groups together have this long to stop. */
  readonly graceMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

interface Running {
  readonly controller: AbortController;
  readonly ended: Promise<unknown>;
}

/** Starts and stops the parts in order. A part that fails takes the process down: half a controller is none. */
export class Manager {
  readonly #options: ManagerOptions;
  readonly #running: Running[] = [];
  #failure: { error: unknown } | undefined;

  constructor(options: ManagerOptions) {
    this.#options = options;
  }

  /** Resolves when all has stopped after `signal`; rejects, also then, with the error of the part that failed. */
  async run(signal: AbortSignal): Promise<void> {
    const stopping = new AbortController();
    const stop = (): void => stopping.abort();
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    const { groups, branches = [] } = this.#options;
    await this.#startAll(groups, stopping);
    await Promise.all(branches.map((branch) => this.#startAll(branch, stopping)));
    await aborted(stopping.signal);
    await this.#stop();
    if (this.#failure) throw this.#failure.error;
  }

  async #startAll(groups: readonly (readonly Runnable[])[], stopping: AbortController): Promise<void> {
    for (const group of groups) {
      if (stopping.signal.aborted) return;
      await this.#start(group, stopping);
    }
  }

  async #start(group: readonly Runnable[], stopping: AbortController): Promise<void> {
    const controller = new AbortController();
    const ended = group.map(async (part) => {
      try {
        await part.run(controller.signal);
        if (!controller.signal.aborted) throw new Error(`${part.name} ended unexpectedly`);
      } catch (error) {
        this.#options.logger.error({ part: part.name, err: error }, 'part failed, stopping');
        this.#failure ??= { error };
        stopping.abort();
      }
    });
    this.#running.push({ controller, ended: Promise.all(ended) });
    try {
      // A part may wait for what never comes.
      await Promise.race([
        Promise.all(group.map((part) => part.whenReady?.(stopping.signal))),
        aborted(stopping.signal),
      ]);
    } catch (error) {
      this.#failure ??= { error };
      stopping.abort();
    }
  }

  async #stop(): Promise<void> {
    const { clock, graceMs, logger } = this.#options;
    const over = new AbortController();
    const grace = sleep(clock, graceMs, over.signal).then(() => 'over' as const);
    for (const { controller, ended } of this.#running.reverse()) {
      controller.abort();
      if ((await Promise.race([ended, grace])) === 'over') logger.warn('a part did not stop within the grace period');
    }
    over.abort();
  }
}

/** Resolves when `signal` is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
