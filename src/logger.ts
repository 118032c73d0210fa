import { type Logger, pino, stdSerializers, stdTimeFunctions } from 'pino';

export type { Logger } from 'pino';

/** JSON lines on stdout: a constant message, everything else in fields, errors under `err`, times in ISO 8601. */
export function createLogger(level: string): Logger {
  return pino({
    level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    // The plain serializer repeats the words of the cause inside the message.
    serializers: { err: stdSerializers.errWithCause },
    redact: ['*.password', '*.token', '*.tokens', 'headers.authorization'],
  });
}

/** For tests and for parts that are built without a log. */
export const silentLogger: Logger = pino({ level: 'silent' });
