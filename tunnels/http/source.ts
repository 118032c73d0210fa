import { isIPv6 } from 'node:net';
import { canonicalAddress } from '../../src/tunnel/ip-address.ts';

/** Who counts as one sender: an IPv4 address, or the /64 network of an IPv6 address, which one machine may have. */
export function sourceOf(address: string): string {
  const plain = canonicalAddress(address);
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.split('::');
  const groupsOf = (text: string): string[] => (text === '' ? [] : text.split(':'));
  const [before, after] = [groupsOf(head), groupsOf(tail ?? '')];
  // An IPv4 address at the end stands for two groups.
  const length = before.length + after.length + (plain.includes('.') ? 1 : 0);
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - length }, () => '0');
  const network = [...before, ...zeros, ...after].slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(':')}::/64`;
}
