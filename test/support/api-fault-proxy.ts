import { readFile, writeFile } from 'node:fs/promises';
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http';
import { Agent, createServer, request as sendRequest } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Socket, type Server as TcpServer } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { parse, stringify } from 'yaml';
import { createCertificateAuthority } from '../../samples/control-plane/certificates.ts';

export interface FaultMix {
  /** Of all requests but watches, so many meet a fault. */
  readonly share: number;
  /** Of all watches. */
  readonly watchShare: number;
  /** Of the requests without one, so many are answered late, by up to `maxDelayMs`. */
  readonly delayShare: number;
  readonly maxDelayMs: number;
  /** All connections are cut this often, at once; 0 = never. */
  readonly cutEveryMs: number;
}

export interface PlannedCut {
  readonly at: 'before' | 'after';
  /** Done first; for example, it kills who asks. */
  readonly run?: () => void;
}

export const NO_FAULTS: FaultMix = { share: 0, watchShare: 0, delayShare: 0, maxDelayMs: 0, cutEveryMs: 0 };

const STATUS_FAULTS = ['429', '429 Retry-After', '500', '503'] as const;
const REQUEST_FAULTS = [...STATUS_FAULTS, 'reset', 'truncated'] as const;
const WATCH_FAULTS = [...STATUS_FAULTS, 'reset', 'truncated', '410', '410 event'] as const;
type Fault = (typeof WATCH_FAULTS)[number];

const REASONS: Readonly<Record<string, string>> = {
  410: 'Expired',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
};

/** The same numbers in [0, 1) for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** What stands between the controller and the API server and does to requests what networks and servers do. */
export class ApiFaultProxy {
  /** What was done, e.g. `500 after`: the API server did as it was asked, and the answer was 500. */
  readonly counts = new Map<string, number>();
  mix: FaultMix = NO_FAULTS;
  /** Requests whose connection is cut, whatever the mix: before the API server sees them, or after it has answered. */
  plan: ((request: { method: string; path: string; body: Buffer }) => PlannedCut | undefined) | undefined;
  readonly #upstream: URL;
  readonly #agent: Agent;
  readonly #random: () => number;
  readonly #authority = createCertificateAuthority('api-fault-proxy');
  readonly #http: Server;
  readonly #tcp: TcpServer;
  /** Open connections by the client's port: beneath TLS, where they can be reset. Emptied as they close. */
  readonly #sockets = new Map<number | undefined, Socket>();
  /** Watches and other requests under way. Emptied as they end. */
  readonly #underWay = new Map<ServerResponse, 'watch' | 'request'>();
  readonly #ticker: NodeJS.Timeout;
  #cutAt = 0;
  #port = 0;

