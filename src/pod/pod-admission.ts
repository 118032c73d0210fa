import type { Taint } from '../kube/objects.ts';
import { matchesNode, type Placement, untoleratedTaintOf } from '../kube/placement.ts';
import { quantityOf } from '../kube/quantity.ts';
import type { CachedObject } from '../kube/watch/informer-types.ts';
import { ANNOTATION } from '../labels.ts';
import { MAX_SPEC_BYTES, TOO_LARGE_PLACEMENT } from './spec-size.ts';
import { byCreation, isTerminal, type VPod } from './vpod.ts';
import type { AdmissionReason } from './waiting-reason.ts';

/** What the admission of a Pod reads of its Node, as the API server has it. */
export interface AdmittingNode extends CachedObject {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly allocatable: Readonly<Record<string, string | null>>;
}

export interface Rejection {
  readonly reason: AdmissionReason;
  /** Message without figures that change: it is written once, however long the Pod waits. */
  readonly message: string;
}

export interface AdmissionInput {
  /** All Pods that are bound to the Node, in any order. */
  readonly pods: readonly VPod[];
  readonly node: AdmittingNode;
  /** Has to be judged: neither the scheduler nor this controller has admitted it, and it is not being deleted. */
  readonly isCandidate: (pod: VPod) => boolean;
  /** Was never admitted and is about to go. */
  readonly isOutside: (pod: VPod) => boolean;
}

/**
 * The checks that a kubelet makes before it starts a Pod: node affinity, NoExecute taints, number of Pods, memory.
 * The scheduler has made them for the Pods that it binds; a Pod that is created with `spec.nodeName` bypasses it.
 * Returns those that do not fit. The admitted ones count first, then candidates, oldest first: every replica decides
 * the same. Only what the Node advertises is counted: it has no CPU.
 */
export function rejectionsOf({ pods, node, isCandidate, isOutside }: AdmissionInput): Map<VPod, Rejection> {
  const rejections = new Map<VPod, Rejection>();
  const room = roomOf(node);
  const candidates: VPod[] = [];
  for (const pod of pods) {
    if (isCandidate(pod)) candidates.push(pod);
    else if (!isTerminal(pod) && !isOutside(pod)) take(room, pod);
  }
  for (const pod of candidates.sort(byCreation)) {
    const rejection = misplacementOf(pod.placement, node) ?? shortageOf(pod, room);
    if (rejection === undefined) take(room, pod);
    else rejections.set(pod, rejection);
  }
  return rejections;
}

/** The rest; negative where the admitted Pods take more than the Node has. */
interface Room {
  pods: number;
  /** Undefined before the base has reported its metaspace. */
  memory: number | undefined;
}

function roomOf({ allocatable, annotations }: AdmittingNode): Room {
  const memory = quantityOf(allocatable.memory);
  // A base without a limit of its metaspace has no `memory`, but says how much it uses.
  const isUnlimited = memory === undefined && annotations[ANNOTATION.metaspaceUsed] !== undefined;
  return {
    pods: quantityOf(allocatable.pods) ?? Number.POSITIVE_INFINITY,
    memory: isUnlimited ? Number.POSITIVE_INFINITY : memory,
  };
}

function take(room: Room, pod: VPod): void {
  room.pods -= 1;
  if (room.memory !== undefined) room.memory -= pod.memoryRequest;
}

function shortageOf({ memoryRequest }: VPod, room: Room): Rejection | undefined {
  if (room.pods < 1) return { reason: 'OutOfpods', message: 'the Node already has its maximum number of Pods' };
  if (memoryRequest === 0) return undefined;
  if (room.memory === undefined) {
    return { reason: 'OutOfmemory', message: 'the Node does not report its memory yet' };
  }
  if (memoryRequest <= room.memory) return undefined;
  const message = `the Pod requests ${Math.ceil(memoryRequest / 1024)}Ki of memory, and the Node has less available`;
  return { reason: 'OutOfmemory', message };
}

function misplacementOf(placement: Placement | undefined, node: AdmittingNode): Rejection | undefined {
  if (placement === undefined) return undefined;
  if (placement === TOO_LARGE_PLACEMENT) {
    const message = `nodeSelector, node affinity and tolerations of the Pod have more than ${MAX_SPEC_BYTES} bytes`;
    return { reason: 'NodeAffinity', message };
  }
  if (!matchesNode(placement, node)) {
    const message = "the Node does not match the Pod's nodeSelector or required node affinity";
    return { reason: 'NodeAffinity', message };
  }
  const taint = untoleratedTaintOf(placement, node, ['NoExecute']);
  if (taint === undefined) return undefined;
  const text = `${taint.key}=${taint.value ?? ''}:${taint.effect}`;
  return { reason: 'TaintToleration', message: `the Pod does not tolerate the Node's taint ${text}` };
}
