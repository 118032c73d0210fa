import { createServer, type Server, type Socket } from 'node:net';
import { Aedes, type AedesOptions, type AedesPublishPacket, type AuthenticateError } from 'aedes';
import { type Clock, systemClock } from '../../src/clock.ts';
import type { MqttBroker } from './mqtt-broker.ts';
import { PublishRecorder, type RecordedPublish } from './recorder.ts';

export interface BrokerOptions {
  /** Default 0: a free port. */
  port?: number;
  /** Default 127.0.0.1. */
  host?: string;
  /** Default: every client may connect. */
  credentials?: { username: string; password: string };
  /** Default true; `broker.recorder.enabled` turns it off and on later. */
  record?: boolean;
  /** Default true: records hold the payloads. */
  recordPayloads?: boolean;
  /** Default `systemClock`. */
  clock?: Clock;
}

/** What becomes of a message: dropped, delivered late, or (undefined) delivered. */
export type Fate = 'drop' | { delayMs: number } | undefined;
export type Interceptor = (message: RecordedPublish) => Fate;

/** The parts of aedes that its types leave out; see `#route` for why they are needed. */
interface AedesInternals {
  counter: number;
  /** By id. One that took the id of another and went at once stays here for good, closed, and is counted for good. */
  clients: Record<string, { readonly closed: boolean; readonly conn: Socket }>;
  mq: { emit(packet: AedesPublishPacket, done: (error?: Error | null) => void): unknown };
}

/** An MQTT 3.1.1 broker inside this process, for the demo and for tests. */
export class Broker implements MqttBroker {
  readonly recorder: PublishRecorder;
  readonly #options: BrokerOptions;
  readonly #clock: Clock;
  readonly #aedes: Aedes;
  readonly #sockets = new Set<Socket>();
  /** Delayed messages that are still to come. Emptied by their timers and by `stop`. */
  readonly #delayed = new Set<{ cancel(): void }>();
  #server: Server | undefined;
  #port = 0;
  #interceptor: Interceptor | undefined;
  #isRefused: (clientId: string) => boolean = () => false;

  constructor(options: BrokerOptions = {}) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.recorder = new PublishRecorder({
      enabled: options.record ?? true,
      payloads: options.recordPayloads ?? true,
      clock: this.#clock,
    });
    this.#aedes = new Aedes(this.#aedesOptions());
    this.#route();
  }

  get port(): number {
    return this.#port;
  }

  get url(): string {
    return `mqtt://${this.#options.host ?? '127.0.0.1'}:${this.#port}`;
  }

  async start(): Promise<void> {
    await this.#aedes.listen();
    await this.#listen(this.#options.port ?? 0);
  }

  /** Ids of the clients that are connected now. */
  clientIds(): string[] {
    const { clients } = this.#aedes as unknown as AedesInternals;
    return Object.keys(clients).filter((id) => clients[id]?.closed === false);
  }

  /** Stops listening and cuts every connection, as a broker that went down; resolves when no client is left. */
  async pause(): Promise<void> {
    const server = this.#server;
    if (!server) return;
    this.#server = undefined;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
    await this.#untilNobodyIsConnected();
  }

  /** Listens again on the port of before. */
  async resume(): Promise<void> {
    if (!this.#server) await this.#listen(this.#port);
  }

  /** May be called again. Delayed messages are dropped. */
  async stop(): Promise<void> {
    for (const timer of this.#delayed) timer.cancel();
    this.#delayed.clear();
    await this.pause();
    await new Promise<void>((resolve) => this.#aedes.close(() => resolve()));
  }

  /** Decides the fate of each message from now on; undefined ends it. */
  intercept(interceptor: Interceptor | undefined): void {
    this.#interceptor = interceptor;
  }

  /** Refuses matching clients with "not authorized" and cuts those that are connected; undefined ends it. */
  refuse(isRefused: ((clientId: string) => boolean) | undefined): void {
    this.#isRefused = isRefused ?? (() => false);
    if (!isRefused) return;
    for (const id of this.clientIds()) if (isRefused(id)) this.cut(id);
  }

  /** Cuts one client's connection. False when no such client is connected. */
  cut(clientId: string): boolean {
    const client = (this.#aedes as unknown as AedesInternals).clients[clientId];
    client?.conn.destroy();
    return client !== undefined;
  }

  #aedesOptions(): AedesOptions {
    return {
      // 0 = no bound. With the default of 100 a frozen subscriber holds up the messages of all others.
      concurrency: 0,
      // A frozen subscriber is cut after this time, so that its unsent messages do not pile up for ever.
      drainTimeout: 60_000,
      // Packets that a client may send before its session stands; above the default of 42 aedes cuts the client.
      queueLimit: 10_000,
      authenticate: (client, username, password, done) => {
        const error = this.#refusalOf(client.id, username, password?.toString());
        done(error ?? null, error === undefined);
      },
    };
  }

  #refusalOf(clientId: string, username?: string, password?: string): AuthenticateError | undefined {
    if (this.#isRefused(clientId)) return Object.assign(new Error('not authorized'), { returnCode: 5 });
    const wanted = this.#options.credentials;
    if (!wanted || (wanted.username === username && wanted.password === password)) return undefined;
    return Object.assign(new Error('bad user name or password'), { returnCode: 4 });
  }

  /**
   * Puts our hook where aedes hands a message to its subscribers, and there
   * - numbers the message anew: aedes numbered it on arrival and drops what a subscriber gets out of order as a
   *   duplicate, so a delayed message would be lost;
   * - lets the publisher go on at once: aedes would make it wait for its slowest subscriber.
   */
  #route(): void {
    const aedes = this.#aedes as unknown as AedesInternals;
    const emit = aedes.mq.emit.bind(aedes.mq);
    const deliver = (packet: AedesPublishPacket): void => {
      packet.brokerCounter = ++aedes.counter;
      emit(packet, () => {});
    };
    aedes.mq.emit = (packet, done) => {
      setImmediate(done);
      if (packet.topic.startsWith('$SYS/')) return deliver(packet);
      const message = this.recorder.describe(packet);
      const fate = this.#interceptor?.(message);
      this.recorder.add(fate === 'drop' ? { ...message, isDropped: true } : message);
      if (fate === 'drop') return;
      if (fate === undefined) return deliver(packet);
      this.#deliverLater(() => deliver(packet), fate.delayMs);
    };
  }

  #deliverLater(deliver: () => void, delayMs: number): void {
    const timer = this.#clock.setTimer(() => {
      this.#delayed.delete(timer);
      deliver();
    }, delayMs);
    this.#delayed.add(timer);
  }

  async #listen(port: number): Promise<void> {
    const server = createServer({ noDelay: true }, (socket) => {
      // It waited in the kernel's queue when `pause` was called; left open, it would keep `pause` from ending.
      if (this.#server !== server) {
        socket.destroy();
        return;
      }
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      this.#aedes.handle(socket);
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      // The default backlog of 511 refuses part of a fleet that connects at one moment.
      server.listen({ port, host: this.#options.host ?? '127.0.0.1', backlog: 4096 }, resolve);
    });
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('port: the broker has no TCP address');
    this.#port = address.port;
    this.#server = server;
  }

  #untilNobodyIsConnected(): Promise<void> {
    return new Promise((resolve) => {
      const check = (): void => {
        if (this.clientIds().length > 0) return;
        this.#aedes.removeListener('clientDisconnect', check);
        resolve();
      };
      this.#aedes.on('clientDisconnect', check);
      check();
    });
  }
}

export async function startBroker(options: BrokerOptions = {}): Promise<Broker> {
  const broker = new Broker(options);
  await broker.start();
  return broker;
}
