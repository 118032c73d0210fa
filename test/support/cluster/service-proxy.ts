import {
  Agent,
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { firstExternalAddress } from '../../../samples/base-simulator/external-address.ts';

const ANSWER_WITHIN_MS = 1_000;
const PROBE_EVERY_MS = 500;
/** Of the base that sent it: each message has it once. */
const IDENTITY = /"identity":"([^"]+)"/;

export interface ServiceProxyOptions {
  /** A replica hangs when it has not answered by then. Default 1 s. */
  readonly answerWithinMs?: number;
  /** As a Service with SNAT: replicas do not see where a message came from. */
  readonly hidesSender?: boolean;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/**
 * What a Service is to bases: one address, and each message goes to the next replica in turn. One that refuses is passed
 * over, as when its endpoint is gone; one that hangs costs a second once, and is left out until it answers again.
 */
export class ServiceProxy {
  readonly #server: Server;
  /** Messages in all, and by port where they were taken. */
  readonly taken = new Map<number, number>();
  readonly #ports: number[] = [];
  /** Those that hang. Emptied as they answer. */
  readonly #leftOut = new Set<number>();
  readonly #agent = new Agent({ keepAlive: false });
  readonly #answerWithinMs: number;
  readonly #hidesSender: boolean;
  readonly #prober: NodeJS.Timeout;
  #turn = 0;
  #pinnedTo: readonly number[] = [];
  /** By identity of a base, where its messages go while replicas are pinned. */
  readonly #pins = new Map<string, number>();

  private constructor({ answerWithinMs = ANSWER_WITHIN_MS, hidesSender = false }: ServiceProxyOptions) {
    this.#answerWithinMs = answerWithinMs;
    this.#hidesSender = hidesSender;
    this.#server = createServer((incoming, response) => {
      this.#serve(incoming, response).catch(() => response.destroy());
    });
    // Longer than bases pause: a kept connection is not closed under their hands.
    this.#server.keepAliveTimeout = 60_000;
    this.#prober = setInterval(() => void this.#probe(), PROBE_EVERY_MS);
  }

  static async start(options: ServiceProxyOptions = {}): Promise<ServiceProxy> {
    const proxy = new ServiceProxy(options);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once('error', reject);
      proxy.#server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, resolve);
    });
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** One more replica, by the port of its HTTP tunnel. */
  add(port: number): void {
    if (!this.#ports.includes(port)) this.#ports.push(port);
  }

  remove(port: number): void {
    const index = this.#ports.indexOf(port);
    if (index >= 0) this.#ports.splice(index, 1);
  }

  /**
   * Each base posts to one of these replicas only, answered or not, and each of them gets as many bases; none: all
   * messages go to all replicas in turn.
   */
  pin(...ports: readonly number[]): void {
    this.#pinnedTo = ports;
    this.#pins.clear();
  }

  async stop(): Promise<void> {
    clearInterval(this.#prober);
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    this.#agent.destroy();
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(incoming);
    for (const port of this.#portsFor(body)) {
      const answer = await this.#ask(port, incoming, body);
      if (answer === 'hangs') this.#leftOut.add(port);
      if (typeof answer === 'string') continue;
      this.taken.set(port, (this.taken.get(port) ?? 0) + 1);
      response.writeHead(answer.status, { ...answer.headers, 'content-length': answer.body.length }).end(answer.body);
      return;
    }
    response.writeHead(503).end();
  }

  #portsFor(body: Buffer): number[] {
    if (this.#pinnedTo.length === 0) return this.#inTurn();
    const [, identity = ''] = IDENTITY.exec(body.toString()) ?? [];
    const port = this.#pins.get(identity) ?? this.#pinnedTo[this.#pins.size % this.#pinnedTo.length];
    if (port === undefined) return [];
    this.#pins.set(identity, port);
    return [port];
  }

  #inTurn(): number[] {
    const { length } = this.#ports;
    this.#turn = (this.#turn + 1) % Math.max(1, length);
    const inTurn = [...this.#ports.slice(this.#turn), ...this.#ports.slice(0, this.#turn)];
    return inTurn.filter((port) => !this.#leftOut.has(port));
  }

  #ask(port: number, { method, url, headers }: IncomingMessage, body?: Buffer): Promise<Answer | 'hangs' | 'refuses'> {
    return new Promise((resolve) => {
      const asked = request({
        host: '127.0.0.1',
        // Without SNAT a replica sees the address that the bases name.
        localAddress: this.#hidesSender ? '127.0.0.1' : firstExternalAddress(),
        port,
        method,
        path: url,
        headers: endToEnd(headers),
        agent: this.#agent,
      });
      const timer = setTimeout(() => {
        resolve('hangs');
        asked.destroy();
      }, this.#answerWithinMs);
      const end = (answer: Answer | 'refuses'): void => {
        clearTimeout(timer);
        resolve(answer);
      };
      asked.once('response', (answer) => {
        buffer(answer).then(
          (read) => end({ status: answer.statusCode ?? 502, headers: endToEnd(answer.headers), body: read }),
          () => end('refuses'),
        );
      });
      asked.on('error', () => end('refuses'));
      asked.end(body);
    });
  }

  /** Any answer at all is one; one that refuses is tried by the next message. */
  async #probe(): Promise<void> {
    const probe = { method: 'GET', url: '/', headers: {} } as IncomingMessage;
    for (const port of this.#leftOut) {
      if ((await this.#ask(port, probe)) !== 'hangs') this.#leftOut.delete(port);
    }
  }
}

function endToEnd(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const {
    connection: _c,
    'keep-alive': _k,
    'transfer-encoding': _t,
    'content-length': _l,
    host: _h,
    ...rest
  } = headers;
  return rest;
}
