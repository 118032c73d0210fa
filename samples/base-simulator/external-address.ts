import { networkInterfaces } from 'node:os';

/** The first IPv4 address of this machine that others can reach; 127.0.0.1 when there is none. */
export function firstExternalAddress(interfaces: ReturnType<typeof networkInterfaces> = networkInterfaces()): string {
  const addresses = Object.values(interfaces).flatMap((entries) => entries ?? []);
  return addresses.find(({ family, internal }) => family === 'IPv4' && !internal)?.address ?? '127.0.0.1';
}
