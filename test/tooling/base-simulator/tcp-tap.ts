import { connect, createServer, type Socket } from 'node:net';

export interface TcpTap {
  port: number;
  /** Resolves with all bytes that the first client sent, once its connection has ended. */
  sent: Promise<Buffer>;
  stop(): Promise<void>;
}

/** A port that passes connections on to another port and keeps what the first client sends. */
export async function startTcpTap(targetPort: number): Promise<TcpTap> {
  const chunks: Buffer[] = [];
  const sockets = new Set<Socket>();
  let resolveSent: (sent: Buffer) => void = () => {};
  const sent = new Promise<Buffer>((resolve) => {
    resolveSent = resolve;
  });
  const server = createServer((socket) => {
    const target = connect(targetPort, '127.0.0.1');
    for (const end of [socket, target]) sockets.add(end.on('error', () => {}));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.once('close', () => resolveSent(Buffer.concat(chunks)));
    socket.pipe(target).pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no TCP address');
  const stop = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  };
  return { port: address.port, sent, stop };
}
