import type { Envelope, InvalidMessage, TunnelHandler } from '../../src/tunnel/tunnel.ts';
import {
  baseHealthOf,
  baseInfoOf,
  batchResultsOf,
  isGoingDown,
  moduleStatusesOf,
  operationResultOf,
} from '../arklet/convert.ts';
import type { Sender } from '../arklet/intake.ts';
import {
  claimFault,
  MAX_HEART_BYTES,
  MAX_PAYLOAD_BYTES,
  MAX_UNPROVEN_BYTES,
  parse,
  published,
  type Read,
  type Source,
  sourceFault,
} from '../arklet/parse.ts';
import {
  readBaseMetadata,
  readBatchInstall,
  readBizList,
  readBizOperation,
  readHealth,
  readHeart,
} from '../arklet/read.ts';
import { type MessageType, SIGNS_OF_LIFE } from './topics.ts';

/** What a message comes with. */
export interface Reception {
  readonly source: Source;
  readonly payload: Uint8Array;
  /** See `maxBytesOf`. */
  readonly maxBytes: number;
  readonly handler: TunnelHandler;
}

type Deliver = (reception: Reception) => InvalidMessage | undefined;

/** Hands a base's message to the handler, or says why it cannot. */
export function receive(type: MessageType, reception: Reception): InvalidMessage | undefined {
  return sourceFault(reception.source) ?? DELIVER[type](reception);
}

/** How long a message of this type may be. */
export function maxBytesOf(type: MessageType, sender: Sender): number {
  if (SIGNS_OF_LIFE.has(type)) return MAX_HEART_BYTES;
  return sender === 'Known' ? MAX_PAYLOAD_BYTES : MAX_UNPROVEN_BYTES;
}

const toModuleList = delivering(readBizList, (handler, envelope, list) =>
  handler.onModuleList(envelope, moduleStatusesOf(list)),
);

const DELIVER: Readonly<Record<MessageType, Deliver>> = {
  heart: delivering(
    readHeart,
    (handler, envelope, heart) => {
      if (isGoingDown(heart)) handler.onGoingDown(envelope, baseInfoOf(heart));
      else handler.onHeartbeat(envelope, baseInfoOf(heart));
    },
    (heart) => heart.baseMetadata.identity,
  ),
  queryBaseline: delivering(
    readBaseMetadata,
    (handler, envelope) => handler.onBaselineQuery(envelope),
    (metadata) => metadata.identity,
  ),
  health: delivering(readHealth, (handler, envelope, health) => handler.onHealth(envelope, baseHealthOf(health))),
  simpleBiz: toModuleList,
  biz: toModuleList,
  bizOperation: delivering(readBizOperation, (handler, envelope, operation) =>
    handler.onOperationResult(envelope, operationResultOf(operation)),
  ),
  batchInstallBizResponse: delivering(readBatchInstall, (handler, envelope, batch) => {
    for (const result of batchResultsOf(batch)) handler.onOperationResult(envelope, result);
  }),
};

/** `claimedIdentity`: for messages that name their base besides the topic. */
function delivering<T>(
  read: Read<T>,
  handOver: (handler: TunnelHandler, envelope: Envelope, message: T) => void,
  claimedIdentity?: (message: T) => string,
): Deliver {
  const readPublished = published(read);
  return ({ source, payload, maxBytes, handler }) => {
    const parsed = parse(source, payload, readPublished, maxBytes);
    if (parsed.invalid) return parsed.invalid;
    const { data, publishedAt } = parsed.message;
    const mismatch = claimedIdentity && claimFault(source, claimedIdentity(data));
    if (mismatch) return mismatch;
    handOver(handler, { ...source, publishedAt }, data);
    return undefined;
  };
}
