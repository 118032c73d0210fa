import { BlockList, isIP, isIPv6 } from 'node:net';

/** `10.0.0.0/8`, `fd00::/8`. */
export interface Network {
  readonly address: string;
  readonly prefixLength: number;
}

/** What no base has: calling it would reach ourselves, our own machine's neighbours or nobody. */
const NOT_A_BASE: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['127.0.0.0', 8],
  // Link-local, and where most clouds have their metadata service.
  ['169.254.0.0', 16],
  ['224.0.0.0', 4],
  // Reserved, with the broadcast address.
  ['240.0.0.0', 4],
  // Unspecified, loopback and the old way to write an IPv4 address.
  ['::', 96],
  // Ways to write any IPv4 address, link-local ones included: NAT64, 6to4, Teredo, translated.
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['2002::', 16],
  ['2001::', 32],
  ['::ffff:0:0:0', 96],
  // Once link-local for a whole site.
  ['fec0::', 10],
  ['fe80::', 10],
  ['ff00::', 8],
  // Metadata services outside link-local: Alibaba Cloud, Oracle Cloud, Azure, AWS, Google Cloud.
  ['100.100.100.200', 32],
  ['192.0.0.0', 24],
  ['168.63.129.16', 32],
  ['fd00:ec2::254', 128],
  ['fd20:ce::254', 128],
];

/**
 * Which addresses the controller calls. A heartbeat names an address and so tells us whom to call: without a
 * limit, whoever sends one can aim us at anything that we can reach (SSRF). An IPv4-mapped IPv6 address is judged
 * as the IPv4 address in it.
 */
export class AddressPolicy {
  readonly #allowed: BlockList | undefined;
  readonly #refused: BlockList;

  /** `networks`: the only ones allowed. Default: all but those that cannot be a base's. */
  constructor(networks?: readonly Network[]) {
    this.#allowed = networks && listOf(networks.map(({ address, prefixLength }) => [address, prefixLength]));
    this.#refused = listOf(NOT_A_BASE);
  }

  /** Why `ip` is not called, to be read after the name of the field; undefined when it is. */
  faultOf(ip: string): string | undefined {
    // A zone (`fe80::1%eth0`) chooses a network interface of ours.
    if (isIP(ip) === 0 || ip.includes('%')) return 'is not an IP address';
    const family = familyOf(ip);
    if (this.#allowed) return this.#allowed.check(ip, family) ? undefined : 'is in none of HTTP_TUNNEL_BASE_NETWORKS';
    return this.#refused.check(ip, family) ? 'is no address of a base' : undefined;
  }
}

function listOf(networks: readonly (readonly [string, number])[]): BlockList {
  const list = new BlockList();
  for (const [address, prefixLength] of networks) list.addSubnet(address, prefixLength, familyOf(address));
  return list;
}

function familyOf(ip: string): 'ipv4' | 'ipv6' {
  return isIPv6(ip) ? 'ipv6' : 'ipv4';
}
