/** As often as the controller renews by default, and as many together. */
export const RENEWAL_MS = 10_000;
export const TICK_MS = 500;

const SLOTS = RENEWAL_MS / TICK_MS;
/**
 * A lease comes 3.5 s behind the one before it. 7 and the number of slots have no common factor: all slots are used,
 * and a few leases are spread as well.
 */
const STRIDE = 7;

/** Which leases are to be renewed when: all of them once in each period, at any moment about as many. */
export class LeaseSweep {
  /** Never emptied, as no base ever goes. */
  readonly #slots: readonly string[][] = Array.from({ length: SLOTS }, () => []);
  #added = 0;
  #lastTick: number;

  constructor(nowMs: number) {
    this.#lastTick = tickOf(nowMs);
  }

  add(path: string): void {
    this.#slots[(this.#added * STRIDE) % SLOTS]?.push(path);
    this.#added += 1;
  }

  /** Those whose turn has come since the last call: by the clock, for a timer under load is late each time. */
  due(nowMs: number): string[] {
    const tick = tickOf(nowMs);
    const first = Math.max(this.#lastTick + 1, tick - SLOTS + 1);
    this.#lastTick = tick;
    const due: string[] = [];
    for (let passed = first; passed <= tick; passed++) due.push(...(this.#slots[passed % SLOTS] ?? []));
    return due;
  }
}

function tickOf(nowMs: number): number {
  return Math.floor(nowMs / TICK_MS);
}
