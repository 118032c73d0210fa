import { MAX_BATCH_MESSAGES, MAX_TEXT_BYTES } from './member-batch.ts';

/** A message of a base on its way to other members. */
export interface WaitingMessage {
  /** A newer message of the same key stands in for this one. */
  readonly key: string;
  /** As it is in a batch. */
  readonly text: string;
  readonly byteLength: number;
  /** Our monotonic clock when the base said it. */
  readonly heardAt: number;
}

/** Far more bases than one controller has. */
const MAX_MESSAGES = 10_000;
const MAX_BYTES = 16 * 1024 * 1024;

/** Messages in the order in which they were said, of each key the newest. There is room for some thousands. */
export class NewestMessages {
  readonly #byKey = new Map<string, WaitingMessage>();
  #byteLength = 0;

  get size(): number {
    return this.#byKey.size;
  }

  /** Returns how many of the oldest had to make room. */
  put(message: WaitingMessage): number {
    this.#delete(this.#byKey.get(message.key));
    this.#byKey.set(message.key, message);
    this.#byteLength += message.byteLength;
    return this.#deleteWhile(() => this.size > MAX_MESSAGES || this.#byteLength > MAX_BYTES);
  }

  /** Returns how many were heard before `time` and are gone. */
  dropBefore(time: number): number {
    return this.#deleteWhile(({ heardAt }) => heardAt < time);
  }

  /** The oldest, as many as a batch may have. */
  takeBatch(): WaitingMessage[] {
    const batch: WaitingMessage[] = [];
    let byteLength = 0;
    for (const message of this.#byKey.values()) {
      byteLength += message.byteLength;
      // A single one always fits: its body was taken by the same listener, with a lower limit.
      if (batch.length === MAX_BATCH_MESSAGES || byteLength > MAX_TEXT_BYTES) break;
      batch.push(message);
      this.#delete(message);
    }
    return batch;
  }

  takeAll(): WaitingMessage[] {
    const all = [...this.#byKey.values()];
    this.#byKey.clear();
    this.#byteLength = 0;
    return all;
  }

  #deleteWhile(isToGo: (oldest: WaitingMessage) => boolean): number {
    let count = 0;
    for (const oldest of this.#byKey.values()) {
      if (!isToGo(oldest)) break;
      this.#delete(oldest);
      count++;
    }
    return count;
  }

  #delete(message: WaitingMessage | undefined): void {
    if (message === undefined) return;
    this.#byKey.delete(message.key);
    this.#byteLength -= message.byteLength;
  }
}
