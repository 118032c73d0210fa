import { BlockList, isIP, isIPv6 } from 'node:net';

/** `10.0.0.0/8`, `fd00::/8`. */
export interface Network {
  readonly address: string;
  readonly prefixLength: number;
}

/** What no base has: a call would reach the controller's own machine, its neighbours or nobody. */
const NOT_A_BASE: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['127.0.0.0', 8],
  // Link-local, and where most clouds have their metadata service.
  ['169.254.0.0', 16],
  ['169.254.169.254', 32],
  ['169.254.170.2', 32],
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

interface RefusedRange {
  readonly range: BlockList;
  /** The listed networks that lie within the range. */
  readonly listed: BlockList;
}

/**
 * Addresses that bases may have. Over HTTP a heartbeat names the address that the controller calls, and over every tunnel
 * the address that Node and Pods show, which the API server calls for `nodes/proxy` and `pods/proxy`. Without a limit,
 * whoever sends a heartbeat can aim both at anything that they reach (SSRF). A wide network does not open loopback, link-local and the
 * like; a network that lies within such a range does. An IPv4-mapped IPv6 address is judged as the IPv4 address in it.
 */
export class AddressPolicy {
  readonly #allowed: BlockList | undefined;
  readonly #refused = listOf(NOT_A_BASE.map(networkOf));
  readonly #ranges: readonly RefusedRange[];

  /** `networks`: the only ones allowed. Default: all but those that cannot be a base's. */
  constructor(networks?: readonly Network[]) {
    this.#allowed = networks && listOf(networks);
    this.#ranges = NOT_A_BASE.map(networkOf).map((range) => ({
      range: listOf([range]),
      listed: listOf((networks ?? []).filter((network) => isWithin(network, range))),
    }));
  }

  /** Why `ip` is not a base's, to be read after the name of the field; undefined when it may be. */
  faultOf(ip: string): string | undefined {
    // A zone (`fe80::1%eth0`) chooses a network interface of this machine.
    if (isIP(ip) === 0 || ip.includes('%')) return 'is not an IP address';
    const family = familyOf(ip);
    if (this.#allowed && !this.#allowed.check(ip, family)) return 'is in no network of bases';
    if (!this.#refused.check(ip, family)) return undefined;
    const isRefused = this.#ranges.some(({ range, listed }) => range.check(ip, family) && !listed.check(ip, family));
    return isRefused ? 'is not an address of a base' : undefined;
  }
}

/** Whether an address, in any of its texts, is in one of the networks. */
export function inAnyOf(networks: readonly Network[]): (ip: string) => boolean {
  const list = listOf(networks);
  return (ip) => isIP(ip) !== 0 && list.check(ip, familyOf(ip));
}

function networkOf([address, prefixLength]: readonly [string, number]): Network {
  return { address, prefixLength };
}

function isWithin({ address, prefixLength }: Network, outer: Network): boolean {
  return prefixLength >= outer.prefixLength && listOf([outer]).check(address, familyOf(address));
}

function listOf(networks: readonly Network[]): BlockList {
  const list = new BlockList();
  for (const { address, prefixLength } of networks) list.addSubnet(address, prefixLength, familyOf(address));
  return list;
}

function familyOf(ip: string): 'ipv4' | 'ipv6' {
  return isIPv6(ip) ? 'ipv6' : 'ipv4';
}
