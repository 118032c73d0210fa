import { COMPONENT, COMPONENT_LABEL, NODE_LEASE_NAMESPACE } from '../labels.ts';
import type { KubeClient } from './client.ts';
import { createLeaseClient } from './lease-client.ts';
import type { ConfigMapObject, NodeObject, PodObject } from './objects.ts';
import { create, get, listAll, listPages, POD_PAGE_SIZE, patch, remove, segment } from './requests.ts';
import type { KubeLanes } from './transport/kube-lanes.ts';
import type { Permit } from './transport/rest-lane.ts';
import { MERGE_PATCH, STRATEGIC_MERGE_PATCH } from './transport/rest-lane.ts';

/** A renewal on a dead connection must fail in time to be sent again before the lease runs out. */
const LEASE_TIMEOUT_MS = 5000;

const NODES = '/api/v1/nodes';
const PODS = '/api/v1/pods';
const CONFIG_MAPS = `/api/v1/namespaces/${segment(NODE_LEASE_NAMESPACE)}/configmaps`;
const podPath = (namespace: string, name: string): string =>
  `/api/v1/namespaces/${segment(namespace)}/pods/${segment(name)}`;
const eventsPath = (namespace: string): string => `/api/v1/namespaces/${segment(namespace)}/events`;
const nodePath = (name: string): string => `${NODES}/${segment(name)}`;

export function createKubeClient({ rest, leases: lane }: Pick<KubeLanes, 'rest' | 'leases'>): KubeClient {
  const leases = createLeaseClient(lane, NODE_LEASE_NAMESPACE, { timeoutMs: LEASE_TIMEOUT_MS });
  return {
    getNode: async (name) => get<NodeObject>(rest, nodePath(name)),
    createNode: async (node, permit) => create(rest, NODES, node, withPermit(permit)),
    patchNode: async (name, body, permit) =>
      patch<NodeObject>(rest, nodePath(name), { body, contentType: MERGE_PATCH, ...withPermit(permit) }),
    patchNodeStatus: async (name, body, permit) =>
      patch<NodeObject>(rest, `${nodePath(name)}/status`, {
        body,
        contentType: STRATEGIC_MERGE_PATCH,
        ...withPermit(permit),
      }),
    deleteNode: async (name, uid, permit) =>
      remove(rest, nodePath(name), { preconditions: { uid } }, withPermit(permit)),

    listPods: async (labelSelector, project) => {
      const kept: ReturnType<typeof project>[] = [];
      const onItem = (pod: PodObject): void => void kept.push(project(pod));
      await listPages(rest, PODS, { query: { labelSelector }, pageSize: POD_PAGE_SIZE, onItem });
      return kept;
    },
    listPodsAt: async (ip) =>
      listAll<PodObject>(rest, PODS, {
        fieldSelector: `status.podIP=${ip},status.phase=Running,spec.hostNetwork=false`,
        labelSelector: `${COMPONENT_LABEL}!=${COMPONENT.module}`,
        resourceVersion: '0',
      }),
    patchPodStatus: async (namespace, name, body, permit) =>
      patch<PodObject>(rest, `${podPath(namespace, name)}/status`, {
        body,
        contentType: STRATEGIC_MERGE_PATCH,
        ...withPermit(permit),
      }),
    forceDeletePod: async (namespace, name, uid, permit) =>
      remove(rest, podPath(namespace, name), { gracePeriodSeconds: 0, preconditions: { uid } }, withPermit(permit)),

    getLease: leases.get,
    createLease: leases.create,
    patchLease: leases.patch,
    deleteLease: leases.delete,

    getConfigMap: async (name) => get<ConfigMapObject>(rest, `${CONFIG_MAPS}/${segment(name)}`),
    createConfigMap: async (configMap, permit) => create(rest, CONFIG_MAPS, configMap, withPermit(permit)),
    patchConfigMap: async (name, body, permit) =>
      patch<ConfigMapObject>(rest, `${CONFIG_MAPS}/${segment(name)}`, {
        body,
        contentType: MERGE_PATCH,
        ...withPermit(permit),
      }),

    createEvent: async (event) => {
      await create(rest, eventsPath(event.metadata.namespace ?? 'default'), event, { ignoresAnswer: true });
    },
    patchEvent: async (namespace, name, body) => {
      const path = `${eventsPath(namespace)}/${segment(name)}`;
      await patch(rest, path, { body, contentType: MERGE_PATCH, ignoresAnswer: true });
    },
  };
}

function withPermit(permit: Permit | undefined): { permit?: Permit } {
  return permit === undefined ? {} : { permit };
}
