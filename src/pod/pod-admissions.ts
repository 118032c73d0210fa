import { type BackoffOptions, backoffMs } from '../queue/backoff.ts';
import { type AdmittingNode, type Rejection, rejectionsOf } from './pod-admission.ts';
import { isTerminal, type VPod } from './vpod.ts';

/** The Pods that a base must not be asked for, by UID. Undefined: its Node is not in the cache, and nobody can judge. */
export type HeldPods = ReadonlyMap<string, Rejection | undefined>;

interface Wait {
  readonly rejection: Rejection | undefined;
  readonly failures: number;
  readonly retryAt: number;
}

interface Judgement {
  readonly nodeName: string;
  readonly pods: readonly VPod[];
  readonly node: AdmittingNode | undefined;
  readonly now: number;
}

/** As the back-off of a failed install. */
const BACKOFF: BackoffOptions = { baseMs: 10_000, maxMs: 300_000 };
const NEVER = Number.POSITIVE_INFINITY;

/**
 * Which Pods are admitted to their Nodes. A Pod is judged until it is admitted, and never again: its status says so,
 * and until that is written this memory. One that does not fit is judged with every plan of its base, and after a
 * back-off at the latest.
 */
export class PodAdmissions {
  /** UIDs of Pods whose status does not say yet that they are admitted. Emptied with the Pod, or the lead of its base. */
  readonly #admitted = new Set<string>();
  /** By Node name, then UID. Replaced by each judgement; emptied with the lead of the base. */
  readonly #waits = new Map<string, ReadonlyMap<string, Wait>>();

  /** Judges the Pods of a Node. */
  judge(nodeName: string, pods: readonly VPod[], node: AdmittingNode | undefined, now: number): HeldPods {
    for (const pod of pods) if (pod.placement === undefined) this.#admitted.delete(pod.uid);
    const open = pods.filter((pod) => this.#isOpen(pod));
    const waits = open.length === 0 ? new Map<string, Wait>() : this.#waitsOf(open, { nodeName, pods, node, now });
    if (waits.size > 0) this.#waits.set(nodeName, waits);
    else this.#waits.delete(nodeName);
    return new Map([...waits].map(([uid, { rejection }]) => [uid, rejection]));
  }

  #waitsOf(open: readonly VPod[], { nodeName, pods, node, now }: Judgement): Map<string, Wait> {
    const isCandidate = (pod: VPod): boolean => this.#isOpen(pod) && !pod.isDeleting && !isTerminal(pod);
    const isOutside = (pod: VPod): boolean => !isCandidate(pod) && this.isHeld(pod);
    const rejections = node && rejectionsOf({ pods, node, isCandidate, isOutside });
    const before = this.#waits.get(nodeName);
    const waits = new Map<string, Wait>();
    for (const pod of open) {
      const wait = before?.get(pod.uid);
      if (isOutside(pod)) waits.set(pod.uid, { rejection: wait?.rejection, failures: 0, retryAt: NEVER });
      else if (!isCandidate(pod)) continue;
      else if (rejections && !rejections.has(pod)) this.#admitted.add(pod.uid);
      else waits.set(pod.uid, nextWait(wait, rejections?.get(pod), now));
    }
    return waits;
  }

  /** Whether a Pod was never admitted, so that nothing of it is on its base. */
  isHeld(pod: VPod): boolean {
    if (!this.#isOpen(pod)) return false;
    return this.#waits.get(pod.nodeName ?? '')?.has(pod.uid) === true || pod.status.containerStatuses.length > 0;
  }

  /** Whether Pods wait for the Node to change. */
  isAwaited(nodeName: string): boolean {
    return this.#waits.has(nodeName);
  }

  /** When the Pods of a Node have to be judged again even if nothing happens. */
  wakeAt(nodeName: string): number | undefined {
    let next = NEVER;
    for (const { retryAt } of this.#waits.get(nodeName)?.values() ?? []) next = Math.min(next, retryAt);
    return next === NEVER ? undefined : next;
  }

  forget(pod: VPod): void {
    this.#admitted.delete(pod.uid);
  }

  /** Another replica leads the base. */
  forgetNode(nodeName: string): void {
    this.#waits.delete(nodeName);
  }

  #isOpen(pod: VPod): boolean {
    return pod.placement !== undefined && !this.#admitted.has(pod.uid);
  }
}

function nextWait(before: Wait | undefined, rejection: Rejection | undefined, now: number): Wait {
  if (before !== undefined && now < before.retryAt) return { ...before, rejection };
  const failures = (before?.failures ?? 0) + 1;
  return { rejection, failures, retryAt: now + backoffMs(failures, BACKOFF) };
}
