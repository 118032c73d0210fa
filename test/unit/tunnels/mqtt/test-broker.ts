import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { Aedes, type AedesOptions } from 'aedes';

export interface TestBrokerOptions extends AedesOptions {
  /** Default: any free one. */
  readonly port?: number;
  readonly tls?: TlsOptions;
}

/** What came on connections before they ended. */
interface Rest {
  readonly byteCount: number;
  /** By RST, all of them. */
  readonly isReset: boolean;
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

  /**
   * Stops to read what clients send: they see a link that is there and dead. Returns what reads the rest of it, up to
   * the end of the connections.
   */
  freeze(): () => Promise<Rest> {
    const sockets = [...this.#sockets];
    for (const socket of sockets) {
      socket.removeAllListeners('readable');
      socket.unpipe().pause();
    }
    return async () => {
      const rests = await Promise.all(sockets.map(restOf));
      return {
        byteCount: sum(rests.map(({ byteCount }) => byteCount)),
        isReset: rests.every(({ isReset }) => isReset),
      };
    };
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

function restOf(socket: Socket): Promise<Rest> {
  return new Promise((resolve) => {
    let byteCount = 0;
    let isReset = false;
    socket.on('error', (error) => {
      isReset = 'code' in error && error.code === 'ECONNRESET';
    });
    socket.once('close', () => resolve({ byteCount, isReset }));
    socket.on('data', (chunk) => {
      byteCount += chunk.length;
    });
    socket.resume();
  });
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
