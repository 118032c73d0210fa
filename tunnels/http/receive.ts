import { sourceOf } from '../../src/ip-address.ts';
import type { AddressPolicy } from '../../src/tunnel/address-policy.ts';
import type { Envelope, InvalidMessage, TunnelHandler } from '../../src/tunnel/tunnel.ts';
import { baseInfoOf, isGoingDown } from '../arklet/convert.ts';
import { MAX_HEART_BYTES, type Parsed, parse, type Read, type Source, sourceFault } from '../arklet/parse.ts';
import { readBaseMetadata, readHttpHeart } from '../arklet/read.ts';
import { baseKeyOf } from './addresses.ts';

/** What a base posts. */
export const MESSAGE_TYPES = ['heart', 'queryBaseline'] as const;
export type MessageType = (typeof MESSAGE_TYPES)[number];

/** Facts about an accepted message. */
export interface Accepted {
  /** Its kind and its base, the address included: a newer message of the same key makes it worthless. */
  readonly key: string;
  readonly identity: string;
  /** It came from the address that it names. */
  readonly isFromBase: boolean;
  /** Unlike a heartbeat, which the base repeats. */
  readonly isSaidOnce: boolean;
}

/** What a message comes with. */
export interface Reception {
  /** The sender's canonical address stands in for the identity until the payload names it. */
  readonly source: Source;
  readonly payload: Uint8Array;
  readonly handler: TunnelHandler;
  readonly policy: AddressPolicy;
  /** Called before the handler is. */
  readonly onAccepted?: ((accepted: Accepted) => void) | undefined;
}

/** Hands a base's message to the handler, or says why it cannot. */
export function receive(type: MessageType, reception: Reception): InvalidMessage | undefined {
  return type === 'heart' ? receiveHeart(reception) : receiveBaselineQuery(reception);
}

function receiveHeart({ source, payload, handler, policy, onAccepted }: Reception): InvalidMessage | undefined {
  const read = readFrom(source, payload, readHttpHeart, (heart) => heart.baseMetadata.identity);
  if (read.invalid) return read.invalid;
  const { message, envelope } = read;
  const fault = policy.faultOf(message.localIP);
  if (fault !== undefined) {
    const { tunnel, identity, sender } = envelope;
    return { tunnel, identity, sender, code: 'Arklet.AddressRefused', message: `localIP ${message.localIP} ${fault}` };
  }
  const base = baseInfoOf(message);
  const isGoodbye = isGoingDown(message);
  // A false message from elsewhere must not replace the true one on its way to other members.
  const isFromBase = base.ip === source.identity;
  onAccepted?.({
    key: `heart ${baseKeyOf(base)}${isFromBase ? '' : ' from elsewhere'}`,
    identity: base.identity,
    isFromBase,
    isSaidOnce: isGoodbye,
  });
  if (isGoodbye) handler.onGoingDown(envelope, base);
  else handler.onHeartbeat(envelope, base);
  return undefined;
}

function receiveBaselineQuery({ source, payload, handler, onAccepted }: Reception): InvalidMessage | undefined {
  const read = readFrom(source, payload, readBaseMetadata, (metadata) => metadata.identity);
  if (read.invalid) return read.invalid;
  const { identity } = read.envelope;
  const key = `queryBaseline ${identity} ${source.identity}`;
  onAccepted?.({ key, identity, isFromBase: false, isSaidOnce: true });
  handler.onBaselineQuery(read.envelope);
  return undefined;
}

/** There is no topic: a base is whoever the payload says. */
function readFrom<T>(
  source: Source,
  payload: Uint8Array,
  read: Read<T>,
  identityOf: (message: T) => string,
): Parsed<T> & { readonly envelope: Envelope } {
  const parsed = parse(source, payload, read, MAX_HEART_BYTES);
  const { tunnel, identity: sender } = source;
  if (parsed.invalid) {
    // Nothing of it is believed, nor the identity that it names.
    const invalid = { ...parsed.invalid, identity: undefined, sender };
    return { invalid, envelope: { ...source, publishedAt: undefined } };
  }
  const identity = identityOf(parsed.message);
  const envelope = { tunnel, identity, publishedAt: undefined, sender, source: sourceOf(sender) };
  const invalid = sourceFault({ tunnel, identity });
  return invalid ? { invalid: { ...invalid, sender }, envelope } : { ...parsed, envelope };
}
