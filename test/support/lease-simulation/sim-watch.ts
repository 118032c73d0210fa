import type { KubeObject, LeaseObject } from '../../../src/kube/objects.ts';
import { InformerStore } from '../../../src/kube/watch/informer.ts';
import { type Informer, type InformerHandler, objectKey } from '../../../src/kube/watch/informer-types.ts';
import { COMPONENT_LABEL, ENV_LABEL } from '../../../src/labels.ts';
import { type CachedLease, LEASES_PATH, projectLease } from '../../../src/lease/lease.ts';
import type { Host } from './host.ts';
import type { LeaseEvent, LeaseServer } from './lease-server.ts';
import type { Link, ServerMachine } from './link.ts';
import type { Dice } from './timeline.ts';

export const ENV = 'dev';

export interface SimWatchOptions {
  readonly host: Host;
  readonly link: Link;
  readonly server: LeaseServer;
  readonly machine: ServerMachine;
  readonly dice: Dice;
  /** Whose lease is handed over first when all is listed anew. */
  readonly ownName: string;
}

const RECONNECT_MS = 600;
/** As the watch of leases has it: nothing for so long, and it is begun anew. */
const SILENCE_MS = 15_000;
const BOOKMARK_MS = 20_000;
const MAX_PACE_MS = 200;

type Item = () => void | Promise<void>;

/** The namespace of the path that production asks for; undefined = all, and then nothing of the below is hidden. */
const WATCHED = /namespaces\/([^/]+)/.exec(LEASES_PATH)?.[1];

/** Whether the server shows it to the watch that production asks for. */
function isSelected({ metadata }: LeaseObject): boolean {
  const isThere = WATCHED === undefined || metadata.namespace === WATCHED;
  return isThere && metadata.labels?.[COMPONENT_LABEL] !== undefined && metadata.labels[ENV_LABEL] === ENV;
}

/** The real cache behind a watch that may lag, hang, break, and begin with a list again. */
export class SimWatch implements Informer<CachedLease> {
  readonly #options: SimWatchOptions;
  readonly #store: InformerStore<CachedLease>;
  /** What came over the stream and was not looked at yet, in order. */
  #stream: Item[] = [];
  #isReading = false;
  /** Counts connections; 0 = none. */
  #connection = 0;
  #connections = 0;
  #arrivesAt = 0;
  #heardAt = 0;
  /** Everything up to it was handed over; 0 = nothing was listed yet. */
  #version = 0;
  #synced = Promise.withResolvers<boolean>();
  /** Of what hangs. */
  #held: (() => void)[] | undefined;
  lagMs = 0;
  mustList = true;

  constructor(options: SimWatchOptions) {
    this.#options = options;
    const onHandlerError = (error: unknown): never => {
      throw error;
    };
    this.#store = new InformerStore({ clock: options.host, indexers: {}, onHandlerError, onSizeChange: () => {} });
  }

  start(): void {
    this.#connect();
    this.#guard();
    this.#bookmark();
  }

  /** The server tells something. */
  push(event: LeaseEvent): void {
    if (this.#connection > 0) this.#sendEvent(event);
  }

  /** Nothing arrives any more, though the connection stands. */
  hang(): void {
    this.#held ??= [];
  }

  unhang(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const arrive of held) arrive();
  }

  cut(): void {
    if (this.#connection === 0) return;
    this.#connection = 0;
    this.#held = undefined;
    this.#reconnectSoon();
  }

  #reconnectSoon(): void {
    const { host, dice } = this.#options;
    host.timeline.after(dice.below(RECONNECT_MS), () => this.#enqueue(() => this.#connect()));
  }

  #connect(): void {
    const { host, link, machine } = this.#options;
    if (link.brokenBy !== undefined || machine.isFrozen) {
      this.#reconnectSoon();
      return;
    }
    host.timeline.after(link.latencyMs(), () => {
      if (link.brokenBy !== undefined || machine.isFrozen) this.#reconnectSoon();
      else this.#open();
    });
  }

