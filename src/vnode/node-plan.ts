import { type CachedNode, isReadyNode } from '../kinds/vnode-object.ts';
import type { Patch } from '../kube/client.ts';
import type { NodeCondition, Taint } from '../kube/objects.ts';
import { ANNOTATION } from '../labels.ts';
import { isRoutable } from './address.ts';
import {
  ARCHITECTURE_LABELS,
  arkletAnnotationOf,
  METASPACE_PRESSURE,
  type NodeFacts,
  nodeAddressesOf,
  nodeAnnotationsOf,
  nodeConditionsOf,
  nodeInfoOf,
  nodeLabelsOf,
  nodeMemoryOf,
  nodeResourcesOf,
  nodeTaintsOf,
  providerIdOf,
} from './node-object.ts';

/** Taint of the admission plug-in TaintNodesByCondition. */
const NOT_READY_TAINT = 'node.kubernetes.io/not-ready';

/** A kubelet reports an unchanged status this often; the Lease says that the Node lives. */
export const NODE_STATUS_PERIOD_MS = 300_000;
/** Metaspace is written only when it moved by 1 MiB or by 2 % of the capacity. */
const METASPACE_STEP_KIB = 1024;
const METASPACE_STEP_RATIO = 0.02;

export interface NodePlanInput {
  readonly node: CachedNode;
  readonly facts: NodeFacts;
  readonly now: number;
  readonly nowText: string;
  readonly statusWrittenAt: number;
  /** When a change of memory may be written; asked only then. */
  readonly metaspaceTurnAt: () => number;
}

export interface NodePlan {
  /** Merge patch of labels, taints, providerID. */
  readonly metadata: Patch | undefined;
  /** Strategic merge patch of the status, and of the controller's annotations, in one write. */
  readonly status: Patch | undefined;
  readonly writesMetaspace: boolean;
  readonly wakeAt: number;
}

/** The write that makes the Node show the known state; nothing where it does. */
export function planNode(input: NodePlanInput): NodePlan {
  const { node, now, statusWrittenAt } = input;
  const metaspaceDueAt = hasMetaspaceMoved(input) ? input.metaspaceTurnAt() : Number.POSITIVE_INFINITY;
  const writesMetaspace = now >= metaspaceDueAt;
  const isPeriodic = now - statusWrittenAt >= NODE_STATUS_PERIOD_MS;
  const metaspaceWakeAt = writesMetaspace ? Number.POSITIVE_INFINITY : metaspaceDueAt;
  const periodicWakeAt = (isPeriodic || writesMetaspace ? now : statusWrittenAt) + NODE_STATUS_PERIOD_MS;
  return {
    metadata: metadataPatchOf(node, input.facts),
    status: statusPatchOf(input, { isPeriodic, writesMetaspace }),
    writesMetaspace,
    wakeAt: Math.min(metaspaceWakeAt, periodicWakeAt),
  };
}

function metadataPatchOf(node: CachedNode, facts: NodeFacts): Patch | undefined {
  const labels = Object.entries(nodeLabelsOf(facts)).filter(([key, value]) => node.labels[key] !== value);
  const taints = missingTaints(node, facts.env);
  const hasProvider = node.providerID !== undefined;
  const annotations = placePatchOf(node, facts);
  if (labels.length === 0 && annotations === undefined && taints === undefined && hasProvider) return undefined;
  return {
    metadata: {
      uid: node.uid,
      labels: Object.fromEntries(labels),
      ...(annotations === undefined ? {} : { annotations }),
      // On the version that was read: a taint that somebody else adds meanwhile must not be lost (409, tried again).
      ...(taints === undefined ? {} : { resourceVersion: node.resourceVersion }),
    },
    spec: {
      ...(taints === undefined ? {} : { taints }),
      ...(hasProvider ? {} : { providerID: providerIdOf(facts.env, facts.base.identity) }),
    },
  };
}

/**
 * Removes the taint that the API server gives each new Node until kube-controller-manager has seen that it is Ready:
 * that takes a GET and a PATCH, and by default it makes 20 requests a second. undefined: there is none, or the Node is
 * not Ready. A conflict (409) where anything of the Node has changed.
 */
