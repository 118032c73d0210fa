import type { BaseAddress } from '../../src/tunnel/tunnel.ts';

/** A base that moved to another address does not wait for what hangs at the former one, nor is it taken for it. */
export function baseKeyOf({ identity, ip, port }: BaseAddress): string {
  return `${identity} ${ip} ${port}`;
}
