import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { vi } from 'vitest';
import { type Fleet, type FleetOptions, startFleet } from '../../../samples/base-simulator/fleet.ts';
import type { SimulatedBase } from '../../../samples/base-simulator/simulated-base.ts';
import { ENV } from './rig.ts';

export interface Post {
  path: string;
  headers: IncomingHttpHeaders;
  text: string;
  /** Of the connection that it came on. */
  remotePort: number | undefined;
}

/** The controller's end of the HTTP tunnel: keeps what bases post. */
export class HttpController {
  readonly posts: Post[] = [];
  /** The answer to `/queryBaseline`. */
  baseline: unknown = [];
  /** While true, posts are kept and not answered. */
  isDeaf = false;
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((request, response) => {
    void textOf(request).then((text) => {
      const { url: path = '', headers } = request;
      this.posts.push({ path, headers, text, remotePort: request.socket.remotePort });
      if (this.isDeaf) return;
      if (path === '/queryBaseline') response.end(JSON.stringify(this.baseline));
      else response.end('SUCCESS');
    });
  });
  #port = 0;

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async start(): Promise<void> {
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket.once('close', () => this.#sockets.delete(socket)));
    });
    await new Promise<void>((resolve) => this.#server.listen(this.#port, '127.0.0.1', resolve));
    const address = this.#server.address();
    if (address !== null && typeof address !== 'string') this.#port = address.port;
  }

  /** Connections that are open now. */
  get connectionCount(): number {
    return this.#sockets.size;
  }

  cutConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Gone as a controller that was stopped; `start` brings it back on its port. */
  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.cutConnections();
    await closed;
  }

  /** What came on this path, once there are `count`. */
  async received(path: string, count: number): Promise<Post[]> {
    const posts = (): Post[] => this.posts.filter((post) => post.path === path);
    const check = (): Post[] => {
      if (posts().length < count) throw new Error(`${posts().length} of ${count} posts to ${path}`);
      return posts();
    };
    return vi.waitFor(check, { timeout: 5_000, interval: 5 });
  }
}

/** Where a base takes commands. */
export type Place = Pick<SimulatedBase, 'localIP' | 'port'>;

// biome-ignore lint/suspicious/noExplicitAny: tests look into any part of an answer
export type Answer = any;

/** Sends a command to a base; resolves with its answer. Rejects when the connection ends without one. */
export async function command(base: Place, name: string, body: object | string): Promise<Answer> {
  const response = await fetch(`http://${base.localIP}:${base.port}/${name}`, {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return JSON.parse(await response.text());
}

/** A connection to a base on which bytes are written by hand. */
export class RawConnection {
  received = '';
  /** Resolves when the base has closed it. */
  readonly closed: Promise<void>;
  readonly #socket: Socket;

  constructor({ localIP, port }: Place) {
    this.#socket = connect(port, localIP);
    this.#socket.on('data', (chunk) => {
      this.received += chunk;
    });
    this.#socket.on('error', () => {});
    this.closed = new Promise((resolve) => this.#socket.once('close', () => resolve()));
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed;
  }

  post(name: string, body: string): void {
    this.write(`${headOf(name, Buffer.byteLength(body))}\r\n${body}`);
  }

  /** A head without its body. */
  expect(name: string, { length = 2, expectation = '100-continue' } = {}): void {
    this.write(`${headOf(name, length)}expect: ${expectation}\r\n\r\n`);
  }

  write(text: string): void {
    this.#socket.write(text);
  }

  /** Once all that was written is with the operating system. */
  async leave(how: 'close' | 'reset'): Promise<void> {
    await new Promise<void>((resolve) => this.#socket.write('', () => resolve()));
    if (how === 'reset') this.#socket.resetAndDestroy();
    else this.#socket.destroy();
    await this.closed;
  }

  /** Resolves when so much has come. */
  async has(text: string): Promise<void> {
    while (!this.received.includes(text)) await once(this.#socket, 'data');
  }

  end(): void {
    this.#socket.destroy();
  }
}

function headOf(name: string, length: number): string {
  return `POST /${name} HTTP/1.1\r\nhost: base\r\ncontent-length: ${length}\r\n`;
}

/** Tells whether anybody listens there. */
export function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('error', () => resolve(false));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}

/** Resolves when the next command of this name has come in. */
export function receiptOf(fleet: Fleet, name: string): Promise<void> {
  return new Promise((resolve) => {
    const leave = fleet.history.subscribe((record) => {
      if (record.command !== name) return;
      leave();
      resolve();
    });
  });
}

export interface HttpRig {
  controller: HttpController;
  fleet: Fleet;
  /** The first base. */
  base: SimulatedBase;
  stop(): Promise<void>;
}

/** A controller over HTTP, and bases on loopback with quick installs. */
export async function startHttpRig({ bases, ...options }: Partial<FleetOptions> = {}): Promise<HttpRig> {
  const controller = new HttpController();
  await controller.start();
  const fleet = await startFleet({
    controllerUrl: controller.url,
    env: ENV,
    installMs: 5,
    uninstallMs: 5,
    bases: (bases ?? [{}]).map((base) => ({ localIP: '127.0.0.1', ...base })),
    ...options,
  });
  const [base] = fleet.bases;
  if (!base) throw new Error('bases: at least one');
  const stop = async (): Promise<void> => {
    await fleet.stop();
    await controller.stop();
  };
  return { controller, fleet, base, stop };
}