export function usablePatchOf(node: CachedNode): Patch | undefined {
  const { uid, resourceVersion, taints } = node;
  const others = taints.filter(({ key, effect }) => key !== NOT_READY_TAINT || effect !== 'NoSchedule');
  if (!isReadyNode(node) || others.length === taints.length) return undefined;
  return { metadata: { uid, resourceVersion }, spec: { taints: others } };
}

/** A base that came over HTTP and now speaks MQTT has no port any more, and one with another address is another Pod. */
function placePatchOf(node: CachedNode, facts: NodeFacts): Record<string, string | null> | undefined {
  const wanted = {
    [ANNOTATION.arkletPort]: arkletAnnotationOf(facts, node.annotations[ANNOTATION.arkletPort]),
    [ANNOTATION.basePod]: basePodOf(node, facts),
  };
  const changed = Object.entries(wanted).filter(([key, value]) => node.annotations[key] !== value);
  return changed.length === 0 ? undefined : Object.fromEntries(changed.map(([key, value]) => [key, value ?? null]));
}

/** What the Node should say; what an earlier process found counts while the base has the address that the Node shows. */
function basePodOf(node: CachedNode, { base, basePod }: NodeFacts): string | undefined {
  if (basePod?.ip === base.ip) return basePod.name;
  return showsAddress(node, base.ip) ? node.annotations[ANNOTATION.basePod] : undefined;
}

/** Whether nobody has looked for the Pod that has the base's address, as far as this process and the Node know. */
export function isBasePodUnknown(node: CachedNode, facts: Pick<NodeFacts, 'base' | 'basePod'>): boolean {
  const { ip } = facts.base;
  if (facts.basePod?.ip === ip || !isRoutable(ip)) return false;
  return node.annotations[ANNOTATION.basePod] === undefined || !showsAddress(node, ip);
}

function showsAddress({ addresses }: CachedNode, ip: string): boolean {
  return addresses.some(({ type, address }) => type === 'InternalIP' && address === ip);
}

/** A merge patch replaces the list, so others' taints (an admin's, the node lifecycle controller's) go along. */
function missingTaints(node: CachedNode, env: string): Taint[] | undefined {
  const wanted = nodeTaintsOf(env);
  const isOurs = (taint: Taint): boolean =>
    wanted.some(({ key, effect }) => key === taint.key && effect === taint.effect);
  const isComplete = wanted.every(({ key, value, effect }) =>
    node.taints.some((taint) => taint.key === key && taint.value === value && taint.effect === effect),
  );
  return isComplete ? undefined : [...wanted, ...node.taints.filter((taint) => !isOurs(taint))];
}

function statusPatchOf(
  input: NodePlanInput,
  due: { isPeriodic: boolean; writesMetaspace: boolean },
): Patch | undefined {
  const { node, facts, nowText } = input;
  const wanted = nodeConditionsOf(facts, node.conditions);
  // Pressure follows from metaspace, and waits for the same turn.
  const judged = wanted.filter(({ type }) => type !== METASPACE_PRESSURE || due.writesMetaspace);
  const changed = judged.filter((condition) => !isSame(condition, conditionOf(node, condition.type)));
  const status: Record<string, unknown> = {};
  // A write of metaspace is the periodic report as well: the next one comes a period later.
  if (due.isPeriodic || due.writesMetaspace || changed.length > 0)
    status.conditions = wanted.map((condition) => stamped(condition, node, nowText));
  const addresses = nodeAddressesOf(facts.base);
  if (!sameEntries(addresses, node.addresses, 'type', 'address')) {
    // The list merges by type: without the directive an address that the base has no longer would stay.
    const isFewer = node.addresses.some(({ type }) => !addresses.some((address) => address.type === type));
    status.addresses = isFewer ? [...addresses, { $patch: 'replace' }] : addresses;
  }
  const nodeInfo = nodeInfoOf(facts);
  const hasOldArchitecture = (node.nodeInfo.architecture ?? '') !== nodeInfo.architecture;
  if (Object.entries(nodeInfo).some(([key, value]) => (node.nodeInfo[key] ?? '') !== value)) status.nodeInfo = nodeInfo;
  // Before the base has reported its health, the Node keeps what an earlier process wrote.
  const isMemoryDue = due.writesMetaspace || (due.isPeriodic && facts.health !== undefined);
  if (isMemoryDue) Object.assign(status, resourcePatchOf(node, facts));
  if (Object.keys(status).length === 0) return undefined;
  const annotations = isMemoryDue ? { annotations: nodeAnnotationsOf(facts.health) } : {};
  const labels = hasOldArchitecture ? { labels: withoutArchitecture(node) } : {};
  return { metadata: { uid: node.uid, ...annotations, ...labels }, status };
}

