import type { Server, Socket } from 'node:net';

export interface SourceLimit {
  /** Connections of one source; a further one is closed at once. */
  readonly max: number;
  /** Who counts as one, by the address. */
  readonly sourceOf: (address: string) => string;
  /** A connection was closed, since its source has too many. */
  readonly onRefused: (source: string) => void;
}

/** Whoever opens connections without end leaves room for others: one source has a part of them only. */
export function limitSources(server: Server, { max, sourceOf, onRefused }: SourceLimit): void {
  /** Open connections by source; as many entries as connections at most. */
  const counts = new Map<string, number>();
  server.on('connection', (socket: Socket) => {
    const source = sourceOf(socket.remoteAddress ?? '');
    const count = counts.get(source) ?? 0;
    if (count >= max) {
      socket.destroy();
      onRefused(source);
      return;
    }
    counts.set(source, count + 1);
    socket.once('close', () => {
      const left = (counts.get(source) ?? 1) - 1;
      if (left === 0) counts.delete(source);
      else counts.set(source, left);
    });
  });
}
