import { type DestinationStream, type Logger, type LoggerOptions, pino, stdSerializers, stdTimeFunctions } from 'pino';
import { redactUrls } from './redact-url.ts';

export type { Logger } from 'pino';

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
    redact: ['*.password', '*.token', '*.tokens', 'headers.authorization'],
    // The whole line: the words of a base or of the API server may be in any field and in any error.
    hooks: { streamWrite: redactUrls },
  };
  return destination === undefined ? pino(options) : pino(options, destination);
}

/** For tests and for parts that are built without a log. */
export const silentLogger: Logger = pino({ level: 'silent' });
