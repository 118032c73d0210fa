import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ReceivedCommand } from '../../../contract/tunnel.ts';

export interface HttpDelivery extends ReceivedCommand {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Answers a command, in its own time or never. */
export type Responder = (delivery: HttpDelivery) => void;

/** The arklet of a base on loopback, that keeps its commands and answers as it is told to. */
export class FakeHttpBase {
  readonly #server: Server;
  readonly #responders = new Map<string, Responder>();
  readonly #deliveries: HttpDelivery[] = [];
  readonly #waiting: ((delivery: HttpDelivery) => void)[] = [];
  /** All that has come, in order. */
  readonly commands: string[] = [];
  /** Connections that were made. */
  connectionCount = 0;

  private constructor() {
    this.#server = createServer((request, response) => void this.#onRequest(request, response));
    this.#server.keepAliveTimeout = 60_000;
    this.#server.on('connection', () => this.connectionCount++);
  }

  static async start(host = '127.0.0.1', port = 0): Promise<FakeHttpBase> {
    const base = new FakeHttpBase();
    base.#server.listen(port, host);
    await once(base.#server, 'listening');
    return base;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Connections that are open. */
  openConnections(): Promise<number> {
    return new Promise((resolve, reject) =>
      this.#server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
    );
  }

  answer(command: string, data: unknown): void {
    this.respond(command, ({ response }) => void response.end(JSON.stringify(data)));
  }

  respond(command: string, responder: Responder): void {
    this.#responders.set(command, responder);
  }

  received(): Promise<HttpDelivery> {
    const delivery = this.#deliveries.shift();
    return delivery ? Promise.resolve(delivery) : new Promise((resolve) => this.#waiting.push(resolve));
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const command = request.url?.slice(1) ?? '';
    const delivery = { command, body: Buffer.concat(chunks).toString(), request, response };
    this.commands.push(command);
    const wake = this.#waiting.shift();
    if (wake) wake(delivery);
    else this.#deliveries.push(delivery);
    const responder = this.#responders.get(command);
    if (responder) responder(delivery);
    else response.end('{"code":"SUCCESS"}');
  }
}
