import { isDeepStrictEqual } from 'node:util';
import type { LeaseObject } from '../../../src/kube/objects.ts';
import { ApiError } from '../../../src/kube/transport/api-error.ts';
import { identityOf, NODE_LEASE_NAMESPACE } from '../../../src/labels.ts';
import type { Dice } from './timeline.ts';

type Json = Record<string, unknown>;

export interface LeaseEvent {
  readonly type: 'PUT' | 'DELETED';
  readonly version: number;
  readonly object: LeaseObject;
}

export const refusal = (status: number, reason: string): ApiError =>
  new ApiError(`answer ${status}`, { status, reason });
const wrongUid = (): ApiError =>
  new ApiError('answer 422', { status: 422, reason: 'Invalid', causes: [{ field: 'metadata.uid' }] });

/** What is stored, and how it came to be. */
export class LeaseServer {
  readonly #dice: Dice;
  /** By `namespace/name`. */
  readonly leases = new Map<string, LeaseObject>();
  readonly log: LeaseEvent[] = [];
  /** Writes that were no compare-and-swap. */
  readonly unguarded: string[] = [];
  /** Renewals of Node Leases whose renewTime is not after the one before: kube-controller-manager ignores them. */
  readonly uncounted: string[] = [];
  /** By Node. Forgotten when its Lease is deleted with it: a new Node has another heartbeat, which ends what was seen. */
  readonly #renewTimes = new Map<string, string>();
  /** Those that were deleted by somebody else, until they are made again. */
  readonly dropped = new Set<string>();
  onEvent: (event: LeaseEvent) => void = () => {};
  /** Crosses 100 soon: versions are compared as numbers, not as words. */
  #version = 90;
  /** Of node leases, by name. */
  readonly #holders = new Map<string, string>();
  #uid = 0;

  constructor(dice: Dice) {
    this.#dice = dice;
  }

  get version(): number {
    return this.#version;
  }

  holderOf(nodeName: string): string | undefined {
    return this.#holders.get(nodeName);
  }

  get(namespace: string, name: string): LeaseObject {
    const lease = this.leases.get(`${namespace}/${name}`);
    if (lease === undefined) throw refusal(404, 'NotFound');
    return lease;
  }

  create(lease: LeaseObject): LeaseObject {
    const { namespace, name } = lease.metadata;
    if (this.leases.has(`${namespace}/${name}`)) throw refusal(409, 'AlreadyExists');
    this.#noteRenewal(lease.metadata.name, lease.spec?.renewTime);
    return this.#save({ ...lease, metadata: { ...lease.metadata, uid: `u${this.#uid++}` } });
  }

  patch(namespace: string, name: string, patch: Json): LeaseObject {
    const lease = this.get(namespace, name);
    const { uid, resourceVersion } = (patch.metadata ?? {}) as Json;
    if (uid === undefined || resourceVersion === undefined) this.unguarded.push(`patch ${namespace}/${name}`);
    // Which of the two is looked at first is not promised.
    if (uid !== undefined && uid !== lease.metadata.uid)
      throw this.#dice.chance(0.5) ? wrongUid() : refusal(409, 'Conflict');
    if (resourceVersion !== undefined && resourceVersion !== lease.metadata.resourceVersion) {
      throw refusal(409, 'Conflict');
    }
    this.#noteRenewal(name, (patch as unknown as LeaseObject).spec?.renewTime);
    const patched = merge(lease as unknown as Json, patch) as unknown as LeaseObject;
    return isDeepStrictEqual(patched, lease) ? lease : this.#save(patched);
  }

  delete(namespace: string, name: string, uid: string | undefined, resourceVersion: string | undefined): void {
    const { metadata, ...rest } = this.get(namespace, name);
    if (uid === undefined) this.unguarded.push(`delete ${namespace}/${name}`);
    if (uid !== undefined && uid !== metadata.uid) throw refusal(409, 'Conflict');
    if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) throw refusal(409, 'Conflict');
    this.leases.delete(`${namespace}/${name}`);
    if (namespace === NODE_LEASE_NAMESPACE) this.#renewTimes.delete(name);
    this.#record('DELETED', { ...rest, metadata: this.#stamped(metadata) });
  }

  /** Whatever stands there, as somebody with `kubectl` writes it. */
  put(lease: LeaseObject): void {
    const { namespace, name } = lease.metadata;
    const uid = this.leases.get(`${namespace}/${name}`)?.metadata.uid ?? `u${this.#uid++}`;
    this.#save({ ...lease, metadata: { ...lease.metadata, uid } });
  }

  /** As somebody with `kubectl` does it. */
  drop(key: string): void {
    const name = this.leases.get(key)?.metadata.name;
    const renewTime = this.#renewTimes.get(name ?? '');
    this.collect(key);
    // The Node stands, and what kube-controller-manager has seen of it counts on.
    if (name !== undefined && renewTime !== undefined) this.#renewTimes.set(name, renewTime);
  }

  /** As the garbage collector does it when the owner is gone. */
  collect(key: string): void {
    const lease = this.leases.get(key);
    if (lease === undefined) return;
    const { namespace = '', name, uid } = lease.metadata;
    this.delete(namespace, name, uid, undefined);
    if (namespace === NODE_LEASE_NAMESPACE) this.dropped.add(name);
  }

  #noteRenewal(name: string, renewTime = ''): void {
    if (identityOf(name) === undefined) return;
    const before = this.#renewTimes.get(name) ?? '';
    if (renewTime <= before) this.uncounted.push(`${name}: ${before} -> ${renewTime}`);
    this.#renewTimes.set(name, renewTime);
  }

  #save(lease: LeaseObject): LeaseObject {
    const saved = { ...lease, metadata: this.#stamped(lease.metadata) };
    this.dropped.delete(saved.metadata.name);
    this.leases.set(`${saved.metadata.namespace}/${saved.metadata.name}`, saved);
    this.#record('PUT', saved);
    return saved;
  }

  #stamped(metadata: LeaseObject['metadata']): LeaseObject['metadata'] {
    // The versions between belong to other objects.
    this.#version += 1 + Math.floor(this.#dice.below(2));
    return { ...metadata, resourceVersion: String(this.#version) };
  }

  #record(type: LeaseEvent['type'], object: LeaseObject): void {
    const event = { type, version: this.#version, object };
    const { namespace, name } = object.metadata;
    if (namespace === NODE_LEASE_NAMESPACE) {
      if (type === 'DELETED') this.#holders.delete(name);
      else this.#holders.set(name, object.spec?.holderIdentity ?? '');
    }
    this.log.push(event);
    this.onEvent(event);
  }
}

function merge(old: Json, patch: Json): Json {
  const result: Json = { ...old };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else if (typeof value === 'object' && !Array.isArray(value))
      result[key] = merge((result[key] ?? {}) as Json, value as Json);
    else result[key] = value;
  }
  return result;
}
