import { canonicalAddress } from '../ip-address.ts';
import type { BaseInfo } from '../tunnel/base.ts';
import { type Envelope, isByAddress, type TunnelName } from '../tunnel/tunnel.ts';
import { NO_ADDRESS } from './address.ts';
import { UNREACHABLE_AFTER_MS } from './liveness.ts';

/** Through which tunnel, and where that counts at which address, a base is called. */
export interface TunnelClaim {
  readonly tunnel: TunnelName;
  readonly base: Pick<BaseInfo, 'ip' | 'port'>;
}

/** A base that has an identity: its place, and its signs of life (`BaseLife`). */
export interface HeldClaim {
  readonly place: TunnelClaim;
  readonly life: { readonly wasHeard: boolean; readonly lastHeardAt: number; readonly isRefusing: boolean };
}

/**
 * Which base has an identity after a heartbeat. `Same`: the sender has it already. `Moved`: the sender has it from now
 * on, as another process, or over another tunnel. `Refused`: the base that has it still speaks, or has its Node over
 * another tunnel. `isProven`: the transport has authenticated the sender, so that the identity is the sender's own.
 */
export function weighClaim(
  { place: held, life }: HeldClaim,
  heard: TunnelClaim,
  now: number,
  isProven: boolean,
): 'Same' | 'Moved' | 'Refused' {
  if (isSamePlace(held, heard)) return 'Same';
  // However silent the holder is: a stranger may speak over the other tunnel, and would get its modules.
  if (held.tunnel !== heard.tunnel) return isProven ? 'Moved' : 'Refused';
  // Of a base that is known only from its Node, the place that it shows has to be silent or to refuse a connection: right
  // after a start, a stranger with an address of its own may be heard before the base.
  const isGone = life.isRefusing || now - life.lastHeardAt >= UNREACHABLE_AFTER_MS;
  return isGone || isOpen(held, heard) ? 'Moved' : 'Refused';
}

/** Whether a Node shows too little of the place of its base to refuse others: no port, or no address either. */
function isOpen(held: TunnelClaim, heard: TunnelClaim): boolean {
  return addressOf(held) === undefined && [NO_ADDRESS, heard.base.ip].includes(held.base.ip);
}

/** Whether two messages name one place: one tunnel, and one address where a base is called by its address. */
export function isSamePlace(a: TunnelClaim, b: TunnelClaim): boolean {
  if (a.tunnel !== b.tunnel) return false;
  return !isByAddress(a.tunnel) || (a.base.ip === b.base.ip && a.base.port === b.base.port);
}

/** Whether a message came from the base's own address, or the transport has authenticated the base. */
export function isFromBase({ sender }: Envelope, { ip }: Pick<BaseInfo, 'ip'>): boolean {
  return sender === undefined || sender === canonicalAddress(ip);
}

/** Address at which a base is called, `192.0.2.7:1238`; undefined for one that is not called by its address. */
export function addressOf({ tunnel, base }: TunnelClaim): string | undefined {
  return isByAddress(tunnel) && base.port !== 0 ? `${base.ip}:${base.port}` : undefined;
}

/** `http_tunnel_provider at 192.0.2.7:1238`. */
export function placeOf({ tunnel, base }: TunnelClaim): string {
  return isByAddress(tunnel) ? `${tunnel} at ${base.ip}:${base.port}` : tunnel;
}
