import { randomUUID } from 'node:crypto';
import type { Clock } from '../../src/clock.ts';

/** Messages of the controller to itself that have not come back. */
export class LinkProbe {
  readonly #clock: Clock;
  /** Waiting probes by message id; emptied by the echo, by the timeout and by `giveUp`. */
  readonly #waiting = new Map<string, (isBack: boolean) => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether the id handed to `send` comes to `onEcho` within `timeoutMs`. Any number may run at once. */
  run(send: (id: string) => void, timeoutMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const id = randomUUID();
      const finish = (isBack: boolean): void => {
        timer.cancel();
        this.#waiting.delete(id);
        resolve(isBack);
      };
      const timer = this.#clock.setTimer(() => finish(false), timeoutMs);
      this.#waiting.set(id, finish);
      send(id);
    });
  }

  /** Another's message, or one of a probe that is over, means nothing. */
  onEcho(payload: Uint8Array): void {
    this.#waiting.get(new TextDecoder().decode(payload))?.(true);
  }

  /** The link is down: no echo can come. */
  giveUp(): void {
    for (const finish of [...this.#waiting.values()]) finish(false);
  }
}
