import fs from 'node:fs';
import { type DestinationStream, type Logger, type LoggerOptions, pino, stdSerializers, stdTimeFunctions } from 'pino';
import { redactUrls } from './redact-url.ts';

export type { Logger } from 'pino';

/** How long a line waits for others, and how many characters do not wait. */
const GATHER_MS = 50;
const GATHER_LENGTH = 4_096;
/** How many characters wait while nobody reads. Later lines are dropped. */
const MAX_WAITING_LENGTH = 1_048_576;
/** A pipe that is full may not block; it is tried again this soon. */
const FULL_PIPE_MS = 100;

export interface GatheredOutputOptions {
  /** `Clock.setTimer`. */
  readonly later: (callback: () => void, delayMs: number) => void;
  /** A file descriptor. Default: that of standard output. */
  readonly fd?: number;
  /** Default: that of Node. */
  readonly write?: (
    fd: number,
    part: Buffer,
    done: (error: NodeJS.ErrnoException | null, count: number) => void,
  ) => void;
  /** Called when lines are taken again, with the number of those that were dropped. */
  readonly onDropped: (lines: number) => void;
}

/**
 * Writes log lines together: with a write for each of them, they took a twentieth of the CPU time of a burst. The process
 * goes on when nobody reads. What waits is written when the process exits, and is lost when it is killed.
 */
export function gatheredOutput(options: GatheredOutputOptions): DestinationStream & { flushSync(): void } {
  const output = new GatheredOutput(options);
  process.once('exit', () => output.flushSync());
  return output;
}

class GatheredOutput implements DestinationStream {
  readonly #options: Required<GatheredOutputOptions>;
  #waiting = '';
  #dropped = 0;
  #isAwaited = false;
  #isWriting = false;
  /** Nobody will ever read again. */
  #isClosed = false;

  constructor(options: GatheredOutputOptions) {
    this.#options = { fd: 1, write: fs.write, ...options };
  }

  write(line: string): void {
    if (this.#isClosed) return;
    if (this.#waiting.length + line.length > MAX_WAITING_LENGTH) {
      this.#dropped++;
      return;
    }
    this.#waiting += line;
    if (this.#waiting.length >= GATHER_LENGTH) this.#next();
    if (this.#isAwaited) return;
    this.#isAwaited = true;
    this.#options.later(() => {
      this.#isAwaited = false;
      this.#next();
    }, GATHER_MS);
  }

  /** pino calls it after a fatal line. What a full pipe does not take then is lost. */
  flushSync(): void {
    let rest = Buffer.from(this.#take());
    try {
      while (rest.length > 0) rest = rest.subarray(fs.writeSync(this.#options.fd, rest));
    } catch {
      // Nobody is left to hear of it.
    }
  }

  #next(): void {
    if (this.#isWriting || this.#waiting === '') return;
    this.#isWriting = true;
    this.#write(Buffer.from(this.#take()));
  }

  #take(): string {
    const taken = this.#waiting;
    this.#waiting = '';
    return taken;
  }

  #write(part: Buffer): void {
    const { fd, write, later } = this.#options;
    write(fd, part, (error, count) => {
      if (error?.code === 'EAGAIN') {
        later(() => this.#write(part), FULL_PIPE_MS);
      } else if (error?.code === 'EPIPE') {
        this.#isClosed = true;
        this.#take();
      } else if (!error && count < part.length) {
        this.#write(part.subarray(count));
      } else {
        this.#written(part, !error);
      }
    });
  }

  #written(part: Buffer, isTaken: boolean): void {
    this.#isWriting = false;
    if (!isTaken) this.#dropped += part.toString().split('\n').length - 1; // a disk that is full
    const isDue = !this.#isAwaited || this.#waiting.length >= GATHER_LENGTH;
    if (isDue) this.#next();
    const lines = this.#dropped;
    if (!isTaken || lines === 0) return;
    this.#dropped = 0;
    this.#options.onDropped(lines);
  }
}

/**
 * JSON lines on stdout, or where `destination` writes: a constant message, everything else in fields, errors under
 * `err`, times in ISO 8601. No line shows the secrets of a URL.
 */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  const options: LoggerOptions = {
    level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    // The plain serializer repeats the words of the cause inside the message.
    serializers: { err: stdSerializers.errWithCause },
    // The whole line: the words of a base or of the API server may be in any field and in any error.
    hooks: { streamWrite: (line) => redactUrls(withoutCredentials(line)) },
  };
  return destination === undefined ? pino(options) : pino(options, destination);
}

const CREDENTIAL = /^(?:password|tokens?|authorization)$/i;
/**
 * A field with a credential, as it stands in a line. Nearly no line has one, and to look is cheaper than to have pino
 * redact each.
 */
const HAS_CREDENTIAL = /"(?:password|tokens?|authorization)":/i;

/** A line without the values of fields that are named like credentials, at any depth. */
function withoutCredentials(line: string): string {
  if (!HAS_CREDENTIAL.test(line)) return line;
  const hidden = (key: string, value: unknown): unknown => (CREDENTIAL.test(key) ? '[Redacted]' : value);
  return `${JSON.stringify(JSON.parse(line, hidden))}\n`;
}

/** Logger for tests and for parts that are built without a log. */
export const silentLogger: Logger = pino({ level: 'silent' });
