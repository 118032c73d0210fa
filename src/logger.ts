import { type DestinationStream, type Logger, type LoggerOptions, pino, stdSerializers, stdTimeFunctions } from 'pino';
import { redactUrls } from './redact-url.ts';

export type { Logger } from 'pino';

/** Maximum time that a line waits for others, and the number of waiting bytes that end the wait. */
const GATHER_MS = 200;
const GATHER_BYTES = 4_096;
/** How many bytes wait while nobody reads. Later lines are dropped. */
const MAX_WAITING_BYTES = 1_048_576;

export interface GatheredOutputOptions {
  /** A file descriptor. Default: that of standard output. */
  readonly fd?: number;
  /** Called when lines are taken again, with the number of those that were dropped. */
  readonly onDropped: (lines: number) => void;
}

/**
 * Writes log lines together: with a write for each of them, they took a twentieth of the CPU time of a burst. The process
 * goes on when nobody reads. What waits is written when the process exits, and is lost when it is killed.
 */
export function gatheredOutput({
  fd = 1,
  onDropped,
}: GatheredOutputOptions): DestinationStream & { flushSync(): void } {
  let isEnding = false;
  let dropped = 0;
  const output = pino.destination({
    fd,
    sync: false,
    minLength: GATHER_BYTES,
    maxLength: MAX_WAITING_BYTES,
    periodicFlush: GATHER_MS,
    // A synchronous write would wait for a reader for ever.
    retryEAGAIN: () => !isEnding,
  });
  output.on('drop', () => {
    dropped += 1;
  });
  output.on('write', () => {
    if (dropped === 0) return;
    const lines = dropped;
    dropped = 0;
    onDropped(lines);
  });
  // A full disk: the lines wait for the next write. pino gives up an output whose reader has gone.
  output.on('error', () => {});
  const flushSync = output.flushSync.bind(output);
  // pino calls it after a fatal line, and when the process exits.
  output.flushSync = () => {
    isEnding = true;
    try {
      flushSync();
    } catch {
      // Nobody is left to hear of it.
    } finally {
      isEnding = false;
    }
  };
  return output;
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
