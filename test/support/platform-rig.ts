import { request } from 'node:https';
import { text as textOf } from 'node:stream/consumers';
import { expect } from 'vitest';
import { isCollectionOf } from '../../src/assembly/controller-parts.ts';
import { type Config, loadConfig } from '../../src/config/config.ts';
import { ControllerError } from '../../src/errors.ts';
import type { KubeObject, OwnerReference } from '../../src/kube/objects.ts';
import { apiVersionOf, type ResourceClient, type ResourceKind } from '../../src/kube/resource.ts';
import { type CachedObject, metaOf, objectKey } from '../../src/kube/watch/informer-types.ts';
import { Manager } from '../../src/manager.ts';
import { createMetrics } from '../../src/metrics.ts';
import { type KindAccess, resourceOf } from '../../src/reconcile/access.ts';
import type { ControllerDefinition } from '../../src/reconcile/controller-definition.ts';
import type { WatchedKind } from '../../src/reconcile/informers.ts';
import { type WebhookRule, Webhooks } from '../../src/reconcile/webhooks.ts';
import { feedServer } from '../../src/server/feed-server.ts';
import { recordingLogger } from '../unit/tunnels/mqtt/mqtt-world.ts';
import { FakeClock, settle } from './fake-clock.ts';
import { FakeInformer } from './fake-informer.ts';
import { FakeObjects } from './fake-objects.ts';

type Stored = FakeObjects<KubeObject, CachedObject>;

/** The environment of a process in which every controller can be built. */
const ENVIRONMENT = {
  CONTROLLERS: 'all',
  ENABLE_HTTP_TUNNEL: 'true',
  POD_NAME: 'p',
  POD_NAMESPACE: 'koupleless-system',
};

const VERB_OF = {
  get: 'get',
  list: 'list',
  create: 'create',
  update: 'update',
  apply: 'patch',
  mergePatch: 'patch',
  strategicPatch: 'patch',
  jsonPatch: 'patch',
  delete: 'delete',
} as const;

/**
 * One controller, built from its definition on an API server in memory. It records what the controller does with the
 * API, so that a test can compare it with what the definition declares.
 */
export class PlatformRig {
  readonly clock = new FakeClock();
  /** `pods create`, `apps/deployments/scale patch`. */
  readonly used = new Set<string>();
  /** Writes, in the words of `used`, that did not ask whether this process may write. */
  readonly unpermitted = new Set<string>();
  /** `Deployment Normal PeerScaled`. */
  readonly events: string[] = [];
  readonly webhooks = new Webhooks();
  readonly #definition: ControllerDefinition;
  readonly #config: Config;
  /** By `group/plural`. */
  readonly #stored: Map<string, Stored>;
  /** The next write of a controller, or of a kind alone, gets no answer: before it has happened (false), or after it (true). */
  readonly #fault: { next: boolean | undefined; kind?: string | undefined };
  readonly #writeListeners = new Map<string, () => void>();
  readonly #metrics = createMetrics();
  readonly #kinds = new Map<string, ResourceKind>();
  readonly #informers = new Map<object, FakeInformer<CachedObject>>();
  readonly #lost = new Set<string>();
  readonly #statuses = new Map<string, object>();
  readonly #refusals = new Map<string, Error>();
  readonly #reads = new Map<string, (object: KubeObject) => KubeObject>();
  readonly #stopping = new AbortController();
  readonly #log = recordingLogger();
  #running: Promise<unknown> = Promise.resolve();
  #isLeader = false;

  /** `former`: a process that has ended, whose objects this one finds. */
  constructor(
    definition: ControllerDefinition,
    known: readonly string[],
    env: Readonly<Record<string, string>> = {},
    former?: PlatformRig,
  ) {
    this.#definition = definition;
    this.#stored = former === undefined ? new Map() : former.#stored;
    this.#fault = former === undefined ? { next: undefined } : former.#fault;
    this.#config = loadConfig({ ...ENVIRONMENT, ...env }, 'host', known);
  }

