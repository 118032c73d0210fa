/** Lists that nobody asked for are read at most this often for each base. */
const LIST_INTERVAL_MS = 1_000;
/** Answers that may still come. A question that is never answered must not add up. */
const MAX_OPEN_QUESTIONS = 2;

/**
 * Which lists of a base are read. MQTT has no request ids, so a list that comes after a question counts as its answer
 * and is read at once. Pure: the caller brings the time.
 */
export class ListLimit {
  #readAt = Number.NEGATIVE_INFINITY;
  #openQuestions = 0;
  #isSkipped = false;

  /** The base is asked for its list. */
  asked(): void {
    this.#openQuestions = Math.min(MAX_OPEN_QUESTIONS, this.#openQuestions + 1);
  }

  /** Whether a list that comes now is read; one that is skipped stays unread. */
  admit(now: number): boolean {
    if (now - this.#readAt < LIST_INTERVAL_MS) {
      if (this.#openQuestions === 0) {
        this.#isSkipped = true;
        return false;
      }
      this.#openQuestions--;
    }
    this.#readAt = now;
    this.#isSkipped = false;
    return true;
  }

  /** A list was read and could not be taken: the base has to be asked again. */
  refused(): void {
    this.#isSkipped = true;
  }

  /** Whether the base has to be asked for the list that it sent last, which was not taken. Once for each. */
  takeSkipped(now: number): boolean {
    if (!this.#isSkipped || now - this.#readAt < LIST_INTERVAL_MS) return false;
    this.#isSkipped = false;
    return true;
  }
}
