/** The networks that RFC 5737 sets aside for documentation. */
const NETWORKS = ['198.51.100', '203.0.113', '192.0.2'];
const HOSTS_PER_NETWORK = 254;

/** The address of the base with this number, counted from 1; repeats after 762 bases. */
export function localAddressOf(number: number): string {
  const index = number - 1;
  const network = NETWORKS[Math.floor(index / HOSTS_PER_NETWORK) % NETWORKS.length];
  return `${network}.${(index % HOSTS_PER_NETWORK) + 1}`;
}
