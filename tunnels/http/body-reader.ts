import type { Readable } from 'node:stream';

export interface BodyReaderOptions {
  /** Maximum size of all bodies that have begun and not ended, together. It is more than one body may have. */
  readonly maxBytes: number;
  /** A body of this source was dropped, since there is no room for all. */
  readonly onDropped: (source: string) => void;
}

export interface BodyOptions {
  /** Source that the body comes from. */
  readonly source: string;
  readonly maxBytes: number;
}

interface Body {
  /** Its first `length` bytes have come. */
  bytes: Buffer;
  length: number;
  readonly drop: () => void;
}

/** The body has not ended, and the oldest ones had to make room. */
export class BodyDropped extends Error {
  constructor() {
    super('too much is under way that has not ended');
  }
}

/** Most bodies are shorter. */
const MIN_BYTES = 1024;

/**
 * Reads bodies in bounded memory, though a sender may stop in the middle: when all together take too much, the one
 * that began first is dropped. A body of an honest sender is whole within milliseconds.
 */
export class BodyReader {
  readonly #options: BodyReaderOptions;
  /** Those that have begun, the oldest first; emptied by their ends. */
  readonly #bodies = new Set<Body>();
  #byteLength = 0;

  constructor(options: BodyReaderOptions) {
    this.#options = options;
  }

  /** Memory that bodies take which have not ended; 0 at rest. */
  get byteLength(): number {
    return this.#byteLength;
  }

  /**
   * Resolves with the whole body, or with one byte more than it may have. Rejects with `BodyDropped`, or where the
   * stream breaks. The caller ends the stream, which may have more.
   */
  read(stream: Readable, { source, maxBytes }: BodyOptions): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      if (stream.destroyed) {
        reject(new Error('it was cut off'));
        return;
      }
      const end = (): void => {
        stream.off('data', onData).off('end', end).off('close', onClose);
        this.#forget(body);
        resolve(body.bytes.subarray(0, body.length));
      };
      const fail = (error: Error): void => {
        stream.off('data', onData).off('end', end).off('close', onClose).pause();
        this.#forget(body);
        reject(error);
      };
      const onClose = (): void => fail(new Error('it was cut off'));
      const onData = (chunk: Uint8Array): void => {
        this.#append(body, chunk, maxBytes + 1);
        if (body.length <= maxBytes) return;
        end();
        stream.pause();
      };
      const drop = (): void => {
        fail(new BodyDropped());
        this.#options.onDropped(source);
      };
      const body: Body = { bytes: Buffer.alloc(0), length: 0, drop };
      // It stays: whoever ends the stream later may cause another error.
      stream.on('error', fail);
      stream.on('data', onData).on('end', end).on('close', onClose);
    });
  }

  /** Copies: a chunk may be a single byte of a large buffer, and thousands of those take much more than their bytes. */
  #append(body: Body, chunk: Uint8Array, maxBytes: number): void {
    const length = Math.min(body.length + chunk.byteLength, maxBytes);
    const { byteLength } = body.bytes;
    if (length > byteLength) this.#grow(body, Math.max(length, Math.min(2 * byteLength, maxBytes), MIN_BYTES));
    body.bytes.set(chunk.subarray(0, length - body.length), body.length);
    body.length = length;
  }

  #grow(body: Body, size: number): void {
    const { bytes, length } = body;
    // Not of the pool, where a small part keeps the whole.
    body.bytes = Buffer.allocUnsafeSlow(size);
    body.bytes.set(bytes.subarray(0, length));
    this.#byteLength += size - bytes.byteLength;
    this.#bodies.add(body);
    this.#makeRoom();
  }

  #makeRoom(): void {
    for (const body of this.#bodies) {
      if (this.#byteLength <= this.#options.maxBytes) return;
      body.drop();
    }
  }

  #forget(body: Body): void {
    if (this.#bodies.delete(body)) this.#byteLength -= body.bytes.byteLength;
  }
}
