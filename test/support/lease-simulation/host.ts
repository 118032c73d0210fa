import type { Clock, Timer } from '../../../src/clock.ts';
import type { Dice, Timeline } from './timeline.ts';

const WALL_START = Date.parse('2026-01-01T00:00:00.000Z');
/** After it was stopped, a process works off what has come meanwhile within so long. */
const CATCH_UP_MS = 3;
/** Less would be nothing to a number that counts the ms of a whole run. */
const MIN_WAIT_MS = 1e-3;
/** For so long after it goes on, it is looked at between any two microtasks. */
const WATCHED_MS = 5;
/** A suspend that the wall clock hides, set back by as much within this time, is outside of what is promised. */
const HIDDEN_WITHIN_MS = 15_000;
/** A step by more is longer than all suspends of a run together: it hides none. */
const MAX_HIDING_STEP_MS = 1_200_000;
/** Resolution of the system clock's `bootTime`. */
const BOOT_TIME_STEP_MS = 10;

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
  #wallSetBackAt = Number.NEGATIVE_INFINITY;
  #suspendedUntil = Number.NEGATIVE_INFINITY;
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

  /** When its machine last went on after a suspend. */
  get suspendedUntil(): number {
    return this.#suspendedUntil;
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

  bootTime(): number {
    const bootMs = this.#offset + this.#rate * this.timeline.now;
    return bootMs - (bootMs % BOOT_TIME_STEP_MS);
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
    const isHidden = this.timeline.now - this.#wallSetBackAt < HIDDEN_WITHIN_MS;
    if (isSuspended && !isHidden) this.#stalledAt = this.timeline.now;
  }

  resume(): void {
    if (!this.#isStopped) return;
    if (this.#stalledAt !== undefined) {
      this.#stalledMs += this.timeline.now - this.#stalledAt;
      this.#suspendedUntil = this.timeline.now;
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
    if (ms < 0 && ms > -MAX_HIDING_STEP_MS) {
      if (this.#stalledAt !== undefined || this.timeline.now - this.#suspendedUntil < HIDDEN_WITHIN_MS) return;
      this.#wallSetBackAt = this.timeline.now;
    }
    this.#wallShiftMs += ms;
  }

  kill(): void {
    this.#isDead = true;
    this.#waiting = [];
  }
}
