import type { Clock } from '../../clock.ts';
import type { Logger } from '../../logger.ts';
import type { RestLane, RestRequest } from '../transport/rest-lane.ts';
import type { WatchEvent } from './watch-event.ts';

export type RelistReason = 'gone' | 'rolled-back' | 'silent' | 'no-streaming-list' | 'paused';

/** What a list and its watch bring, in order. */
export interface ReflectorSink {
  /** A list starts: what an unfinished one before it has brought is void. */
  onListStart(): void;
  /** A change of the list that is running (`isListed`), or of the cache. */
  onChange(event: WatchEvent, isListed: boolean): void;
  /** The version of an event that the cache has already, read from its line; undefined for every other line. */
  takeKnown(line: Buffer): string | undefined;
  /** The list is whole. `rolledBack`: it is older than what was seen before. */
  onListed(rolledBack: boolean): Promise<void>;
  /** Everything up to this version was handed over. */
  onProgress(resourceVersion: string): void;
  /** A sign of life of the watch: the server has taken it, or something has come. */
  onAlive(): void;
  /** A line of the watch that cannot be used. */
  onUnreadable(why: string): void;
  onRelist(reason: RelistReason): void;
}

export interface ReflectorOptions {
  readonly lane: RestLane;
  readonly path: string;
  readonly query: NonNullable<RestRequest['query']>;
  /** Number of objects in a page of a list that is not streamed. Default: see `listPages`. */
  readonly pageSize?: number | undefined;
  /** A watch on which nothing comes for this long is replaced. Default: twice the time from bookmark to bookmark. */
  readonly silenceMs: number | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: () => number;
  readonly sink: ReflectorSink;
}

export interface WatchStreamOptions {
  readonly body: AsyncIterable<Buffer>;
  readonly clock: Clock;
  /** Sign of life: called for each chunk. */
  readonly onBytes: () => void;
  readonly onEvent: (event: WatchEvent) => Promise<void> | undefined;
  /** Asked first: true where it takes the line as it is, which is then not parsed. */
  readonly takesLine: (line: Buffer) => boolean;
  /** A line that cannot be used, in words. */
  readonly onUnreadable: (why: string) => void;
}
