import { ListLimit } from '../module/list-limit.ts';

/** List and health are asked for this long after the last operation: a kubelet looks at its node every 10 s. */
const REFRESH_AFTER_MS = 4_000;
/** And this long after the first one at the latest. */
const REFRESH_WITHIN_MS = 60_000;

/** What a base was asked, and when it is asked again. The BaseInquirer changes it. */
export class BaseQuestions {
  /** Which lists of the base are read. The VNodeController admits lists; the LivenessController asks for skipped ones. */
  readonly lists = new ListLimit();
  #healthAskedAt = Number.NEGATIVE_INFINITY;
  #healthDueAt = Number.POSITIVE_INFINITY;
  #refresh: { readonly at: number; readonly latestAt: number } | undefined;

  get healthAskedAt(): number {
    return this.#healthAskedAt;
  }

  /** When a question about its health is due that came too soon after another one. */
  get healthDueAt(): number {
    return this.#healthDueAt;
  }

  /** When list and health should be asked for, as after operations, and when at the latest. */
  get refresh(): { readonly at: number; readonly latestAt: number } | undefined {
    return this.#refresh;
  }

  healthAsked(now: number): void {
    this.#healthAskedAt = now;
    this.#healthDueAt = Number.POSITIVE_INFINITY;
  }

  postponeHealth(time: number): void {
    this.#healthDueAt = time;
  }

  /** List and health are asked for at this time at the latest. */
  refreshBy(time: number): void {
    const { at, latestAt } = this.#refresh ?? { at: time, latestAt: time };
    this.#refresh = { at: Math.min(at, time), latestAt: Math.min(latestAt, time) };
  }

  /** List and health are asked for now. */
  refreshAsked(now: number): void {
    if (this.#refresh && this.#refresh.at <= now) this.#refresh = undefined;
  }

  /** List and health change with an operation: one question follows several operations. */
  refreshAfterOperation(now: number): void {
    const { latestAt } = this.#refresh ?? { latestAt: now + REFRESH_WITHIN_MS };
    this.#refresh = { at: Math.min(now + REFRESH_AFTER_MS, latestAt), latestAt };
  }

  /** Forgets the questions of a former leader. */
  changeLeader(): void {
    this.#healthAskedAt = Number.NEGATIVE_INFINITY;
    this.#healthDueAt = Number.POSITIVE_INFINITY;
    this.#refresh = undefined;
  }
}
