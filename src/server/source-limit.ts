import type { Server, Socket } from 'node:net';

export interface SourceLimit {
  /** Connections of one source; a further one is closed at once, or is one of `surplus`. */
  readonly max: number;
  /** Connections beyond `max` that are kept open, so that their requests can be answered. Default 0. */
  readonly surplus?: number;
  /** Who counts as one, by the address. */
  readonly sourceOf: (address: string) => string;
  /** A connection was refused, since its source has too many. */
  readonly onRefused: (source: string) => void;
}

type Peer = Pick<Socket, 'remoteAddress' | 'remotePort'>;

/**
 * Whoever opens connections without end leaves room for others: one source has a part of them only. Returns whether a
 * connection is one of the surplus.
 */
export function limitSources(server: Server, limit: SourceLimit): (peer: Peer) => boolean {
  const { max, surplus = 0, sourceOf, onRefused } = limit;
  /** Open connections by source; as many entries as connections at most. */
  const counts = new Map<string, number>();
  /** Surplus connections, by address and port: the socket of a request is another object with TLS. */
  const refused = new Set<string>();
  server.on('connection', (socket: Socket) => {
    const source = sourceOf(socket.remoteAddress ?? '');
    const count = counts.get(source) ?? 0;
    if (count >= max) onRefused(source);
    if (count >= max + surplus) {
      socket.destroy();
      return;
    }
    const peer = peerOf(socket);
    if (count >= max) refused.add(peer);
    counts.set(source, count + 1);
    socket.once('close', () => {
      refused.delete(peer);
      const left = (counts.get(source) ?? 1) - 1;
      if (left === 0) counts.delete(source);
      else counts.set(source, left);
    });
  });
  return (socket) => refused.has(peerOf(socket));
}

function peerOf({ remoteAddress, remotePort }: Peer): string {
  return `${remoteAddress} ${remotePort}`;
}