  /** At the server. */
  #open(): void {
    const { server, host } = this.#options;
    this.#connection = ++this.#connections;
    this.#arrivesAt = host.timeline.now;
    this.#heardAt = host.timeline.now;
    if (this.#version === 0 || this.mustList) this.#sendList();
    else for (const event of server.log.filter(({ version }) => version > this.#version)) this.#sendEvent(event);
  }

  #sendEvent({ type, version, object }: LeaseEvent): void {
    if (WATCHED !== undefined && object.metadata.namespace !== WATCHED) return;
    const lease = projectLease(object, ENV);
    // To a watch, what no longer matches its selector is deleted.
    const isPut = type === 'PUT' && isSelected(object);
    this.#send(() => {
      if (isPut) this.#store.put(lease);
      else this.#store.remove(lease);
      this.#progress(version);
    });
  }

  /** Several changes are one; between any two objects there is time, and the answers to our own writes may come. */
  #sendList(): void {
    const { server, dice, ownName } = this.#options;
    this.mustList = false;
    const isOwn = ({ metadata }: LeaseObject): boolean => metadata.name === ownName;
    const watched = [...server.leases.values()].filter(isSelected);
    const leases = dice.shuffled(watched).sort((a, b) => Number(isOwn(b)) - Number(isOwn(a)));
    const { version } = server;
    const listed = leases.map((lease) => projectLease(lease, ENV));
    // A long list is taken in slices, and a machine may have other work.
    const paceMs = dice.chance(0.5) ? dice.below(MAX_PACE_MS) : 0;
    for (const lease of listed) this.#send(() => void this.#store.put(lease), paceMs);
    this.#send(async () => {
      await this.#store.replace(new Map(listed.map((lease) => [objectKey(lease), lease])), false);
      this.#progress(version);
      this.#synced.resolve(true);
    });
  }

  #progress(version: number): void {
    this.#version = version;
    this.#store.progressed(String(version));
  }

  #send(item: Item, paceMs = 0): void {
    const { host, link } = this.#options;
    const connection = this.#connection;
    const arrive = (): void => {
      if (connection !== this.#connection) return;
      if (this.#held) {
        this.#held.push(arrive);
        return;
      }
      this.#heardAt = host.timeline.now;
      this.#enqueue(item);
    };
    this.#arrivesAt = Math.max(this.#arrivesAt, host.timeline.now + link.latencyMs() + this.lagMs) + paceMs;
    host.timeline.after(this.#arrivesAt - host.timeline.now, arrive);
  }

  #enqueue(item: Item): void {
    this.#stream.push(item);
    this.#options.host.deliver(() => void this.#read());
  }

  /** One item; the next one not before it is done. */
  async #read(): Promise<void> {
    if (this.#isReading)
      return this.#options.host.timeline.after(0.1, () => this.#options.host.deliver(() => void this.#read()));
    const item = this.#stream.shift();
    this.#isReading = true;
    await item?.();
    this.#isReading = false;
  }

  /** A watch that is silent for too long is begun anew. */
  #guard(): void {
    const { host } = this.#options;
    const look = (): void => {
      if (this.#connection > 0 && host.timeline.now - this.#heardAt >= SILENCE_MS) this.cut();
      host.setTimer(look, 1_000);
    };
    host.setTimer(look, 1_000);
  }

  #bookmark(): void {
    const { host, server, machine } = this.#options;
    const tell = (): void => {
      if (host.isDead) return;
      const { version } = server;
      if (this.#connection > 0 && this.#version > 0 && !machine.isFrozen) this.#send(() => this.#progress(version));
      host.timeline.after(BOOKMARK_MS, tell);
    };
    host.timeline.after(BOOKMARK_MS, tell);
  }

  addHandler(handler: InformerHandler<CachedLease>): void {
    this.#store.addHandler(handler);
  }

  get(key: string): CachedLease | undefined {
    return this.#store.get(key);
  }

  list(): readonly CachedLease[] {
    return this.#store.list();
  }

  byIndex(index: string, value: string): readonly CachedLease[] {
    return this.#store.byIndex(index, value);
  }

  hasSynced(): boolean {
    return this.#version > 0;
  }

  whenSynced(): Promise<boolean> {
    return this.#synced.promise;
  }

  lastEventAgeMs(): number {
    return this.#options.host.timeline.now - this.#heardAt;
  }

  /** The server never goes back. */
  wasRolledBack(): void {
    throw new Error('nothing was rolled back');
  }

  /** Leases have no grace period. */
  expectDeletion(): () => void {
    return () => {};
  }

  upsert(raw: KubeObject): void {
    this.#store.upsert(projectLease(raw, ENV));
  }
}
