import { ControllerError } from '../../src/errors.ts';
import type { KubeClient, Patch } from '../../src/kube/client.ts';
import type { ConfigMapObject, KubeObject, LeaseObject, NodeObject, PodObject, Taint } from '../../src/kube/objects.ts';
import { ApiError } from '../../src/kube/transport/api-error.ts';
import type { Permit } from '../../src/kube/transport/rest-lane.ts';
import { COMPONENT, COMPONENT_LABEL } from '../../src/labels.ts';
import { copyOf } from './copy.ts';
import type { WatchEvent } from './fake-informer.ts';

type WatchedKind = 'node' | 'pod' | 'lease';
type Kind = WatchedKind | 'configmap';
type Json = Record<string, unknown>;

interface Fault {
  readonly match: string;
  readonly error: Error;
  /** The write happens, only its answer is lost. */
  readonly isDone: boolean;
  times: number;
}

export const apiError = (status: number, reason = ''): ApiError => new ApiError(`answer ${status}`, { status, reason });
const uidError = (): ApiError =>
  new ApiError('wrong uid', { status: 422, reason: 'Invalid', causes: [{ field: 'metadata.uid' }] });
const lost = (): ControllerError => new ControllerError('Kube.ConnectionFailed', 'no whole answer');

/** An API server in memory for the calls of KubeClient, with UID and version preconditions, and faults on order. */
export class FakeApi implements KubeClient {
  readonly objects = new Map<string, KubeObject>();
  /** What was asked, e.g. `patch pod/status ns/p1`, and how it ended when not well: `… = 500`. */
  readonly requests: string[] = [];
  /** Awaited before a request is answered. */
  delay: (request: string) => Promise<void> | undefined = () => undefined;
  /** As Kubernetes 1.33 does with the statuses of Pods. */
  dropsObservedGeneration = false;
  readonly #faults: Fault[] = [];
  readonly #onChange: (kind: WatchedKind, event: WatchEvent) => void;
  #version = 100;
  #uid = 1;

  constructor(onChange: (kind: WatchedKind, event: WatchEvent) => void) {
    this.#onChange = onChange;
  }

  /** The next `times` requests that begin with `match` are answered with `status`. */
  fail(match: string, status: number, times = 1, reason = ''): void {
    this.#faults.push({ match, error: apiError(status, reason), isDone: false, times });
  }

  /** The next request that begins with `match` is executed, but its answer is lost. */
  loseAnswer(match: string): void {
    this.#faults.push({ match, error: lost(), isDone: true, times: 1 });
  }

  heal(): void {
    this.#faults.length = 0;
  }

  /** The requests since the last call of it that begin with `prefix`. */
  take(prefix = ''): string[] {
    const taken = this.requests.filter((request) => request.startsWith(prefix));
    this.requests.length = 0;
    return taken;
  }

  /** Taints that the API server gives each new Node. */
  newNodeTaints: readonly Taint[] = [];

  node(name: string): NodeObject | undefined {
    return this.objects.get(`node ${name}`) as NodeObject | undefined;
  }

  /** `name` alone is in the namespace `ns`. */
  pod(name: string): PodObject | undefined {
    return this.objects.get(podKeyOf(name)) as PodObject | undefined;
  }

  lease(name: string): LeaseObject | undefined {
    return this.objects.get(`lease ${name}`) as LeaseObject | undefined;
  }

  /** The records of first contacts: by ConfigMap, its `data`. */
  configMaps(): Record<string, Record<string, string>> {
    const found = [...this.objects].filter(([key]) => key.startsWith('configmap '));
    return Object.fromEntries(found.map(([key, map]) => [key.slice(10), { ...(map as ConfigMapObject).data }]));
  }

  /** As another client would write it. */
  put(kind: Kind, object: KubeObject): void {
    const old = this.objects.get(keyOf(kind, object));
    const metadata = { ...object.metadata, uid: object.metadata.uid ?? old?.metadata.uid ?? `u${this.#uid++}` };
    this.#save(kind, { ...object, metadata });
  }

  /** As another client would delete it. */
  drop(kind: Kind, name: string): void {
    const key = kind === 'pod' ? podKeyOf(name) : `${kind} ${name}`;
    const object = this.objects.get(key);
    if (object === undefined) throw new Error(`no ${key}`);
    this.objects.delete(key);
    this.#changed(kind, { type: 'DELETED', object: { ...object, metadata: this.#stamped(object) } });
  }

