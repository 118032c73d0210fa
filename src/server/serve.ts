import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import type { Logger } from '../logger.ts';

export interface Served {
  readonly server: Server & { closeAllConnections(): void };
  readonly name: string;
  /** 0 = any free one; the log line shows which. */
  readonly port: number;
  readonly logger: Logger;
  readonly onListening?: () => void;
}

/**
 * Listens until `signal` is aborted; resolves when every connection is closed. Rejects when the port is taken. What goes
 * wrong with a connection later is logged, and the server goes on.
 */
export async function serve({ server, name, port, logger, onListening }: Served, signal: AbortSignal): Promise<void> {
  server.listen(port);
  await once(server, 'listening');
  server.on('error', (err) => logger.warn({ server: name, err }, 'connection could not be accepted'));
  logger.info({ server: name, port: (server.address() as AddressInfo).port }, 'listening');
  onListening?.();
  if (!signal.aborted) await once(signal, 'abort');
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}
