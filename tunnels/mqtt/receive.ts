import type { Envelope, InvalidMessage, TunnelHandler } from '../../src/tunnel/tunnel.ts';
import {
  baseHealthOf,
  baseInfoOf,
  batchResultsOf,
  isGoingDown,
  moduleStatusesOf,
  operationResultOf,
} from '../arklet/convert.ts';
import { claimFault, parse, published, type Read, type Source, sourceFault } from '../arklet/parse.ts';
import {
  readBaseMetadata,
  readBatchInstall,
  readBizList,
  readBizOperation,
  readHealth,
  readHeart,
} from '../arklet/read.ts';
import type { MessageType } from './topics.ts';

type Deliver = (source: Source, payload: Uint8Array, handler: TunnelHandler) => InvalidMessage | undefined;

/** Hands a base's message to the handler, or says why it cannot. */
export function receive(
  type: MessageType,
  source: Source,
  payload: Uint8Array,
  handler: TunnelHandler,
): InvalidMessage | undefined {
  return sourceFault(source) ?? DELIVER[type](source, payload, handler);
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
  return (source, payload, handler) => {
    const parsed = parse(source, payload, readPublished);
    if (parsed.invalid) return parsed.invalid;
    const { data, publishedAt } = parsed.message;
    const mismatch = claimedIdentity && claimFault(source, claimedIdentity(data));
    if (mismatch) return mismatch;
    handOver(handler, { ...source, publishedAt }, data);
    return undefined;
  };
}
