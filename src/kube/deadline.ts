import type { Clock, Timer } from '../clock.ts';

/** An abort signal that fires with another one, or after a time. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #timer: Timer;
  readonly #outer: AbortSignal | undefined;
  readonly #onOuterAbort = (): void => this.#abort('aborted');
  #reason: string | undefined;
  #reject: ((error: unknown) => void) | undefined;

  constructor(clock: Clock, timeoutMs: number, outer: AbortSignal | undefined) {
    this.#timer = clock.setTimer(() => this.#abort(`no whole answer within ${timeoutMs} ms`), timeoutMs);
    this.#outer = outer;
    if (outer?.aborted) this.#onOuterAbort();
    else outer?.addEventListener('abort', this.#onOuterAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Why `signal` was aborted, in words. */
  get reason(): string | undefined {
    return this.#reason;
  }

  /** `work`, or a rejection as soon as `signal` is aborted: undici does not let go of a request that it only queues. */
  bound<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      work.then(resolve, reject);
      if (this.signal.aborted) reject(this.signal.reason);
    });
  }

  /** Stops the time; the other signal still aborts. */
  clear(): void {
    this.#timer.cancel();
  }

  /** Lets go of the other signal, which may live as long as the process. */
  unlink(): void {
    this.#outer?.removeEventListener('abort', this.#onOuterAbort);
  }

  #abort(reason: string): void {
    this.#reason = reason;
    this.#timer.cancel();
    const error = new Error(reason);
    this.#controller.abort(error);
    this.#reject?.(error);
  }
}