  getNode = (name: string) => this.#ask('get node', name, () => this.#get('node', name)) as Promise<NodeObject>;
  createNode = (node: NodeObject, permit?: Permit) => {
    const taints = [...(node.spec?.taints ?? []), ...this.newNodeTaints];
    return this.#create('node', { ...node, spec: { ...node.spec, taints } }, permit);
  };
  patchNode = (name: string, patch: Patch, permit?: Permit) =>
    this.#patch('node', '', name, { patch, permit }) as Promise<NodeObject>;
  patchNodeStatus = (name: string, patch: Patch, permit?: Permit) =>
    this.#patch('node', '/status', name, { patch, permit }) as Promise<NodeObject>;
  deleteNode = (name: string, uid: string, permit?: Permit) => this.#delete('node', name, { uid }, permit);
  listPods = <T>(_labelSelector: string, project: (pod: PodObject) => T): Promise<T[]> =>
    this.#ask('list pods', '', () => this.#pods().map(project));
  listPodsAt = (ip: string): Promise<PodObject[]> =>
    this.#ask('find pods', ip, () =>
      this.#pods().filter(
        ({ metadata, status }) => status?.podIP === ip && metadata.labels?.[COMPONENT_LABEL] !== COMPONENT.module,
      ),
    );
  patchPodStatus = (namespace: string, name: string, patch: Patch, permit?: Permit) =>
    this.#patch('pod', '/status', `${namespace}/${name}`, { patch, permit }) as Promise<PodObject>;
  forceDeletePod = (namespace: string, name: string, uid: string, permit?: Permit) =>
    this.#delete('pod', `${namespace}/${name}`, { uid }, permit);
  getLease = (name: string) => this.#ask('get lease', name, () => this.#get('lease', name)) as Promise<LeaseObject>;
  createLease = (lease: LeaseObject) => this.#create('lease', lease);
  patchLease = (name: string, patch: Patch) => this.#patch('lease', '', name, { patch }) as Promise<LeaseObject>;
  deleteLease = (name: string, uid: string, resourceVersion?: string) =>
    this.#delete('lease', name, { uid, resourceVersion });
  getConfigMap = (name: string) =>
    this.#ask('get configmap', name, () => this.#get('configmap', name)) as Promise<ConfigMapObject>;
  createConfigMap = (configMap: ConfigMapObject, permit?: Permit) => this.#create('configmap', configMap, permit);
  patchConfigMap = (name: string, patch: Patch, permit?: Permit) =>
    this.#patch('configmap', '', name, { patch, permit }) as Promise<ConfigMapObject>;
  createEvent = () => Promise.resolve();
  patchEvent = () => Promise.resolve();

  #pods(): PodObject[] {
    const pods = [...this.objects].filter(([key]) => key.startsWith('pod ')).map(([, pod]) => pod);
    return copyOf(pods) as PodObject[];
  }

  #get(kind: Kind, name: string): KubeObject {
    const object = this.objects.get(`${kind} ${name}`);
    if (object === undefined) throw apiError(404, 'NotFound');
    return object;
  }

  #create<T extends KubeObject>(kind: Kind, object: T, permit?: Permit): Promise<T> {
    const act = (): T => {
      if (this.objects.has(keyOf(kind, object))) throw apiError(409, 'AlreadyExists');
      return this.#save(kind, { ...object, metadata: { ...object.metadata, uid: `u${this.#uid++}` } }) as T;
    };
    return this.#ask(`post ${kind}`, object.metadata.name, act, permit);
  }

  #patch(
    kind: Kind,
    part: string,
    name: string,
    { patch, permit }: { patch: Patch; permit?: Permit | undefined },
  ): Promise<KubeObject> {
    const act = (): KubeObject => {
      const object = this.#get(kind, name);
      const { uid, resourceVersion } = (patch.metadata ?? {}) as Json;
      if (uid !== undefined && uid !== object.metadata.uid) throw uidError();
      if (resourceVersion !== undefined && resourceVersion !== object.metadata.resourceVersion) {
        throw apiError(409, 'Conflict');
      }
      return this.#save(kind, merge(object as unknown as Json, patch) as unknown as KubeObject);
    };
    return this.#ask(`patch ${kind}${part}`, name, act, permit);
  }

  async #delete(
    kind: Kind,
    name: string,
    { uid, resourceVersion }: { uid: string; resourceVersion?: string | undefined },
    permit?: Permit,
  ): Promise<void> {
    const act = (): KubeObject => {
      const object = this.#get(kind, name);
      if (object.metadata.uid !== uid) throw apiError(409, 'Conflict');
      if (resourceVersion !== undefined && resourceVersion !== object.metadata.resourceVersion) {
        throw apiError(409, 'Conflict');
      }
      const { deletionGracePeriodSeconds = 0, finalizers = [] } = object.metadata;
      if (deletionGracePeriodSeconds > 0) {
        this.#save(kind, { ...object, metadata: { ...object.metadata, deletionGracePeriodSeconds: 0 } });
      }
      if (finalizers.length > 0) return object;
      this.objects.delete(`${kind} ${name}`);
      this.#changed(kind, { type: 'DELETED', object: { ...object, metadata: this.#stamped(object) } });
      return object;
    };
    await this.#ask(`delete ${kind}`, name, act, permit);
  }

  async #ask<T>(verb: string, name: string, act: () => T, permit: Permit = () => true): Promise<T> {
    const request = `${verb} ${name}`;
    const index = this.requests.push(request) - 1;
    await this.delay(request);
    if (!permit()) {
      this.requests.splice(this.requests.indexOf(request), 1);
      throw new ControllerError('Kube.NotPermitted', request);
    }
    const fault = this.#faults.find(({ match, times }) => times > 0 && request.startsWith(match));
    try {
      if (fault) {
        fault.times--;
        if (fault.isDone) act();
        throw fault.error;
      }
      return copyOf(act());
    } catch (error) {
      if (this.requests[index] === request) {
        this.requests[index] = `${request} = ${error instanceof ApiError ? error.status : 'lost'}`;
      }
      throw error;
    }
  }

  #save(kind: Kind, object: KubeObject): KubeObject {
    const saved = { ...object, metadata: this.#stamped(object) };
    if (kind === 'pod' && this.dropsObservedGeneration) dropObservedGeneration(saved as PodObject);
    this.objects.set(keyOf(kind, saved), saved);
    this.#changed(kind, { type: 'PUT', object: saved });
    return saved;
  }

  #changed(kind: Kind, event: WatchEvent): void {
    if (kind !== 'configmap') this.#onChange(kind, event);
  }

  #stamped({ metadata }: KubeObject): KubeObject['metadata'] {
    return { ...metadata, resourceVersion: String(this.#version++) };
  }
}

