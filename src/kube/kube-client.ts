import { ControllerError } from '../errors.ts';
import { NODE_LEASE_NAMESPACE } from '../labels.ts';
import type { KubeClient, Patch } from './client.ts';
import type { KubeLanes } from './kube-lanes.ts';
import type { EventObject, KubeObject, LeaseObject, NodeObject, PodObject } from './objects.ts';
import type { RestLane } from './rest-lane.ts';

const FIELD_MANAGER = { fieldManager: 'module-controller' };
const MERGE_PATCH = 'application/merge-patch+json';
const STRATEGIC_MERGE_PATCH = 'application/strategic-merge-patch+json';
/** A renewal on a dead connection must fail in time to be sent again before the lease runs out. */
const LEASE_TIMEOUT_MS = 5000;

const PAGE_SIZE = 500;

const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${NODE_LEASE_NAMESPACE}/leases`;
const NODES = '/api/v1/nodes';
const podPath = (namespace: string, name: string): string =>
  `/api/v1/namespaces/${segment(namespace)}/pods/${segment(name)}`;
const eventsPath = (namespace: string): string => `/api/v1/namespaces/${segment(namespace)}/events`;
const nodePath = (name: string): string => `${NODES}/${segment(name)}`;
const leasePath = (name: string): string => `${LEASES}/${segment(name)}`;

/** One part of a path. A name comes from outside; `.` and `..` would be resolved away and hit another object. */
function segment(name: string): string {
  if (name === '' || name === '.' || name === '..') throw new RangeError(`not an object name: "${name}"`);
  return encodeURIComponent(name);
}

type RequestLane = Pick<RestLane, 'request'>;

export function createKubeClient(lanes: Pick<KubeLanes, 'rest' | 'leases'>): KubeClient {
  const { rest } = lanes;
  const leases: RequestLane = {
    request: (request) => lanes.leases.request({ timeoutMs: LEASE_TIMEOUT_MS, ...request }),
  };
  return {
    getNode: async (name) => get<NodeObject>(rest, nodePath(name)),
    createNode: async (node) => create(rest, NODES, node),
    patchNode: async (name, body) => patch<NodeObject>(rest, nodePath(name), body, MERGE_PATCH),
    patchNodeStatus: async (name, body) =>
      patch<NodeObject>(rest, `${nodePath(name)}/status`, body, STRATEGIC_MERGE_PATCH),
    deleteNode: async (name, uid) => remove(rest, nodePath(name), { preconditions: { uid } }),

    listPods: async (labelSelector) => listAll<PodObject>(rest, '/api/v1/pods', labelSelector),
    patchPodStatus: async (namespace, name, body) =>
      patch<PodObject>(rest, `${podPath(namespace, name)}/status`, body, STRATEGIC_MERGE_PATCH),
    forceDeletePod: async (namespace, name, uid) =>
      remove(rest, podPath(namespace, name), { gracePeriodSeconds: 0, preconditions: { uid } }),

    getLease: async (name) => get<LeaseObject>(leases, leasePath(name)),
    createLease: async (lease) => create(leases, LEASES, lease),
    patchLease: async (name, body) => patch<LeaseObject>(leases, leasePath(name), body, MERGE_PATCH),
    deleteLease: async (name, uid) => remove(leases, leasePath(name), { preconditions: { uid } }),

    createEvent: async (event) => create<EventObject>(rest, eventsPath(event.metadata.namespace ?? 'default'), event),
    patchEvent: async (namespace, name, body) =>
      patch<EventObject>(rest, `${eventsPath(namespace)}/${segment(name)}`, body, MERGE_PATCH),
  };
}

function get<T>(lane: RequestLane, path: string): Promise<T> {
  return lane.request<T>({ method: 'GET', path });
}

/** All pages of one list; they are of one moment. */
async function listAll<T>(lane: RequestLane, path: string, labelSelector: string): Promise<T[]> {
  const items: T[] = [];
  let next: string | undefined;
  do {
    const query = { labelSelector, limit: String(PAGE_SIZE), ...(next ? { continue: next } : {}) };
    const page = await lane.request<{ metadata?: { continue?: string }; items?: T[] }>({ method: 'GET', path, query });
    if (page.items === undefined) throw new ControllerError('Kube.RequestFailed', `${path}: the answer is no list`);
    items.push(...page.items);
    next = page.metadata?.continue;
  } while (next);
  return items;
}

function create<T extends KubeObject>(lane: RequestLane, path: string, body: T): Promise<T> {
  return lane.request<T>({ method: 'POST', path, query: FIELD_MANAGER, body });
}

function patch<T>(lane: RequestLane, path: string, body: Patch, contentType: string): Promise<T> {
  return lane.request<T>({ method: 'PATCH', path, query: FIELD_MANAGER, body, contentType });
}

async function remove(lane: RequestLane, path: string, options: Record<string, unknown>): Promise<void> {
  const body = { apiVersion: 'v1', kind: 'DeleteOptions', ...options };
  await lane.request({ method: 'DELETE', path, body });
}
