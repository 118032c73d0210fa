import type { Clock } from '../../src/clock.ts';
import { notConnected } from './failures.ts';

export interface CommandSlotsOptions {
  readonly clock: Clock;
  /** How many may work at a time for one key. */
  readonly size: number;
  /** What takes a place, to be read after `size`: `commands were running on the base`. */
  readonly what: string;
}

interface Line {
  busy: number;
  /** In order. */
  readonly waiting: Set<Waiter>;
}

interface Waiter {
  readonly admit: () => void;
  readonly refuse: (reason: string) => void;
}

/** CommandSlots to work at, some for each key. One key never waits for another. */
export class CommandSlots {
  readonly #options: CommandSlotsOptions;
  /** A line goes when nobody works or waits in it. */
  readonly #lines = new Map<string, Line>();

  constructor(options: CommandSlotsOptions) {
    this.#options = options;
  }

  /** How many keys have somebody at work. */
  get lineCount(): number {
    return this.#lines.size;
  }

  /** Resolves with what gives the place back. Rejects with `Tunnel.NotConnected` after `maxWaitMs`. */
  take(key: string, maxWaitMs: number): Promise<() => void> {
    const line = this.#lines.get(key) ?? { busy: 0, waiting: new Set() };
    this.#lines.set(key, line);
    let isHeld = true;
    const release = (): void => {
      if (isHeld) this.#release(key, line);
      isHeld = false;
    };
    if (line.busy < this.#options.size) {
      line.busy++;
      return Promise.resolve(release);
    }
    return this.#wait(line, release, maxWaitMs);
  }

  /** Nobody waits any longer. */
  giveUp(reason: string): void {
    for (const { waiting } of this.#lines.values()) for (const { refuse } of [...waiting]) refuse(reason);
  }

  #wait(line: Line, release: () => void, maxWaitMs: number): Promise<() => void> {
    const { clock, size, what } = this.#options;
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        timer.cancel();
        line.waiting.delete(waiter);
      };
      const waiter: Waiter = {
        admit: () => {
          leave();
          resolve(release);
        },
        refuse: (reason) => {
          leave();
          reject(notConnected(reason));
        },
      };
      const timer = clock.setTimer(() => waiter.refuse(`${size} ${what} for ${Math.round(maxWaitMs)} ms`), maxWaitMs);
      line.waiting.add(waiter);
    });
  }

  /** The place goes on to whoever waits longest. */
  #release(key: string, line: Line): void {
    const [next] = line.waiting;
    if (next) next.admit();
    else if (--line.busy === 0) this.#lines.delete(key);
  }
}
