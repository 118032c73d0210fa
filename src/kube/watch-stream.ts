import type { Clock } from '../clock.ts';
import { ControllerError } from '../errors.ts';
import { LineSplitter } from './line-splitter.ts';
import type { KubeObject } from './objects.ts';
import { WorkSlice } from './work-slice.ts';

const MAX_LINE_BYTES = 2 * 1024 * 1024;

export interface WatchEvent {
  readonly type: string;
  /** For an ERROR a `Status`. */
  readonly object: KubeObject;
}

export interface WatchStreamOptions {
  readonly body: AsyncIterable<Buffer>;
  readonly clock: Clock;
  /** Sign of life: called for each chunk. */
  readonly onBytes: () => void;
  readonly onEvent: (event: WatchEvent) => Promise<void> | undefined;
  /** A line that cannot be used, in words. */
  readonly onUnreadable: (why: string) => void;
}

/**
 * Reads a watch to its end. An over-long line is left out, since it would come again as it is; one that is no JSON
 * was damaged on its way, so the watch is given up with `Kube.WatchFailed` and its events come once more.
 * What `onEvent` throws is not caught here.
 */
export async function readWatchStream(options: WatchStreamOptions): Promise<void> {
  const { body, clock, onBytes, onEvent, onUnreadable } = options;
  const splitter = new LineSplitter(MAX_LINE_BYTES, () => onUnreadable(`longer than ${MAX_LINE_BYTES} bytes`));
  const slice = new WorkSlice(clock);
  for await (const chunk of body) {
    onBytes();
    for (const line of splitter.push(chunk)) {
      const pending = onEvent(parseLine(line, onUnreadable));
      if (pending !== undefined) await pending;
      if (slice.isOver()) await slice.yield();
    }
  }
}

function parseLine(line: Buffer, onUnreadable: (why: string) => void): WatchEvent {
  let event: unknown;
  try {
    event = JSON.parse(line.toString('utf8'));
  } catch {
    // The parser's message may quote the object.
    onUnreadable('not JSON');
    throw new ControllerError('Kube.WatchFailed', 'a line of the watch is not JSON');
  }
  if (isWatchEvent(event)) return event;
  onUnreadable('not a watch event');
  throw new ControllerError('Kube.WatchFailed', 'a line of the watch is not a watch event');
}

function isWatchEvent(value: unknown): value is WatchEvent {
  if (typeof value !== 'object' || value === null) return false;
  const { type, object } = value as Partial<WatchEvent>;
  if (typeof type !== 'string' || typeof object !== 'object' || object === null) return false;
  return type === 'ERROR' || typeof object.metadata === 'object';
}
