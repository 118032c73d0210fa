import { BlockList, isIPv6 } from 'node:net';

/** Stands for the address of a base that has none which may be stored. */
export const NO_ADDRESS = '0.0.0.0';

const UNROUTABLE = new BlockList();
UNROUTABLE.addSubnet('0.0.0.0', 8, 'ipv4');
UNROUTABLE.addSubnet('127.0.0.0', 8, 'ipv4');
UNROUTABLE.addSubnet('169.254.0.0', 16, 'ipv4');
UNROUTABLE.addSubnet('224.0.0.0', 4, 'ipv4');
UNROUTABLE.addAddress('::', 'ipv6');
UNROUTABLE.addAddress('::1', 'ipv6');
UNROUTABLE.addSubnet('fe80::', 10, 'ipv6');
UNROUTABLE.addSubnet('ff00::', 8, 'ipv6');

/**
 * Whether an endpoint of a Service may have this address: not unspecified, loopback, link-local or multicast,
 * which is what Kubernetes itself refuses in an EndpointSlice.
 */
export function isRoutable(ip: string): boolean {
  return !UNROUTABLE.check(ip, isIPv6(ip) ? 'ipv6' : 'ipv4');
}
