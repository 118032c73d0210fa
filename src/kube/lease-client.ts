import type { Patch } from './client.ts';
import type { LeaseObject } from './objects.ts';
import { type CallOptions, create, get, patch, type RequestLane, remove, segment } from './requests.ts';
import { MERGE_PATCH } from './transport/rest-lane.ts';

/** Calls about the Leases of one namespace. Each rejects as those of KubeClient do. */
export interface LeaseClient {
  get(name: string): Promise<LeaseObject>;
  create(lease: LeaseObject): Promise<LeaseObject>;
  /** Merge patch. */
  patch(name: string, patch: Patch): Promise<LeaseObject>;
  /** That incarnation only, and where it is given that version only; 409 when there is another one. */
  delete(name: string, uid: string, resourceVersion?: string): Promise<void>;
}

export function createLeaseClient(lane: RequestLane, namespace: string, options: CallOptions): LeaseClient {
  const leases = `/apis/coordination.k8s.io/v1/namespaces/${segment(namespace)}/leases`;
  const path = (name: string): string => `${leases}/${segment(name)}`;
  return {
    get: async (name) => get(lane, path(name), options),
    create: async (lease) => create(lane, leases, lease, options),
    patch: async (name, body) => patch(lane, path(name), { body, contentType: MERGE_PATCH, ...options }),
    delete: async (name, uid, resourceVersion) => {
      const preconditions = { uid, ...(resourceVersion !== undefined && { resourceVersion }) };
      await remove(lane, path(name), { preconditions }, options);
    },
  };
}
