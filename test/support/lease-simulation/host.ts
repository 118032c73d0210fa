import type { Clock, Timer } from '../../../src/clock.ts';
import type { Dice, Timeline } from './timeline.ts';

const WALL_START = Date.parse('2026-01-01T00:00:00.000Z');
/** After it was stopped, a process works off what has come meanwhile within so long. */
const CATCH_UP_MS = 3;
/** Less would be nothing to a number that counts the ms of a whole run. */
const MIN_WAIT_MS = 1e-3;
/** For so long after it goes on, it is looked at between any two microtasks. */
const WATCHED_MS = 5;
/** Both clocks wrong within such a time is more than anybody can bear. */
const BOTH_WRONG_MS = 15_000;

export interface HostOptions {
  readonly timeline: Timeline;
  readonly dice: Dice;
  /** Of its monotonic clock: seconds of its own in one true second. */
  readonly rate: number;
}

/** What a process runs on: a clock that is not quite right, and a scheduler that may stop it at any moment. */
export class Host implements Clock {
  readonly timeline: Timeline;
  readonly #dice: Dice;
  readonly #rate: number;
  readonly #offset: number;
  #wallShiftMs = 0;
  #wallSteppedAt = Number.NEGATIVE_INFINITY;
  #sleptUntil = Number.NEGATIVE_INFINITY;
  #jumpedAt = Number.NEGATIVE_INFINITY;
  #stalledMs = 0;
  #stalledAt: number | undefined;
  /** Asked for very often. */
  #wallTime = new Date(0);
  #isDead = false;
  #isStopped = false;
  #resumedAt = Number.NEGATIVE_INFINITY;
  /** What has come while it was stopped. */
  #waiting: (() => void)[] = [];

  constructor({ timeline, dice, rate }: HostOptions) {
    this.timeline = timeline;
    this.#dice = dice;
    this.#rate = rate;
    this.#offset = Math.round(dice.below(1e6));
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** When its two clocks began to tell different times. */
  get jumpedAt(): number {
    return this.#jumpedAt;
  }

  get resumedAt(): number {
    return this.#resumedAt;
  }

  get isCatchingUp(): boolean {
    return !this.#isDead && this.timeline.now - this.#resumedAt < WATCHED_MS;
  }

  /** What it would be asked, if it were to go on this moment: a clock does not stop with SIGSTOP. */
  now(): number {
    const stalledMs = this.#stalledMs + (this.#stalledAt === undefined ? 0 : this.timeline.now - this.#stalledAt);
    return this.#offset + this.#rate * (this.timeline.now - stalledMs);
  }

  wallTime(): Date {
    const wallMs = Math.floor(WALL_START + this.timeline.now + this.#wallShiftMs);
    if (this.#wallTime.getTime() !== wallMs) this.#wallTime = new Date(wallMs);
    return this.#wallTime;
  }

  /** As those of Node, which counts in whole milliseconds: up to two of them early. */
  setTimer(callback: () => void, delayMs: number): Timer {
    const dueAt = Math.floor(this.now()) + Math.max(1, Math.trunc(delayMs));
    let isCancelled = false;
    const wait = (): void => this.timeline.after(Math.max(MIN_WAIT_MS, (dueAt - this.now()) / this.#rate), fire);
    const fire = (): void => {
      if (isCancelled || this.#isDead) return;
      // A clock that stands still says when it goes on.
      if (this.#stalledAt !== undefined) this.#waiting.push(fire);
      else if (this.now() < dueAt) wait();
      else this.deliver(() => isCancelled || callback());
    };
    wait();
    return {
      cancel: () => {
        isCancelled = true;
      },
    };
  }

  /** An input. It waits while the process is stopped. */
  deliver(input: () => void): void {
    if (this.#isDead) return;
    if (this.#isStopped) this.#waiting.push(input);
    else input();
  }

  /** SIGSTOP; `isSuspended`: the machine sleeps, and its monotonic clock with it. */
  stop(isSuspended: boolean): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    if (isSuspended && this.timeline.now - this.#wallSteppedAt > BOTH_WRONG_MS) this.#stalledAt = this.timeline.now;
  }

  resume(): void {
    if (!this.#isStopped) return;
    if (this.#stalledAt !== undefined) {
      this.#stalledMs += this.timeline.now - this.#stalledAt;
      this.#jumpedAt = this.timeline.now;
      this.#sleptUntil = this.timeline.now;
    }
    this.#stalledAt = undefined;
    this.#isStopped = false;
    this.#resumedAt = this.timeline.now;
    const waiting = this.#dice.shuffled(this.#waiting);
    this.#waiting = [];
    const stepMs = this.#dice.below(CATCH_UP_MS) / (waiting.length + 1);
    for (const [index, input] of waiting.entries()) this.timeline.after(index * stepMs, () => this.deliver(input));
  }

  stepWallClock(ms: number): void {
    if (this.#stalledAt !== undefined || this.timeline.now - this.#sleptUntil < BOTH_WRONG_MS) return;
    this.#wallShiftMs += ms;
    this.#wallSteppedAt = this.timeline.now;
    this.#jumpedAt = this.timeline.now;
  }

  kill(): void {
    this.#isDead = true;
    this.#waiting = [];
  }
}
