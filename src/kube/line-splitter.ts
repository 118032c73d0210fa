const NEWLINE = 0x0a;

/**
 * Cuts a byte stream into lines. Works on bytes, so that a chunk may end inside a character, and copies only the
 * lines that span chunks. What follows the last newline is an unfinished event and is never given out.
 */
export class LineSplitter {
  readonly #maxLineBytes: number;
  readonly #onOverlong: () => void;
  /** The beginning of a line whose end has not come. */
  #parts: Buffer[] = [];
  #partsLength = 0;
  #isSkipping = false;

  /** A line over `maxLineBytes` is left out and told to `onOverlong`: it would be as long in the next watch. */
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
