import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';

/** As the agent's own. */
const MAX_BODY_BYTES = 1024 * 1024;

/** One command over HTTP. Who asks may be gone when the answer comes. */
export interface Exchange {
  /** The path without its slash. */
  readonly command: string;
  readonly body: string;
  answer(body: string): void;
  /** Closes the connection without a word. */
  cut(): void;
}

export interface HttpCommandServerOptions {
  readonly host: string;
  /** 0 = a free one. */
  readonly port: number;
  readonly onCommand: (exchange: Exchange) => void;
}

/**
 * The HTTP server of the agent: an answer is a status line and a body without a single header, and its end is the end
 * of the connection. A connection that gets no answer stays open.
 */
export class HttpCommandServer {
  readonly #options: HttpCommandServerOptions;
  readonly #server: Server;
  #port: number;
  #isNetworkGone = false;

  constructor(options: HttpCommandServerOptions) {
    this.#options = options;
    this.#port = options.port;
    // The agent has no timeouts of its own.
    this.#server = createServer({ requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0 }, (request) => {
      void this.#take(request);
    });
    this.#server.on('connection', (socket) => {
      if (this.#isNetworkGone) socket.destroy();
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
      this.#server.listen({ host: this.#options.host, port: this.#options.port, backlog: 1024 }, () => {
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

  async #take(request: IncomingMessage): Promise<void> {
    const { socket, method, url = '' } = request;
    const body = await bodyOf(request);
    if (body === 'aborted') return;
    if (body === 'too large') return end(socket, '413 Request Entity Too Large');
    if (method !== 'POST') {
      return end(socket, '500 Internal Server Error', 'POST http request only supported by arklet');
    }
    this.#options.onCommand({
      command: url.replace(/^\//, '').replace(/\?.*$/s, ''),
      body: body.text,
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
