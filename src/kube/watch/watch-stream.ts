import type { Clock } from '../../clock.ts';
import { ControllerError } from '../../errors.ts';
import type { KubeObject } from '../objects.ts';
import { WorkSlice } from './work-slice.ts';

/** etcd takes 1.5 MiB for an object; in JSON a byte of it may be six, such as `\u003c`. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
const NEWLINE = 0x0a;

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
  /** Asked first: true where it takes the line as it is, which is then not parsed. */
  readonly takesLine: (line: Buffer) => boolean;
  /** A line that cannot be used, in words. */
  readonly onUnreadable: (why: string) => void;
}

/**
 * Reads a watch to its end. An over-long line is left out, since it would come again as it is; one that is no JSON
 * was damaged on its way, so the watch is given up with `Kube.WatchFailed` and its events come once more.
 * What `onEvent` throws is not caught here.
 */
export async function readWatchStream(options: WatchStreamOptions): Promise<void> {
  const { body, clock, onBytes, onEvent, takesLine, onUnreadable } = options;
  const splitter = new LineSplitter(MAX_LINE_BYTES, () => onUnreadable(`longer than ${MAX_LINE_BYTES} bytes`));
  const slice = new WorkSlice(clock);
  for await (const chunk of body) {
    onBytes();
    for (const line of splitter.push(chunk)) {
      if (takesLine(line)) continue;
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

/**
 * Cuts a byte stream into lines. Works on bytes, so that a chunk may end inside a character, and copies only the
 * lines that span chunks. What follows the last newline is an unfinished event and is never given out.
 */
export class LineSplitter {
  readonly #maxLineBytes: number;
  readonly #onOverlong: () => void;
  /** The start of a line whose end has not come. */
  #parts: Buffer[] = [];
  #partsLength = 0;
  #isSkipping = false;

  /**
   * `onOverlong` is called for a line over `maxLineBytes`, which is left out: it would be as long in the next watch.
   */
  constructor(maxLineBytes: number, onOverlong: () => void) {
    this.#maxLineBytes = maxLineBytes;
    this.#onOverlong = onOverlong;
  }

  /** The lines that `chunk` completes, without their newlines; empty lines are left out. */
  push(chunk: Buffer): Buffer[] {
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      const line = this.#finish(chunk.subarray(start, end));
      if (line.length > 0) lines.push(line);
      start = end + 1;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
    return lines;
  }

  /** Empty for a line that is left out. */
  #finish(last: Buffer): Buffer {
    this.#keep(last);
    const parts = this.#parts;
    this.#parts = [];
    this.#partsLength = 0;
    this.#isSkipping = false;
    return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
  }

  #keep(part: Buffer): void {
    if (this.#isSkipping) return;
    this.#partsLength += part.length;
    if (this.#partsLength <= this.#maxLineBytes) {
      this.#parts.push(part);
      return;
    }
    this.#parts = [];
    this.#isSkipping = true;
    this.#onOverlong();
  }
}
