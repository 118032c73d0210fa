import type { BaseInfo } from '../../../../src/tunnel/base.ts';
import type { ModuleId } from '../../../../src/tunnel/module.ts';
import { baseInfoOf, isGoingDown } from '../../../../tunnels/arklet/convert.ts';
import { claimFault, parse, published, type Source, sourceFault } from '../../../../tunnels/arklet/parse.ts';
import { readHeart } from '../../../../tunnels/arklet/read.ts';

const readPublishedHeart = published(readHeart);

/** The base that a first heartbeat is of; undefined where it cannot be read, or is the last one of a base that ends. */
export function newBaseOf(identity: string, payload: Uint8Array): BaseInfo | undefined {
  const source: Source = { tunnel: 'mqtt_tunnel_provider', identity };
  if (sourceFault(source) !== undefined) return undefined;
  const parsed = parse(source, payload, readPublishedHeart);
  if (parsed.invalid) return undefined;
  const heart = parsed.message.data;
  if (isGoingDown(heart) || claimFault(source, heart.baseMetadata.identity) !== undefined) return undefined;
  return baseInfoOf(heart);
}

export interface InstallAnswer extends ModuleId {
  /** It runs, whoever has asked for it. */
  readonly isInstalled: boolean;
}

/** As far as it is looked at; see `tunnels/arklet/messages.ts`. */
interface Operation {
  readonly data?: {
    readonly command?: string;
    readonly bizName?: string;
    readonly bizVersion?: string;
    readonly response?: { readonly message?: string; readonly data?: { readonly code?: string } | null };
  };
}

/** What a base says when another install of the same module is in work: the answer to that one is the one to wait for. */
const BUSY_WORDS = 'exist unfinished command';

/** The end of an install; undefined for whatever else is said. Read by hand: it comes once for each module. */
export function installAnswerOf(payload: Buffer): InstallAnswer | undefined {
  const { command, bizName: name, bizVersion: version, response } = operationOf(payload).data ?? {};
  if (command !== 'installBiz' || name === undefined || version === undefined || !response) return undefined;
  const code = response.data?.code;
  // A module is never uninstalled here, so one that comes again is there already.
  if (code === 'SUCCESS' || code === 'REPEAT_BIZ') return { name, version, isInstalled: true };
  return response.message?.includes(BUSY_WORDS) ? undefined : { name, version, isInstalled: false };
}

function operationOf(payload: Buffer): Operation {
  try {
    return (JSON.parse(payload.toString()) ?? {}) as Operation;
  } catch {
    return {};
  }
}
