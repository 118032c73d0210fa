import { type DestinationStream, type Logger, type LoggerOptions, pino, stdSerializers, stdTimeFunctions } from 'pino';
import { redactUrls } from './redact-url.ts';

export type { Logger } from 'pino';

/** How long a line waits for others, and how many characters do not wait. */
const GATHER_MS = 50;
const GATHER_LENGTH = 4_096;

/** `Clock.setTimer`. */
type Later = (callback: () => void, delayMs: number) => void;

/**
 * Where log lines go together: with a write for each of them, they took a twentieth of the CPU time of a burst. What
 * waits is written when the process exits, and is lost when it is killed. `fd`: a file descriptor, by default that of
 * standard output.
 */
export function gatheredOutput(later: Later, fd = 1): DestinationStream & { flushSync(): void } {
  const output = pino.destination({ fd, sync: false });
  let lines = '';
  let isAwaited = false;
  const hand = (): void => {
    if (lines !== '') output.write(lines);
    lines = '';
  };
  /** pino calls it after a fatal line. */
  const flushSync = (): void => {
    hand();
    output.flushSync();
  };
  process.once('exit', flushSync);
  return {
    write(line: string): void {
      lines += line;
      if (lines.length >= GATHER_LENGTH) hand();
      if (isAwaited) return;
      isAwaited = true;
      later(() => {
        isAwaited = false;
        hand();
      }, GATHER_MS);
    },
    flushSync,
  };
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
/** Of a field, as it stands in a line. Nearly no line has one, and to look is cheaper than to have pino redact each. */
const HAS_CREDENTIAL = /"(?:password|tokens?|authorization)":/i;

/** A line without the values of fields that are named like credentials, at any depth. */
function withoutCredentials(line: string): string {
  if (!HAS_CREDENTIAL.test(line)) return line;
  const hidden = (key: string, value: unknown): unknown => (CREDENTIAL.test(key) ? '[Redacted]' : value);
  return `${JSON.stringify(JSON.parse(line, hidden))}\n`;
}

/** For tests and for parts that are built without a log. */
export const silentLogger: Logger = pino({ level: 'silent' });
