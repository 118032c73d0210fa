import { ControllerError } from '../../src/errors.ts';
import { identityFault } from '../../src/labels.ts';
import type { Envelope, InvalidMessage } from '../../src/tunnel/tunnel.ts';
import { WireFault, WireValue } from './wire-value.ts';

export const MAX_PAYLOAD_BYTES = 1024 * 1024;
/** Maximum size of a heartbeat, and of the question for the baseline: a real one has 200 to 300 bytes. */
export const MAX_HEART_BYTES = 16 * 1024;
/** Maximum size of an answer of a base without a VNode. A real health has 2 KiB, and 110 bytes for each module. */
export const MAX_UNPROVEN_BYTES = 64 * 1024;

/** Throws where a command is longer than a message may be. */
export function assertSendable(byteLength: number): void {
  if (byteLength <= MAX_PAYLOAD_BYTES) return;
  const reason = `it has ${byteLength} bytes, ${MAX_PAYLOAD_BYTES} are allowed`;
  throw new ControllerError('Tunnel.NotConnected', `command not sent: ${reason}`);
}

/** The sender of a payload, by its topic or connection. */
export type Source = Pick<Envelope, 'tunnel' | 'identity'>;

export type Parsed<T> = { readonly message: T; readonly invalid?: never } | { readonly invalid: InvalidMessage };

/** Takes from a foreign value what the controller uses; one of the functions in `read.ts`. */
export type Read<T> = (value: WireValue) => T;

/** What MQTT wraps around every message. */
export interface Published<T> {
  readonly publishedAt: number | undefined;
  readonly data: T;
}

/** JSON text as `read` understands it. Never throws. */
export function parse<T>(source: Source, payload: Uint8Array, read: Read<T>, maxBytes = MAX_PAYLOAD_BYTES): Parsed<T> {
  if (payload.byteLength > maxBytes) {
    return invalid(source, `payload has ${payload.byteLength} bytes, ${maxBytes} are allowed`);
  }
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString('utf8'));
  } catch {
    // The parser's own words quote the payload, which may hold secrets.
    return invalid(source, 'payload is not JSON');
  }
  try {
    return { message: read(new WireValue(value)) };
  } catch (error) {
    if (error instanceof WireFault) return invalid(source, error.message);
    throw error;
  }
}

/** The latest instant a Date can hold. */
const MAX_TIME_MS = 8.64e15;

export function published<T>(read: Read<T>): Read<Published<T>> {
  return (value) => {
    const timestamp = value.field('publishTimestamp');
    const publishedAt = timestamp.optionalNumber();
    if (publishedAt !== undefined && Math.abs(publishedAt) > MAX_TIME_MS) throw timestamp.fault('is not a time');
    return { publishedAt, data: read(value.field('data')) };
  };
}

/** Why nothing of this source can be taken; undefined when it can. */
export function sourceFault(source: Source): InvalidMessage | undefined {
  const fault = identityFault(source.identity);
  if (fault === undefined) return undefined;
  return { ...source, code: 'Arklet.InvalidIdentity', message: `identity ${fault}` };
}

/** Whether the identity that a payload claims is its source's. */
export function claimFault(source: Source, claimed: string): InvalidMessage | undefined {
  if (claimed === source.identity) return undefined;
  return {
    ...source,
    code: 'Arklet.IdentityMismatch',
    message: `payload names ${JSON.stringify(claimed)}`,
  };
}

function invalid(source: Source, message: string): { readonly invalid: InvalidMessage } {
  return { invalid: { ...source, code: 'Arklet.InvalidMessage', message } };
}
