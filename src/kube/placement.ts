import { isDeepStrictEqual } from 'node:util';
import type {
  LabelSelector,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PodObject,
  ResourceContainer,
  Taint,
  Toleration,
} from './objects.ts';
import { quantityOf } from './quantity.ts';

type PodSpec = PodObject['spec'];

/** Effects of the taints that keep a Pod off a Node. */
const KEEPING_EFFECTS = ['NoExecute', 'NoSchedule'];
const HOSTNAME_LABEL = 'kubernetes.io/hostname';
/** The taints of a Node that is not Ready do not last. */
const TAINTS_OF_NODE_HEALTH = 'node.kubernetes.io/';

/** Which Nodes a Pod may run on, besides the room that it needs. */
export interface Placement {
  readonly nodeSelector: Readonly<Record<string, string>> | undefined;
  /** Terms of the required node affinity: one of them has to match. Undefined where there is none. */
  readonly terms: readonly NodeSelectorTerm[] | undefined;
  readonly tolerations: readonly Toleration[];
}

export function placementOf({ nodeSelector, affinity, tolerations }: PodSpec): Placement {
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return { nodeSelector, terms: required?.nodeSelectorTerms, tolerations: tolerations ?? [] };
}

/** The memory that the scheduler and a kubelet count for a Pod, in bytes. */
export function memoryRequestOf(spec: PodSpec): number {
  const ofPod = quantityOf(spec.resources?.requests?.memory);
  const overhead = quantityOf(spec.overhead?.memory) ?? 0;
  if (ofPod !== undefined) return ofPod + overhead;
  let sidecars = 0;
  let peak = 0;
  for (const container of spec.initContainers ?? []) {
    const request = requestOf(container);
    if (container.restartPolicy === 'Always') sidecars += request;
    peak = Math.max(peak, container.restartPolicy === 'Always' ? sidecars : sidecars + request);
  }
  const steady = spec.containers.reduce((sum, container) => sum + requestOf(container), sidecars);
  return Math.max(steady, peak) + overhead;
}

function requestOf({ resources }: ResourceContainer): number {
  return quantityOf(resources?.requests?.memory) ?? 0;
}

/** What decides where a Pod may run, as the API server has it. */
export interface PlacingNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
}

/** Whether a Pod could be bound to the Node, and stay there, leaving aside the room that it needs. */
export function fitsNode(placement: Placement, node: PlacingNode): boolean {
  return matchesNode(placement, node) && untoleratedTaintOf(placement, node, KEEPING_EFFECTS) === undefined;
}

/** A Node, as far as it decides how many copies of a Pod there are where each Node has one. */
export interface PeerNode extends PlacingNode {
  readonly isDeleting: boolean;
}

/**
 * How many Nodes a Pod could be bound to. One that is not Ready counts until it is deleted, so that its copy is there
 * when it comes back.
 */
export function countPeers(placement: Placement, nodes: Iterable<PeerNode>): number {
  let count = 0;
  for (const { name, labels, taints, isDeleting } of nodes) {
    const lasting = taints.filter(({ key }) => !key.startsWith(TAINTS_OF_NODE_HEALTH));
    if (!isDeleting && fitsNode(placement, { name, labels, taints: lasting })) count++;
  }
  return count;
}

/** Whether two versions of a Node fit the same Pods. Most writes are about its status. */
export function isSameForPeers(a: PeerNode, b: PeerNode): boolean {
  return (
    a.isDeleting === b.isDeleting && isDeepStrictEqual(a.labels, b.labels) && isDeepStrictEqual(a.taints, b.taints)
  );
}

/** Whether a Node has the labels that a Pod's nodeSelector and required node affinity ask for. */
export function matchesNode({ nodeSelector = {}, terms }: Placement, node: PlacingNode): boolean {
  if (Object.entries(nodeSelector).some(([key, value]) => labelOf(node, key) !== value)) return false;
  return terms === undefined || terms.some((term) => matchesTerm(term, node));
}

/** The first taint with one of the effects that a Pod does not tolerate. */
export function untoleratedTaintOf(
  { tolerations }: Placement,
  { taints }: PlacingNode,
  effects: readonly string[],
): Taint | undefined {
  return taints.find(
    (taint) => effects.includes(taint.effect) && !tolerations.some((toleration) => tolerates(toleration, taint)),
  );
}

/** Labels of Pods with which a Pod never shares a Node. */
export function exclusionsOf({ affinity }: PodSpec): readonly LabelSelector[] {
  const terms = affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  return terms.flatMap(({ topologyKey, labelSelector }) =>
    topologyKey === HOSTNAME_LABEL && labelSelector !== undefined ? [labelSelector] : [],
  );
}

/** Whether the labels fit a selector; an empty one fits all. */
export function matchesLabels(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  labels: Readonly<Record<string, string>>,
): boolean {
  const labelValue = (key: string): string | undefined => (Object.hasOwn(labels, key) ? labels[key] : undefined);
  return (
    Object.entries(matchLabels).every(([key, value]) => labelValue(key) === value) &&
    matchExpressions.every((requirement) => matches(requirement, labelValue(requirement.key)))
  );
}

/** A term without requirements matches nothing. */
function matchesTerm({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm, node: PlacingNode): boolean {
  if (matchExpressions.length + matchFields.length === 0) return false;
  return (
    matchExpressions.every((requirement) => matches(requirement, labelOf(node, requirement.key))) &&
    matchFields.every((requirement) => requirement.key === 'metadata.name' && matches(requirement, node.name))
  );
}

function labelOf({ labels }: PlacingNode, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}

function matches({ operator, values = [] }: NodeSelectorRequirement, value: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
      return integerOf(value) > integerOf(values[0]);
    case 'Lt':
      return integerOf(value) < integerOf(values[0]);
    default:
      return false;
  }
}

/** NaN, which is neither greater nor less, for what is no integer. */
function integerOf(text: string | undefined): number {
  return text !== undefined && /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
}

function tolerates({ key = '', operator = 'Equal', value = '', effect = '' }: Toleration, taint: Taint): boolean {
  if (effect !== '' && effect !== taint.effect) return false;
  if (key !== '' && key !== taint.key) return false;
  if (operator === 'Exists') return true;
  return operator === 'Equal' && key !== '' && value === (taint.value ?? '');
}
