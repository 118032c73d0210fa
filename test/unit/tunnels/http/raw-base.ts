import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

export const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

/** One connection to a base, read and written by hand. */
export class RawConnection {
  readonly socket: Socket;
  received = '';
  /** Resolves when the other end has closed it. */
  readonly closed: Promise<void>;
  /** Whether it ended by RST. */
  isReset = false;
  readonly #waiting = new Set<() => void>();

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk) => {
      this.received += chunk;
      for (const wake of this.#waiting) wake();
      this.#waiting.clear();
    });
    socket.on('error', (error) => {
      this.isReset = 'code' in error && error.code === 'ECONNRESET';
    });
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()));
  }

  /** What came before the first empty line; resolves when that is here. */
  async head(): Promise<string> {
    const [head = ''] = await this.#split();
    return head.toLowerCase();
  }

  /** What came after it, once these are `length` bytes. */
  async payload(length: number): Promise<string> {
    for (;;) {
      const [, payload = ''] = await this.#split();
      if (payload.length >= length) return payload;
      await this.#more();
    }
  }

  /** What came after it so far. */
  get rest(): string {
    return this.received.split('\r\n\r\n')[1] ?? '';
  }

  async #split(): Promise<string[]> {
    while (!this.received.includes('\r\n\r\n')) await this.#more();
    return this.received.split('\r\n\r\n');
  }

  #more(): Promise<void> {
    return new Promise((resolve) => this.#waiting.add(resolve));
  }
}

/** A base on loopback that says nothing by itself. */
export class RawBase {
  readonly connections: RawConnection[] = [];
  readonly #server: Server;
  /** Whoever waits for the next connection. */
  readonly #waiting: ((connection: RawConnection) => void)[] = [];
  #taken = 0;

  private constructor() {
    this.#server = createServer((socket) => {
      const connection = new RawConnection(socket);
      this.connections.push(connection);
      const wake = this.#waiting.shift();
      if (!wake) return;
      this.#taken += 1;
      wake(connection);
    });
  }

  static async start(): Promise<RawBase> {
    const base = new RawBase();
    base.#server.listen(0, '127.0.0.1');
    await once(base.#server, 'listening');
    return base;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Each connection once, in order. */
  next(): Promise<RawConnection> {
    const connection = this.connections[this.#taken];
    if (!connection) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#taken += 1;
    return Promise.resolve(connection);
  }

  /** Nobody listens any more, connections stay. */
  refuse(): void {
    this.#server.close();
  }

  async close(): Promise<void> {
    for (const { socket } of this.connections) socket.destroy();
    if (!this.#server.listening) return;
    this.#server.close();
    await once(this.#server, 'close');
  }
}