/** In the write that corrects `nodeInfo`: an earlier version wrote both. */
function withoutArchitecture({ labels }: CachedNode): Record<string, null> {
  return Object.fromEntries(ARCHITECTURE_LABELS.filter((key) => key in labels).map((key) => [key, null]));
}

function stamped(condition: NodeCondition, node: CachedNode, nowText: string): NodeCondition {
  const prev = conditionOf(node, condition.type);
  const isSameStatus = prev?.status === condition.status && prev.lastTransitionTime;
  return {
    ...condition,
    lastHeartbeatTime: nowText,
    lastTransitionTime: isSameStatus ? (prev.lastTransitionTime ?? nowText) : nowText,
  };
}

function conditionOf(node: CachedNode, type: string): NodeCondition | undefined {
  return node.conditions.find((condition) => condition.type === type);
}

function isSame(a: NodeCondition, b: NodeCondition | undefined): boolean {
  return b !== undefined && a.status === b.status && a.reason === b.reason && a.message === b.message;
}

function sameEntries<T extends object>(a: readonly T[], b: readonly T[], key: keyof T, value: keyof T): boolean {
  return (
    a.length === b.length &&
    a.every((entry) => b.some((other) => other[key] === entry[key] && other[value] === entry[value]))
  );
}

function resourcePatchOf(node: CachedNode, facts: NodeFacts): Record<string, unknown> {
  const { capacity, allocatable } = nodeResourcesOf(facts.health);
  const gone = node.capacity.memory && capacity.memory === undefined ? { memory: null } : {};
  return { capacity: { ...capacity, ...gone }, allocatable: { ...allocatable, ...gone } };
}

function hasMetaspaceMoved({ node, facts }: NodePlanInput): boolean {
  if (facts.health === undefined) return false;
  const memory = nodeMemoryOf(facts.health);
  const capacity = kibOf(node.capacity.memory);
  const ratioStep = memory === undefined ? METASPACE_STEP_KIB : memory.capacity * METASPACE_STEP_RATIO;
  const step = Math.min(METASPACE_STEP_KIB, ratioStep);
  const moved = (before: number | undefined, after: number | undefined): boolean =>
    before !== after && (before === undefined || after === undefined || Math.abs(before - after) >= step);
  const usedKib = kibOf(nodeAnnotationsOf(facts.health)[ANNOTATION.metaspaceUsed]);
  return (
    moved(capacity, memory?.capacity) ||
    moved(kibOf(node.allocatable.memory), memory?.allocatable) ||
    (usedKib !== undefined && moved(kibOf(node.annotations[ANNOTATION.metaspaceUsed]), usedKib))
  );
}

/** Whether this or another process has written what the base uses. */
export function showsMetaspace({ capacity, annotations }: CachedNode): boolean {
  return typeof capacity.memory === 'string' || annotations[ANNOTATION.metaspaceUsed] !== undefined;
}

/** The API server may write `1048576Ki` as `1Gi`. */
function kibOf(quantity: string | null | undefined): number | undefined {
  const match = /^(\d+)(Ki|Mi|Gi|Ti)?$/.exec(quantity ?? '');
  if (match === null) return undefined;
  const factor = { Ki: 1, Mi: 1024, Gi: 1024 ** 2, Ti: 1024 ** 3 }[match[2] ?? ''] ?? 1 / 1024;
  return Number(match[1]) * factor;
}
