import type { Informer } from '../kube/watch/informer-types.ts';
import { isTerminal, type VPod, type VPodStatus } from './vpod.ts';

/**
 * Whether a Pod was deleted while no controller wrote for its Node: kube-controller-manager has left it as not Ready,
 * without a reason. Its module serves, and load balancers outside of the cluster send requests to it until a controller
 * writes a reason.
 */
export function isStranded(pod: VPod): boolean {
  if (!pod.isDeleting || isTerminal(pod) || !hasTrue(pod.status, 'ContainersReady')) return false;
  const ready = pod.status.conditions.find(({ type }) => type === 'Ready');
  return ready?.status === 'False' && ready.reason === undefined;
}

const DEPARTING = {
  reason: 'PodDeleted',
  message: 'the Pod is deleted: its modules are uninstalled after their preStop sleep',
};

/** The status of a stranded Pod that leaves: load balancers stop sending requests to it. */
export function departingStatusOf({ status }: VPod): VPodStatus {
  const conditions = status.conditions.map((entry) => (entry.type === 'Ready' ? { ...entry, ...DEPARTING } : entry));
  return { ...status, conditions };
}

/** The Pods of one namespace with the same modules, on Nodes that are Ready. */
interface Peers {
  ready: number;
  /** Deleted Pods that no load balancer should send requests to. */
  leaving: number;
  /** UIDs, sorted. */
  readonly stranded: string[];
}

export interface DeparturesOptions {
  readonly informer: Pick<Informer<VPod>, 'list'>;
  /** Whether the Node is Ready. */
  readonly isReadyNode: (nodeName: string) => boolean;
}

/** A count of all Pods is used for this long. */
const COUNTED_FOR_MS = 1_000;

/**
 * Decides which stranded Pods leave. At most half of the Pods with the same modules leave at a time, and the last one
 * that serves stays. All replicas count the same Pods and take them in the order of their UIDs, so that each decides
 * about its own bases.
 */
export class Departures {
  readonly #options: DeparturesOptions;
  #counted: { readonly at: number; readonly peers: ReadonlyMap<string, Peers> } | undefined;

  constructor(options: DeparturesOptions) {
    this.#options = options;
  }

  mayLeave(pod: VPod, now: number): boolean {
    const peers = this.#peers(now).get(keyOf(pod));
    if (peers === undefined) return false;
    const { ready, leaving, stranded } = peers;
    const leavers = Math.floor((ready + stranded.length - leaving) / 2);
    return stranded.slice(0, Math.max(0, leavers)).includes(pod.uid);
  }

  #peers(now: number): ReadonlyMap<string, Peers> {
    const { informer, isReadyNode } = this.#options;
    if (this.#counted !== undefined && now - this.#counted.at < COUNTED_FOR_MS) return this.#counted.peers;
    const peers = new Map<string, Peers>();
    for (const pod of informer.list()) {
      if (pod.nodeName === undefined || !isReadyNode(pod.nodeName)) continue;
      const key = keyOf(pod);
      const found = peers.get(key) ?? { ready: 0, leaving: 0, stranded: [] };
      peers.set(key, found);
      count(pod, found);
    }
    for (const { stranded } of peers.values()) stranded.sort();
    this.#counted = { at: now, peers };
    return peers;
  }
}

function count(pod: VPod, peers: Peers): void {
  if (isTerminal(pod)) return;
  if (isStranded(pod)) peers.stranded.push(pod.uid);
  else if (pod.isDeleting) peers.leaving++;
  else if (hasTrue(pod.status, 'Ready')) peers.ready++;
}

/** Equal for Pods of one namespace with the same modules, in any version. */
function keyOf({ namespace, containers }: VPod): string {
  return [namespace, ...containers.map(({ name }) => name).sort()].join('/');
}

function hasTrue({ conditions }: VPodStatus, wanted: string): boolean {
  return conditions.some(({ type, status }) => type === wanted && status === 'True');
}
