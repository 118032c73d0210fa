import type { BaseInfo } from '../tunnel/base.ts';
import { canonicalAddress } from '../tunnel/ip-address.ts';
import type { Envelope, TunnelName } from '../tunnel/tunnel.ts';
import { UNREACHABLE_AFTER_MS } from './liveness.ts';

/** Through which tunnel, and over HTTP at which address, a base is spoken to. */
export interface TunnelClaim {
  readonly tunnel: TunnelName;
  readonly base: Pick<BaseInfo, 'ip' | 'port'>;
}

export interface HeldClaim extends TunnelClaim {
  /** False for a base that we only know from its Node. */
  readonly wasHeard: boolean;
  readonly lastHeardAt: number;
  /** Nobody listened at its address since it was last heard. */
  readonly isRefusing: boolean;
}

/**
 * What a heartbeat means for who has the identity. `Same`: the base that has it. `Moved`: it has it from now on,
 * as another process, or over another tunnel. `Refused`: the one that has it still speaks. `couldSpeakSince`: since
 * when silence on the holder's tunnel has been the holder's own; undefined while it may be the link's.
 */
export function weighClaim(
  held: HeldClaim,
  heard: TunnelClaim,
  now: number,
  couldSpeakSince: number | undefined,
): 'Same' | 'Moved' | 'Refused' {
  if (isSamePlace(held, heard)) return 'Same';
  if (held.tunnel === 'mqtt_tunnel_provider') {
    // The broker authenticates who speaks there; whoever posts a heartbeat has proven an address at most.
    if (couldSpeakSince === undefined) return 'Refused';
    return now - Math.max(held.lastHeardAt, couldSpeakSince) >= UNREACHABLE_AFTER_MS ? 'Moved' : 'Refused';
  }
  const isGone = !held.wasHeard || held.isRefusing || now - held.lastHeardAt >= UNREACHABLE_AFTER_MS;
  return isGone ? 'Moved' : 'Refused';
}

/** Over MQTT the broker keeps two of one client id apart, and an address is no more than information. */
export function isSamePlace(a: TunnelClaim, b: TunnelClaim): boolean {
  if (a.tunnel !== b.tunnel) return false;
  return a.tunnel === 'mqtt_tunnel_provider' || (a.base.ip === b.base.ip && a.base.port === b.base.port);
}

/** Whether a message came from the base's own address. Over MQTT the broker knows who speaks. */
export function isFromBase({ sender }: Envelope, { ip }: Pick<BaseInfo, 'ip'>): boolean {
  return sender === undefined || sender === canonicalAddress(ip);
}

/** Where a base is called over HTTP, `192.0.2.7:1238`; undefined for one that nobody calls. */
export function addressOf({ tunnel, base }: TunnelClaim): string | undefined {
  return tunnel === 'mqtt_tunnel_provider' || base.port === 0 ? undefined : `${base.ip}:${base.port}`;
}

/** `http_tunnel_provider at 192.0.2.7:1238`. */
export function placeOf({ tunnel, base }: TunnelClaim): string {
  return tunnel === 'mqtt_tunnel_provider' ? tunnel : `${tunnel} at ${base.ip}:${base.port}`;
}
