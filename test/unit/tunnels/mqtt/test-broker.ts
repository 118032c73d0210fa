import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { Aedes, type AedesOptions } from 'aedes';

export interface TestBrokerOptions extends AedesOptions {
  /** Default: any free one. */
  readonly port?: number;
  readonly tls?: TlsOptions;
}

/** A real broker on loopback. */
export class TestBroker {
  readonly aedes: Aedes;
  readonly port: number;
  readonly #server: Server;
  readonly #sockets: Set<Socket>;

  private constructor(aedes: Aedes, server: Server, sockets: Set<Socket>) {
    this.aedes = aedes;
    this.#server = server;
    this.#sockets = sockets;
    const address = server.address();
    this.port = typeof address === 'object' && address ? address.port : 0;
  }

  static async start({ port = 0, tls, ...options }: TestBrokerOptions = {}): Promise<TestBroker> {
    const aedes = await Aedes.createBroker(options);
    const sockets = new Set<Socket>();
    const accept = (socket: Socket): void => {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
      aedes.handle(socket);
    };
    const server = tls ? createTlsServer(tls, accept) : createServer({ noDelay: true }, accept);
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', resolve);
    });
    return new TestBroker(aedes, server, sockets);
  }

  get url(): string {
    return `mqtt://127.0.0.1:${this.port}`;
  }

  /** Stops to read what clients send: they see a link that is there and dead. */
  freeze(): void {
    for (const socket of this.#sockets) {
      socket.removeAllListeners('readable');
      socket.unpipe().pause();
    }
  }

  /** Publishes for whom no client is needed. */
  publish(topic: string, payload: string | Buffer, retain = false): Promise<void> {
    return new Promise((resolve, reject) => {
      this.aedes.publish({ cmd: 'publish', topic, payload, qos: 1, retain, dup: false }, (error) =>
        error ? reject(error) : resolve(),
      );
    });
  }

  /** Cuts every connection. */
  hangUp(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Dies: no goodbye, no port. */
  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.hangUp();
    await closed;
    await new Promise<void>((resolve) => this.aedes.close(resolve));
  }
}
