import type { ModuleCommand, ModuleKey } from '../tunnel/module.ts';
import type { Envelope } from '../tunnel/tunnel.ts';
import { isBefore } from './record-transitions.ts';

/** When a message was sent or asked for, as far as its transport shows. */
export type MessageTimes = Partial<Pick<Envelope, 'publishedAt' | 'askedAt'>>;

/** An answer that comes again later than this after a newer one is not known to be old any more. */
const REMEMBER_MS = 60_000;

/** Answers that are remembered; beyond that the oldest are forgotten. */
const MAX_RESULTS = 4_000;

/**
 * Distinguishes old messages of a base from new ones, by the base's own clock or by when they were requested. "At least
 * once" means that a message may come again, long after what it says has changed.
 */
export class MessageOrder {
  #newestPublishedAt: number | undefined;
  #newestListAt: number | undefined;
  #listedAt = Number.NEGATIVE_INFINITY;
  /** The newest answer about each module. Pruned as newer answers come. */
  readonly #results = new Map<ModuleKey, { readonly command: ModuleCommand; readonly publishedAt: number }>();

  /** When the newest list was asked for, as far as is known. */
  get listedAt(): number {
    return this.#listedAt;
  }

  /** Another process, maybe with another clock, has been heard. */
  restart(publishedAt: number | undefined): void {
    this.#newestPublishedAt = publishedAt;
    this.#results.clear();
  }

  /** Whether a list is older than the newest message, or that one again; else it is the newest from now on. */
  isOldList({ publishedAt, askedAt }: MessageTimes): boolean {
    if (askedAt !== undefined && askedAt < this.#listedAt) return true;
    const isRepeated = publishedAt !== undefined && publishedAt === this.#newestListAt;
    if (isRepeated || isBefore(publishedAt, this.#newestPublishedAt)) return true;
    this.#newestListAt = publishedAt;
    this.#newestPublishedAt = publishedAt ?? this.#newestPublishedAt;
    return false;
  }

  listTaken(askedAt: number): void {
    this.#listedAt = askedAt;
  }

  /**
   * Whether an answer is the newest one about a module heard again, or an older one; else it is the newest. Two
   * commands may be answered within one millisecond.
   */
  isOldResult(key: ModuleKey, command: ModuleCommand, publishedAt: number | undefined): boolean {
    if (publishedAt === undefined) return false;
    const newest = this.#results.get(key);
    const isRepeated = newest?.publishedAt === publishedAt && newest.command === command;
    if (isRepeated || isBefore(publishedAt, newest?.publishedAt)) return true;
    for (const [other, result] of this.#results) {
      const isRecent = Math.abs(publishedAt - result.publishedAt) <= REMEMBER_MS;
      if (isRecent && this.#results.size < MAX_RESULTS) break;
      this.#results.delete(other);
    }
    // At the end: the oldest come first.
    this.#results.delete(key);
    this.#results.set(key, { command, publishedAt });
    return false;
  }
}
