import type { KubeObject, NodeAddress, NodeCondition, NodeObject, Taint } from '../kube/objects.ts';
import { COMPONENT, COMPONENT_LABEL, ENV_LABEL, NODE_TTL_ANNOTATION } from '../labels.ts';
import type { WatchedKind } from '../reconcile/informers.ts';
import { TextPool } from '../text-pool.ts';

/** Texts that the cached Nodes share. */
const texts = new TextPool(256);

/** Several controllers read this cache: each process watches Nodes once. */
export const VNODES: WatchedKind<CachedNode> = {
  kind: 'Node',
  path: '/api/v1/nodes',
  labelSelector: ({ env }) => `${COMPONENT_LABEL}=${COMPONENT.vnode},${ENV_LABEL}=${env}`,
  project: projectNode,
};

/** The part of a VNode's Node that the informer keeps. */
export interface CachedNode {
  readonly namespace: '';
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly isDeleting: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly providerID: string | undefined;
  readonly conditions: readonly NodeCondition[];
  readonly addresses: readonly NodeAddress[];
  readonly capacity: Readonly<Record<string, string | null>>;
  readonly allocatable: Readonly<Record<string, string | null>>;
  readonly nodeInfo: Readonly<Record<string, string>>;
}

/** Projection at the watch: only fields that are written or compared. */
export function projectNode(object: KubeObject): CachedNode {
  const { metadata, spec = {}, status = {} } = object as NodeObject;
  return {
    namespace: '',
    name: metadata.name,
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    isDeleting: metadata.deletionTimestamp !== undefined,
    labels: metadata.labels ?? {},
    annotations: keptAnnotations(metadata.annotations),
    taints: spec.taints ?? [],
    providerID: spec.providerID,
    conditions: (status.conditions ?? []).map((condition) => texts.shareIn(condition)),
    addresses: status.addresses ?? [],
    capacity: texts.shareIn(status.capacity ?? {}),
    allocatable: texts.shareIn(status.allocatable ?? {}),
    nodeInfo: texts.shareIn(status.nodeInfo ?? {}),
  };
}

/** `Unknown`: no controller writes for the Node, and its base may serve all the same. */
export function readyStatusOf({ conditions }: Pick<CachedNode, 'conditions'>): string | undefined {
  return conditions.find(({ type }) => type === 'Ready')?.status;
}

/** Whether its base is reachable, as the API server has it. */
export function isReadyNode({ conditions }: Pick<CachedNode, 'conditions'>): boolean {
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
}

function keptAnnotations(annotations: Record<string, string> = {}): Record<string, string> {
  const isKept = (key: string): boolean => key === NODE_TTL_ANNOTATION || key.includes('koupleless.io/');
  return Object.fromEntries(Object.entries(annotations).filter(([key]) => isKept(key)));
}