  private constructor(options: { server: string; certificateAuthority: string; random: () => number }) {
    this.#upstream = new URL(options.server);
    this.#agent = new Agent({ ca: options.certificateAuthority, keepAlive: true });
    this.#random = options.random;
    const { certificate, privateKey } = this.#authority.issue({ commonName: 'api', hosts: ['127.0.0.1'] });
    this.#http = createServer({ cert: certificate, key: privateKey }, (request, response) => {
      this.#serve(request, response).catch(() => {
        if (!response.writableEnded) response.destroy();
      });
    });
    // As long as an API server keeps an idle connection.
    this.#http.keepAliveTimeout = 90_000;
    this.#tcp = createTcpServer((socket) => {
      const { remotePort } = socket;
      this.#sockets.set(remotePort, socket);
      socket.once('close', () => this.#sockets.delete(remotePort));
      socket.on('error', () => {});
      this.#http.emit('connection', socket);
    });
    this.#ticker = setInterval(() => this.#cutWhenDue(), 100);
  }

  /** In front of `server`; `random` decides all that is left to chance. */
  static async start(options: {
    server: string;
    certificateAuthority: string;
    random: () => number;
  }): Promise<ApiFaultProxy> {
    const proxy = new ApiFaultProxy(options);
    await proxy.up();
    return proxy;
  }

  /** A copy of that kubeconfig file that leads through the proxy; its path. */
  async kubeconfig(original: string): Promise<string> {
    const config = parse(await readFile(original, 'utf8'));
    for (const { cluster } of config.clusters) {
      cluster.server = `https://127.0.0.1:${this.#port}`;
      cluster['certificate-authority-data'] = Buffer.from(this.#authority.certificate).toString('base64');
    }
    const path = `${original}.proxied`;
    await writeFile(path, stringify(config, { lineWidth: 0 }), { mode: 0o600 });
    return path;
  }

  /** Listens, always on the same port. */
  async up(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#tcp.once('error', reject);
      this.#tcp.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#port = (this.#tcp.address() as AddressInfo).port;
  }

  /** Refuses connections and cuts those there are; what the API server has begun it ends. */
  async down(): Promise<void> {
    const closed = new Promise((resolve) => this.#tcp.close(resolve));
    this.cut();
    await closed;
  }

  /** Cuts all connections, each with FIN or RST. */
  cut(): void {
    for (const kind of this.#underWay.values()) this.#count(`cut ${kind}`);
    for (const socket of this.#sockets.values()) this.#end(socket);
  }

  count(name: string): number {
    return this.counts.get(name) ?? 0;
  }

  async stop(): Promise<void> {
    clearInterval(this.#ticker);
    this.mix = NO_FAULTS;
    if (this.#tcp.listening) await this.down();
    this.#agent.destroy();
  }

  #cutWhenDue(): void {
    const now = performance.now();
    const { cutEveryMs } = this.mix;
    if (cutEveryMs === 0) this.#cutAt = 0;
    else if (this.#cutAt === 0) this.#cutAt = now + cutEveryMs;
    else if (now >= this.#cutAt) {
      this.#cutAt = now + cutEveryMs;
      this.cut();
    }
  }

  #end(socket: Socket | undefined): void {
    if (this.#random() < 0.5) socket?.destroy();
    else socket?.resetAndDestroy();
  }

  #endOf({ socket }: IncomingMessage): void {
    this.#end(this.#sockets.get(socket.remotePort));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const isWatch = /[?&]watch=true(&|$)/.test(request.url ?? '');
    this.#underWay.set(response, isWatch ? 'watch' : 'request');
    response.once('close', () => this.#underWay.delete(response));
    response.on('error', () => {});
    const body = await buffer(request);
    const planned = this.plan?.({ method: request.method ?? '', path: request.url ?? '', body });
    if (planned !== undefined) {
      if (planned.at === 'after') await buffer(await this.#ask(request, body));
      planned.run?.();
      this.#endOf(request);
      return;
    }
    const { share, watchShare } = this.mix;
    if (isWatch) await this.#serveWatch(request, response, this.#draw(WATCH_FAULTS, watchShare, ['watch']));
    else await this.#serveRequest({ request, body }, response, this.#draw(REQUEST_FAULTS, share, ['before', 'after']));
  }

  /** One of those that were done least, so that none is left out by chance; `places` are how its counts end. */
  #draw(kinds: readonly Fault[], share: number, places: readonly string[]): Fault | undefined {
    if (this.#random() >= share) return undefined;
    const doneOf = (kind: Fault): number => places.reduce((sum, place) => sum + this.count(`${kind} ${place}`), 0);
    const least = Math.min(...kinds.map(doneOf));
    const rarest = kinds.filter((kind) => doneOf(kind) === least);
    return rarest[Math.floor(this.#random() * rarest.length)];
  }

  async #serveRequest(
    { request, body }: { request: IncomingMessage; body: Buffer },
    response: ServerResponse,
    fault: Fault | undefined,
  ): Promise<void> {
    const isBefore = fault !== undefined && fault !== 'truncated' && this.#random() < 0.5;
    if (isBefore) {
      this.#count(`${fault} before`);
      this.#inflict(request, response, fault);
      return;
    }
    const upstream = await this.#ask(request, body);
    const answer = await buffer(upstream);
    if (fault === undefined && this.#random() < this.mix.delayShare) {
      this.#count('delayed');
      await delay(this.#random() * this.mix.maxDelayMs);
    }
    if (fault !== undefined) this.#count(`${fault} after`);
    if (fault !== undefined && fault !== 'truncated') {
      this.#inflict(request, response, fault);
      return;
    }
    response.writeHead(upstream.statusCode ?? 502, { ...headersOf(upstream), 'content-length': answer.length });
    if (fault === undefined) response.end(answer);
    else response.write(answer.subarray(0, answer.length / 2), () => this.#endOf(request));
  }

  async #serveWatch(request: IncomingMessage, response: ServerResponse, fault: Fault | undefined): Promise<void> {
    const isInStream = fault === undefined || fault === '410 event' || fault === 'truncated';
    if (!isInStream) {
      this.#count(`${fault} watch`);
      this.#inflict(request, response, fault);
      return;
    }
    const upstream = await this.#ask(request);
    response.once('close', () => upstream.destroy());
    response.writeHead(upstream.statusCode ?? 502, headersOf(upstream));
    response.flushHeaders();
    const isGone = fault === '410 event';
    const timer = isGone ? setTimeout(() => this.#endWithGone(response, upstream), this.#random() * 4_000) : undefined;
    response.once('close', () => clearTimeout(timer));
    let left = fault === 'truncated' ? Math.floor(this.#random() * 3_000) : Number.POSITIVE_INFINITY;
    let line = Buffer.alloc(0);
    for await (const chunk of upstream) {
      // Whole lines only where an event is to come in between.
      line = Buffer.concat([line, chunk]);
      const end = isGone ? line.lastIndexOf(0x0a) + 1 : line.length;
      const part = line.subarray(0, Math.min(end, left));
      line = line.subarray(end);
      left -= part.length;
      if (part.length > 0) response.write(part);
      if (left > 0) continue;
      this.#count('truncated watch');
      response.write('', () => this.#endOf(request));
      return;
    }
    response.end();
  }

  #endWithGone(response: ServerResponse, upstream: IncomingMessage): void {
    this.#count('410 event watch');
    response.end(`${JSON.stringify({ type: 'ERROR', object: statusOf(410) })}\n`);
    upstream.destroy();
  }

  #inflict(request: IncomingMessage, response: ServerResponse, fault: Fault): void {
    if (fault === 'reset') {
      this.#endOf(request);
      return;
    }
    const [code, retryAfter] = fault.split(' ');
    const headers = { 'content-type': 'application/json', ...(retryAfter ? { 'retry-after': '1' } : {}) };
    response.writeHead(Number(code), headers).end(JSON.stringify(statusOf(Number(code))));
  }

  #ask(request: IncomingMessage, body?: Buffer): Promise<IncomingMessage> {
    const { method, headers, url } = request;
    return new Promise((resolve, reject) => {
      const target = new URL(url ?? '/', this.#upstream);
      const asked = sendRequest(target, { method, headers: { ...headers, host: target.host }, agent: this.#agent });
      asked.once('response', resolve).once('error', reject);
      asked.end(body);
    });
  }

  #count(name: string): void {
    this.counts.set(name, this.count(name) + 1);
  }
}

function headersOf({ headers }: IncomingMessage): IncomingHttpHeaders {
  const { connection: _c, 'keep-alive': _k, 'transfer-encoding': _t, 'content-length': _l, ...rest } = headers;
  return rest;
}

function statusOf(code: number) {
  const reason = REASONS[code];
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code, reason, message: 'by the proxy' };
}
