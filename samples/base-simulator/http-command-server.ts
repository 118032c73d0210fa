import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { EventLoop } from './event-loop.ts';

/** As the agent's own. */
const MAX_BODY_BYTES = 1024 * 1024;
const TOO_LARGE = '413 Request Entity Too Large';

/** One command over HTTP. Who asks may be gone when the answer comes. */
export interface Exchange {
  /** The path without its slash. */
  readonly command: string;
  readonly body: string;
  /** The header `User-Agent`. */
  readonly userAgent: string | undefined;
  answer(body: string): void;
  /** Closes the connection without a word. */
  cut(): void;
}

export interface HttpCommandServerOptions {
  readonly host: string;
  /** 0 = a free one. */
  readonly port: number;
  /** How many threads serve the connections, which are given to them in turn. */
  readonly eventLoops: number;
  /** Nothing is said then, not even 100 Continue. */
  readonly isSilent: () => boolean;
  /** Keeps the event loop of its connection busy until it resolves; never rejects. */
  readonly onCommand: (exchange: Exchange) => Promise<void>;
}

/**
 * The HTTP server of the agent: an answer is a status line and a body without a single header, and its end is the end
 * of the connection. A connection that gets no answer stays open.
 *
 * A command runs on the event loop of its connection. Meanwhile all else waits there: other commands, and the
 * `100 Continue` of those who asked for it. What lies there waiting is run in the end, also when the client has closed
 * or reset its connection: so does Linux, which hands out what came before the RST, and so does the agent.
 */
export class HttpCommandServer {
  readonly #options: HttpCommandServerOptions;
  readonly #server: Server;
  readonly #loops: readonly EventLoop[];
  readonly #loopOf = new WeakMap<Socket, EventLoop>();
  #connectionCount = 0;
  #port: number;
  #isNetworkGone = false;

  constructor(options: HttpCommandServerOptions) {
    this.#options = options;
    this.#port = options.port;
    this.#loops = Array.from({ length: options.eventLoops }, () => new EventLoop());
    // The agent has no timeouts of its own.
    this.#server = createServer({ requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0 });
    this.#server.on('connection', (socket) => this.#accept(socket));
    this.#server.on('request', (request) => void this.#read(request));
    this.#server.on('checkContinue', (request) => this.#onExpect(request));
    this.#server.on('checkExpectation', ({ socket }) => {
      this.#onLoop(socket, () => end(socket, '417 Expectation Failed'));
    });
  }

  get isReachable(): boolean {
    return this.#server.listening && !this.#isNetworkGone;
  }

  /** 0 before it first listened. */
  get port(): number {
    return this.#port;
  }

  /** Listens, or is reachable again. */
  async open(): Promise<void> {
    this.#isNetworkGone = false;
    if (this.#server.listening) return;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host: this.#options.host, port: this.#port, backlog: 1024 }, () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
    const address = this.#server.address();
    if (address !== null && typeof address !== 'string') this.#port = address.port;
  }

  /** Keeps the port and cuts every connection, old and new. */
  loseNetwork(): void {
    this.#isNetworkGone = true;
    this.#server.closeAllConnections();
  }

  /** Frees the port and cuts every connection. */
  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  #accept(socket: Socket): void {
    const loop = this.#loops[this.#connectionCount % this.#loops.length];
    if (this.#isNetworkGone || loop === undefined) {
      socket.destroy();
      return;
    }
    this.#connectionCount += 1;
    this.#loopOf.set(socket, loop);
  }

  /** A dead process does nothing more; one that lost its network does what it got before. */
  #onLoop(socket: Socket, task: () => void | Promise<void>): void {
    this.#loopOf.get(socket)?.run(() => (this.#server.listening ? task() : undefined));
  }

  #onExpect(request: IncomingMessage): void {
    const { socket } = request;
    if (Number(request.headers['content-length']) > MAX_BODY_BYTES) {
      this.#onLoop(socket, () => end(socket, TOO_LARGE));
      return;
    }
    this.#onLoop(socket, () => {
      if (!this.#options.isSilent() && !socket.destroyed) socket.write('HTTP/1.1 100 Continue\r\n\r\n');
    });
    void this.#read(request);
  }

  async #read(request: IncomingMessage): Promise<void> {
    const body = await bodyOf(request);
    if (body !== 'aborted') this.#onLoop(request.socket, () => this.#take(request, body));
  }

  async #take(
    { socket, method, url = '', headers }: IncomingMessage,
    body: { text: string } | 'too large',
  ): Promise<void> {
    if (body === 'too large') return end(socket, TOO_LARGE);
    if (method !== 'POST') {
      return end(socket, '500 Internal Server Error', 'POST http request only supported by arklet');
    }
    await this.#options.onCommand({
      command: url.replace(/^\//, '').replace(/\?.*$/s, ''),
      body: body.text,
      userAgent: headers['user-agent'],
      answer: (text) => end(socket, '200 OK', text),
      cut: () => socket.destroy(),
    });
  }
}

async function bodyOf(request: IncomingMessage): Promise<{ text: string } | 'too large' | 'aborted'> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      size += chunk.length;
      if (size > MAX_BODY_BYTES) return 'too large';
      chunks.push(chunk);
    }
  } catch {
    return 'aborted';
  }
  return { text: Buffer.concat(chunks).toString() };
}

/** Written past node's own response, which does not go without headers. */
function end(socket: Socket, status: string, body = ''): void {
  if (!socket.destroyed) socket.end(`HTTP/1.1 ${status}\r\n\r\n${body}`);
}
