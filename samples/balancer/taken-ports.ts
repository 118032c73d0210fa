import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Those of `ports` that another process has at this address. HAProxy would refuse the whole configuration for one of
 * them, and its old workers let go of all ports while the new ones try. Other errors are for HAProxy to find.
 */
export async function takenPortsOf(ports: Iterable<number>, bind: string): Promise<ReadonlySet<number>> {
  const taken = new Set<number>();
  for (const port of ports) if (await isTaken(port, bind === '*' ? '0.0.0.0' : bind)) taken.add(port);
  return taken;
}

async function isTaken(port: number, host: string): Promise<boolean> {
  const server = createServer();
  try {
    server.listen({ port, host, exclusive: true });
    await once(server, 'listening');
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
  }
  server.close();
  await once(server, 'close');
  return false;
}
