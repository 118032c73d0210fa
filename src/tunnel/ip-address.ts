import { isIPv6, SocketAddress } from 'node:net';

const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/;

/** One text for each IP address: an IPv4-mapped IPv6 address is the IPv4 address in it. Other text stays as it is. */
export function canonicalAddress(ip: string): string {
  const [address = ''] = ip.split('%');
  if (!isIPv6(address)) return address;
  const text = new SocketAddress({ address, family: 'ipv6' }).address.toLowerCase();
  return MAPPED.exec(text)?.[1] ?? text;
}