  /** Builds the controller and starts all of its parts, servers too. */
  async start(): Promise<void> {
    const { name, webhooks = [] } = this.#definition;
    const built = await this.#definition.build({
      config: this.#config,
      version: '1.0.0',
      informers: {
        get: <T extends CachedObject>(watched: WatchedKind<T>) => this.#informer(watched as never) as never,
      },
      resources: { of: <T extends KubeObject>(kind: ResourceKind) => this.#client(kind) as never as ResourceClient<T> },
      leader: () => {
        this.#isLeader = true;
        return { isLeading: () => true, addListener: ({ onStarted }: { onStarted(): void }) => onStarted() } as never;
      },
      permit: () => true,
      recorder: { event: ({ kind }, type, reason) => void this.events.push(`${kind} ${type} ${reason}`) },
      webhooks: this.webhooks.registryOf(name, webhooks, () => true),
      reviews: this.webhooks,
      clock: this.clock,
      logger: this.#log.logger,
      metrics: this.#metrics,
    });
    const { feed } = this.#config;
    const served = (built.served ?? []).map((one) => ({ ...one, isReady: () => true }));
    const server =
      feed &&
      (await feedServer({ ...feed, served, clock: this.clock, logger: this.#log.logger, metrics: this.#metrics }));
    const groups = [...built.groups, server ?? []];
    const manager = new Manager({ groups, graceMs: 10_000, clock: this.clock, logger: this.#log.logger });
    this.#running = manager.run(this.#stopping.signal);
    await settle();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /** Whether the controller has asked for a Lease. */
  get leads(): boolean {
    return this.#isLeader;
  }

  missingWebhooks(): WebhookRule[] {
    return this.webhooks.missing(this.#definition.webhooks ?? []);
  }

  /** Stores an object, as a user or another controller would, and rests. */
  async put(kind: ResourceKind, object: KubeObject, seconds?: number): Promise<void> {
    this.#storeOf(kind).put({ apiVersion: apiVersionOf(kind), kind: kind.kind, ...object } as never);
    this.#kinds.set(kind.kind, kind);
    await this.rest(seconds);
  }

  async remove(kind: ResourceKind, name: string): Promise<void> {
    this.#storeOf(kind).remove(name);
    await this.rest();
  }

  all(kind: ResourceKind): KubeObject[] {
    return this.#storeOf(kind).all;
  }

  /** The next create of the kind gets no answer, and its caches learn of the object only when one is read. */
  loseNextCreate({ kind }: ResourceKind): void {
    this.#lost.add(kind);
  }

  /** Changes each object of a kind that is applied or patched, as a mutating webhook does; what it throws is the answer. */
  changeApplied(kind: ResourceKind, change: (object: KubeObject, isPatch: boolean) => KubeObject): void {
    this.#storeOf(kind).onApply = change;
  }

  /** Each such call about the objects of a kind themselves is refused. */
  refuse({ kind }: ResourceKind, method: keyof typeof VERB_OF, error: Error): void {
    this.#refusals.set(`${kind} ${method}`, error);
  }

  /** The next write of a controller, or of a kind alone, gets no answer. `isDone`: it happens all the same. Undefined: it gets one. */
  loseNextAnswer(isDone: boolean | undefined, kind?: Pick<ResourceKind, 'group' | 'plural'>): void {
    this.#fault.next = isDone;
    this.#fault.kind = kind && storeKeyOf(kind);
  }

  /** Called after each write of a controller about a kind. */
  onWrite(kind: ResourceKind, listener: () => void): void {
    this.#writeListeners.set(storeKeyOf(kind), listener);
  }

  /** Number of reconciles of a loop. */
  async reconcilesOf(controller: string): Promise<number> {
    const { values } = await this.#metrics.reconciles.get();
    return values.reduce((sum, { labels, value }) => sum + (labels.controller === controller ? value : 0), 0);
  }

  /** What the API server answers to each create of a kind that it does not store. */
  answer({ kind }: ResourceKind, status: object): void {
    this.#statuses.set(kind, status);
  }

  /** Where a server of the controller listens. */
  async portOf(server: string): Promise<number> {
    const isIt = (line: Record<string, unknown>): boolean => line.msg === 'listening' && line.server === server;
    await expect.poll(() => this.#log.lines.some(isIt)).toBe(true);
    return Number(this.#log.lines.find(isIt)?.port);
  }

  /** Asks the feed of the controller with a token; answers with the status and the text. */
  async askFeed(path: string, token = 'some-token'): Promise<{ status: number | undefined; text: string }> {
    const port = await this.portOf('feed');
    const headers = { authorization: `Bearer ${token}` };
    return new Promise((resolve, reject) => {
      const asked = request({ port, host: '127.0.0.1', path, headers, rejectUnauthorized: false }, async (answer) => {
        resolve({ status: answer.statusCode, text: await textOf(answer) });
      });
      asked.once('error', reject).end();
    });
  }

  /** Changes each object of a kind that is read by itself, as one that the watch does not show yet; what it throws is the answer. */
  changeRead({ kind }: ResourceKind, change: (object: KubeObject) => KubeObject): void {
    this.#reads.set(kind, change);
  }

  /** Waits for work that takes real time, such as making keys. */
  async untilUsed(use: string): Promise<void> {
    await expect
      .poll(async () => {
        await this.rest();
        return this.used.has(use);
      })
      .toBe(true);
  }

  /** Lets the loops work, over some seconds of their clock. */
  async rest(seconds = 5): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      await settle();
      this.clock.advance(1_000);
    }
    await settle();
  }

  #informersOf(kind: ResourceKind): FakeInformer<CachedObject>[] {
    return [...this.#informers]
      .filter(([watched]) => isCollectionOf(kind, (watched as WatchedKind<CachedObject>).path))
      .map(([, informer]) => informer);
  }

  #informer(watched: WatchedKind<CachedObject>): FakeInformer<CachedObject> {
    const known = this.#informers.get(watched);
    if (known) return known;
    const access = this.#definition.access.find(({ kind }) => isCollectionOf(kind, watched.path));
    for (const verb of ['list', 'watch']) this.#note(access ?? unknownOf(watched.path), verb);
    const project = (raw: KubeObject): CachedObject => watched.project(raw, this.#config);
    const informer = new FakeInformer<CachedObject>(this.clock, project, watched.indexers as never);
    const [group = '', plural = ''] = [access?.kind.group, access?.kind.plural];
    const fits = selects(watched.labelSelector?.(this.#config));
    const stored = this.#storeOf({ group, plural });
    for (const object of stored.all) if (fits(object)) informer.deliver({ type: 'PUT', object });
    stored.addListener((event) => {
      if (fits(event.object)) informer.deliver(event);
      // As the API server: what is not selected any more is deleted for this watch.
      else if (informer.get(objectKey(metaOf(event.object))))
        informer.deliver({ type: 'DELETED', object: event.object });
    });
    this.#informers.set(watched, informer);
    return informer;
  }

  #onWrite(isDone: boolean, key: string): void {
    if (isDone) this.#writeListeners.get(key)?.();
    const { next, kind = key } = this.#fault;
    if (next !== isDone || kind !== key) return;
    this.#fault.next = undefined;
    throw new ControllerError('Kube.ConnectionFailed', 'no answer');
  }

  #storeOf(kind: Pick<ResourceKind, 'group' | 'plural'>): Stored {
    const key = storeKeyOf(kind);
    const known = this.#stored.get(key);
    if (known) return known;
    const created: Stored = new FakeObjects({ project: metaOf, onWrite: (isDone) => this.#onWrite(isDone, key) });
    this.#stored.set(key, created);
    return created;
  }

  #client(kind: ResourceKind): ResourceClient<KubeObject> {
    this.#kinds.set(kind.kind, kind);
    const stored = this.#storeOf(kind);
    const client = stored.client(({ metadata }) => stored.remove(metadata.name));
    const calls = client as never as Record<string, (...all: unknown[]) => Promise<unknown>>;
    const noted = Object.entries(VERB_OF).map(([method, verb]) => [
      method,
      async (...args: readonly { readonly subresource?: KindAccess['subresource'] }[]) => {
        const subresource = args.find((arg) => arg?.subresource !== undefined)?.subresource;
        const access = { kind, ...(subresource && { subresource }) };
        this.#note(access, verb);
        if (method === 'apply') this.#noteApply(access, args[0] as unknown as KubeObject);
        this.#checkPermit(access, verb, args);
        if (verb === 'get') for (const informer of this.#informersOf(kind)) informer.resume();
        const call = (): Promise<unknown> =>
          this.#answer(kind, method as keyof typeof VERB_OF, subresource, () => calls[method]?.(...args));
        return verb === 'create' ? this.#create(kind, args[0] as unknown as KubeObject, call) : call();
      },
    ]);
    const setReplicas: ResourceClient<KubeObject>['setReplicas'] = (...args) => {
      const access = { kind, subresource: 'scale' } as const;
      this.#note(access, 'patch');
      this.#checkPermit(access, 'patch', args);
      return client.setReplicas(...args);
    };
    return { ...Object.fromEntries(noted), setReplicas };
  }

  async #answer(
    { kind }: ResourceKind,
    method: keyof typeof VERB_OF,
    subresource: KindAccess['subresource'],
    call: () => Promise<unknown> | undefined,
  ): Promise<unknown> {
    const refusal = subresource === undefined ? this.#refusals.get(`${kind} ${method}`) : undefined;
    if (refusal !== undefined) throw refusal;
    const answer = await call();
    const change = method === 'get' ? this.#reads.get(kind) : undefined;
    return change === undefined ? answer : change(answer as KubeObject);
  }

  async #create(kind: ResourceKind, object: KubeObject, call: () => Promise<unknown>): Promise<unknown> {
    this.#noteOwners(object);
    const status = this.#statuses.get(kind.kind);
    if (status !== undefined) return { ...object, status };
    if (!this.#lost.delete(kind.kind)) return call();
    for (const informer of this.#informersOf(kind)) informer.isPaused = true;
    await call();
    throw new ControllerError('Kube.ConnectionFailed', 'no answer');
  }

  /** The API server asks for both rights where a server-side apply creates the object. */
  #noteApply(access: Pick<KindAccess, 'kind' | 'subresource'>, object: KubeObject): void {
    if (this.#storeOf(access.kind).all.some(({ metadata }) => metadata.name === object.metadata.name)) return;
    this.#note(access, 'create');
    this.#noteOwners(object);
  }

  /** An owner reference that holds up a deletion needs a right about the owner. */
  #noteOwners({ metadata }: KubeObject): void {
    for (const { kind, blockOwnerDeletion } of (metadata.ownerReferences ?? []) as OwnerReference[]) {
      const owner = this.#kinds.get(kind);
      if (blockOwnerDeletion && owner) this.#note({ kind: owner, subresource: 'finalizers' }, 'update');
    }
  }

  #checkPermit(access: Pick<KindAccess, 'kind' | 'subresource'>, verb: string, args: readonly unknown[]): void {
    if (verb === 'get' || verb === 'list') return;
    const hasPermit = args.some((arg) => typeof (arg as { permit?: unknown } | undefined)?.permit === 'function');
    if (!hasPermit) this.unpermitted.add(`${resourceOf(access)} ${verb}`);
  }

  #note(access: Pick<KindAccess, 'kind' | 'subresource'>, verb: string): void {
    this.used.add(`${resourceOf(access)} ${verb}`);
  }
}

function storeKeyOf({ group, plural }: Pick<ResourceKind, 'group' | 'plural'>): string {
  return `${group}/${plural}`;
}

/** What the definition declares, in the words of `PlatformRig.used`. */
export function declaredUses({ access }: Pick<ControllerDefinition<never>, 'access'>): Set<string> {
  return new Set(access.flatMap((one) => one.verbs.map((verb) => `${resourceOf(one)} ${verb}`)));
}

function unknownOf(path: string): Pick<KindAccess, 'kind'> {
  return { kind: { group: path, plural: '' } };
}

/** Only `key=value` and `key`, which is all that the platform selects by. */
function selects(selector: string | undefined): (object: KubeObject) => boolean {
  const terms = selector?.split(',').map((term) => term.split('=')) ?? [];
  return ({ metadata }) =>
    terms.every(([key = '', value]) => {
      const own = metadata.labels?.[key];
      return value === undefined ? own !== undefined : own === value;
    });
}
