import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { releasePort, reservePort } from '../../../samples/control-plane/ports.ts';

/**
 * `pass`: as if nothing stood in between. `blackhole`: no byte gets through and nobody is told, as behind a firewall
 * that drops; new connections are taken and never answered. `refuse`: nobody listens, and what was open is reset.
 */
export type ProxyMode = 'pass' | 'blackhole' | 'refuse';

interface Pair {
  readonly client: Socket;
  /** Absent where the connection came while nothing got through. */
  readonly upstream?: Socket;
}

/** Stands in front of one TCP port of 127.0.0.1 and does to connections what networks do. Looks into none. */
export class TcpProxy {
  readonly port: number;
  readonly #upstreamPort: number;
  readonly #server: Server;
  /** Open connections. Emptied as they close, those that are held by `blackhole` when it ends. */
  readonly #pairs = new Set<Pair>();
  #mode: ProxyMode = 'refuse';
  #connectionCount = 0;

  private constructor(port: number, upstreamPort: number) {
    this.port = port;
    this.#upstreamPort = upstreamPort;
    // Half open: the end of one side is for us to pass on, or not.
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#take(client));
  }

  static async start(upstreamPort: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(await reservePort(), upstreamPort);
    await proxy.become('pass');
    return proxy;
  }

  get mode(): ProxyMode {
    return this.#mode;
  }

  /** Connections taken since the start. */
  get connectionCount(): number {
    return this.#connectionCount;
  }

  /** What came while nothing got through is lost: its connections are reset when that ends. */
  async become(mode: ProxyMode): Promise<void> {
    const before = this.#mode;
    if (mode === before) return;
    this.#mode = mode;
    if (mode === 'refuse') {
      const closed = new Promise((resolve) => this.#server.close(resolve));
      this.#resetAll();
      await closed;
    } else if (before === 'blackhole') this.#resetAll();
    else if (before === 'refuse') await this.#listen();
  }

  async stop(): Promise<void> {
    await this.become('refuse');
    releasePort(this.port);
  }

  #listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(this.port, '127.0.0.1', () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
  }

  #take(client: Socket): void {
    this.#connectionCount += 1;
    if (this.#mode === 'refuse') {
      // It was in the queue of the kernel already; held, it would keep the listener from closing.
      client.on('error', () => {}).resetAndDestroy();
      return;
    }
    if (this.#mode !== 'pass') {
      const held = { client };
      this.#pairs.add(held);
      // Read and lost; without a reader the end of the connection would not be seen either.
      client.on('error', () => {}).resume();
      return;
    }
    const upstream = createConnection({
      port: this.#upstreamPort,
      host: '127.0.0.1',
      allowHalfOpen: true,
      noDelay: true,
    });
    const pair = { client, upstream };
    this.#pairs.add(pair);
    this.#forward(pair, client, upstream);
    this.#forward(pair, upstream, client);
  }

  #forward(pair: Pair, from: Socket, to: Socket): void {
    from.on('data', (chunk) => {
      if (this.#mode !== 'pass' || to.write(chunk)) return;
      from.pause();
      to.once('drain', () => from.resume());
    });
    from.on('end', () => {
      if (this.#mode === 'pass') to.end();
    });
    // Without a reset that nobody hears of: an error closes, and a close is passed on.
    from.on('error', () => {
      if (this.#mode === 'pass') to.resetAndDestroy();
    });
    from.on('close', () => {
      if (this.#mode !== 'pass') return;
      this.#pairs.delete(pair);
      to.destroySoon();
    });
  }

  #resetAll(): void {
    for (const { client, upstream } of this.#pairs) {
      client.resetAndDestroy();
      upstream?.resetAndDestroy();
    }
    this.#pairs.clear();
  }
}
