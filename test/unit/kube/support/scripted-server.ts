import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { TLSSocket } from 'node:tls';
import { until } from './until.ts';

/** One request that the test answers by hand. */
export class Exchange {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  /** The client's port: the same one means the same connection. */
  readonly port: number | undefined;
  /** Common name of the client's certificate, when it proved to have one of the server's CA. */
  readonly clientName: string | undefined;
  /** Whether its connection goes on with the TLS session of an earlier one. */
  readonly isResumed: boolean;
  isClosed = false;
  readonly #response: ServerResponse;

  constructor(request: IncomingMessage, body: string, response: ServerResponse) {
    this.method = request.method ?? '';
    this.url = new URL(request.url ?? '', 'http://server');
    this.headers = request.headers;
    this.body = body;
    this.port = request.socket.remotePort;
    const { socket } = request;
    if (socket instanceof TLSSocket && socket.authorized)
      this.clientName = String(socket.getPeerCertificate().subject.CN);
    this.isResumed = socket instanceof TLSSocket && socket.isSessionReused();
    this.#response = response;
    response.on('close', () => {
      this.isClosed = true;
    });
  }

  get query(): Record<string, string> {
    return Object.fromEntries(this.url.searchParams);
  }

  reply(status: number, body: unknown, headers: Record<string, string> = {}): void {
    this.#response.writeHead(status, { 'content-type': 'application/json', ...headers });
    this.#response.end(typeof body === 'string' ? body : JSON.stringify(body));
  }

  /** Begins a watch and sends events. */
  send(...events: unknown[]): void {
    if (!this.#response.headersSent) this.#response.writeHead(200, { 'content-type': 'application/json' });
    this.#response.flushHeaders();
    for (const event of events) {
      this.#response.write(typeof event === 'string' ? event : `${JSON.stringify(event)}\n`);
    }
  }

  end(): void {
    this.#response.end();
  }

  cut(): void {
    this.#response.socket?.destroy();
  }
}

/** A local HTTP server without a mind of its own: requests wait until the test takes and answers them. */
export class ScriptedServer {
  readonly #server: Server;
  readonly #waiting: Exchange[] = [];
  /** How many requests came so far. */
  count = 0;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(tls?: { cert: string; key: string; ca: string }): Promise<ScriptedServer> {
    const server = tls ? createTlsServer({ ...tls, requestCert: true, rejectUnauthorized: false }) : createServer();
    const scripted = new ScriptedServer(server);
    server.on('request', (request: IncomingMessage, response: ServerResponse) => scripted.#take(request, response));
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    return scripted;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): URL {
    return new URL(`http://127.0.0.1:${this.port}`);
  }

  /** The next request that has not been taken. */
  next(): Promise<Exchange> {
    return until(() => this.#waiting.shift(), 'a request');
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      this.count++;
      this.#waiting.push(new Exchange(request, Buffer.concat(chunks).toString(), response));
    });
  }
}