function podKeyOf(name: string): string {
  return `pod ${name.includes('/') ? '' : 'ns/'}${name}`;
}

function keyOf(kind: Kind, { metadata }: KubeObject): string {
  return kind === 'pod' ? `pod ${metadata.namespace}/${metadata.name}` : `${kind} ${metadata.name}`;
}

const MERGE_KEYS: Readonly<Record<string, string>> = { conditions: 'type', addresses: 'type', podIPs: 'ip' };

/** A merge patch; the lists that a strategic one merges by key are merged. */
function merge(old: Json, patch: Json): Json {
  const result: Json = { ...old };
  for (const [key, value] of Object.entries(patch)) {
    const before = result[key];
    if (value === null) delete result[key];
    else if (Array.isArray(value)) result[key] = mergeList(before, value as Json[], MERGE_KEYS[key]);
    else if (typeof value === 'object') result[key] = merge((before ?? {}) as Json, value as Json);
    else result[key] = value;
  }
  return result;
}

function mergeList(before: unknown, patch: Json[], mergeKey: string | undefined): Json[] {
  const entries = patch.filter((entry) => entry.$patch === undefined);
  if (mergeKey === undefined || entries.length < patch.length || !Array.isArray(before)) {
    return entries.map((entry) => (typeof entry === 'object' ? merge({}, entry) : entry));
  }
  const rest = entries.filter((entry) => !before.some((other: Json) => other[mergeKey] === entry[mergeKey]));
  const merged = before.map((other: Json) => {
    const entry = entries.find((candidate) => candidate[mergeKey] === other[mergeKey]);
    return entry === undefined ? other : merge(other, entry);
  });
  return [...merged, ...rest.map((entry) => merge({}, entry))];
}

function dropObservedGeneration(pod: PodObject): void {
  const { observedGeneration: _, ...status } = pod.status ?? {};
  const conditions = status.conditions?.map(({ observedGeneration: __, ...condition }) => condition);
  pod.status = { ...status, ...(conditions === undefined ? {} : { conditions }) };
}
