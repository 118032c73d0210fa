import type { Clock } from '../../clock.ts';
import { backoffMs, CONTAINER_BACKOFF } from '../../queue/backoff.ts';

/** Time without a replacement after which the delays start again. */
const RESET_MS = 600_000;

interface Replacement {
  readonly revision: string;
  readonly count: number;
  readonly at: number;
}

/**
 * How fast Pods that have ended (Failed or Succeeded) are replaced: at once, then after 10 s, 20 s, up to 5 min. All
 * that have ended by then are replaced together. A new template does not wait for the delay of the former one.
 */
export class EndedPods {
  readonly #clock: Clock;
  /** The last replacement, by the UID of the ModuleDeployment. Emptied by `forget`. */
  readonly #replacements = new Map<string, Replacement>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  forget(uid: string): void {
    this.#replacements.delete(uid);
  }

  /** After how many ms they may be replaced; 0: now. */
  waitMs(uid: string, revision: string): number {
    const last = this.#lastOf(uid, revision);
    return last === undefined ? 0 : Math.max(0, last.at + backoffMs(last.count, CONTAINER_BACKOFF) - this.#clock.now());
  }

  /** They are being replaced: the next ones have to wait. */
  replaced(uid: string, revision: string): void {
    const { count = 0 } = this.#lastOf(uid, revision) ?? {};
    this.#replacements.set(uid, { revision, count: count + 1, at: this.#clock.now() });
  }

  #lastOf(uid: string, revision: string): Replacement | undefined {
    const last = this.#replacements.get(uid);
    return last?.revision === revision && this.#clock.now() - last.at < RESET_MS ? last : undefined;
  }
}
