import { isIPv6, SocketAddress } from 'node:net';

const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/;

/** One text for each IP address: an IPv4-mapped IPv6 address is the IPv4 address in it. Other text stays as it is. */
export function canonicalAddress(ip: string): string {
  const [address = ''] = ip.split('%');
  if (!isIPv6(address)) return address;
  const text = new SocketAddress({ address, family: 'ipv6' }).address.toLowerCase();
  return MAPPED.exec(text)?.[1] ?? text;
}

/** Who counts as one sender: an IPv4 address, or the /64 network of an IPv6 address, which one machine may have. */
export function sourceOf(address: string): string {
  const plain = canonicalAddress(address);
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.split('::');
  const groupsOf = (text: string): string[] => (text === '' ? [] : text.split(':'));
  const [before, after] = [groupsOf(head), groupsOf(tail ?? '')];
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - before.length - after.length }, () => '0');
  const network = [...before, ...zeros, ...after].slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(':')}::/64`;
}
