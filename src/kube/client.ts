import type { ConfigMapObject, EventObject, LeaseObject, NodeObject, PodObject } from './objects.ts';
import type { Permit } from './transport/rest-lane.ts';

/**
 * A JSON merge patch (RFC 7386) or strategic merge patch, as an object. `metadata.uid` in it = that incarnation only.
 */
export type Patch = Record<string, unknown>;

/**
 * The few calls the controller makes. Each rejects with `ApiError` (an answer with an error status) or with
 * ControllerError `Kube.ConnectionFailed` (no whole answer: the write has possibly happened).
 * 429 and cut idle connections are tried again inside, a bounded number of times.
 */
export interface KubeClient {
  getNode(name: string): Promise<NodeObject>;
  createNode(node: NodeObject, permit?: Permit): Promise<NodeObject>;
  /** Merge patch of metadata and spec. */
  patchNode(name: string, patch: Patch, permit?: Permit): Promise<NodeObject>;
  /** Strategic merge patch: conditions are merged by type, addresses by type. */
  patchNodeStatus(name: string, patch: Patch, permit?: Permit): Promise<NodeObject>;
  /** Deletes that incarnation only; 409 when another one has the name. */
  deleteNode(name: string, uid: string, permit?: Permit): Promise<void>;

  /**
   * What `project` keeps of every Pod with the label as it is stored now, past all caches; several requests where there
   * are many.
   */
  listPods<T>(labelSelector: string, project: (pod: PodObject) => T): Promise<T[]>;
  /** Running Pods with the address that run no modules and share no host's address, from the API server's cache. */
  listPodsAt(ip: string): Promise<PodObject[]>;
  /** Strategic merge patch: conditions are merged by type, containerStatuses are replaced whole. */
  patchPodStatus(namespace: string, name: string, patch: Patch, permit?: Permit): Promise<PodObject>;
  /** Grace 0, that incarnation only; 409 when another one has the name. */
  forceDeletePod(namespace: string, name: string, uid: string, permit?: Permit): Promise<void>;

  /** Leases of Nodes live in `kube-node-lease`; these calls have a lane of their own. */
  getLease(name: string): Promise<LeaseObject>;
  createLease(lease: LeaseObject): Promise<LeaseObject>;
  patchLease(name: string, patch: Patch): Promise<LeaseObject>;
  /** Deletes a Lease. If a version is given, only that version is deleted; 409 otherwise. */
  deleteLease(name: string, uid: string, resourceVersion?: string): Promise<void>;

  /** ConfigMaps in `kube-node-lease`: the records of first contacts. */
  getConfigMap(name: string): Promise<ConfigMapObject>;
  createConfigMap(configMap: ConfigMapObject, permit?: Permit): Promise<ConfigMapObject>;
  /** Merge patch. With `metadata.resourceVersion` in it that version only; 409 otherwise. */
  patchConfigMap(name: string, patch: Patch, permit?: Permit): Promise<ConfigMapObject>;

  createEvent(event: EventObject): Promise<void>;
  patchEvent(namespace: string, name: string, patch: Patch): Promise<void>;
}
