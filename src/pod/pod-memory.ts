import { backoffMs, CONTAINER_BACKOFF } from '../queue/backoff.ts';
import { isStranded } from './departures.ts';
import { type AdmittingNode, type Rejection, rejectionsOf } from './pod-admission.ts';
import { isRunning, sleepMsOf, sleptMs, withinGrace } from './pre-stop.ts';
import type { SleepUntil } from './removals.ts';
import { isTerminal, type VPod } from './vpod.ts';

/** The Pods that are not admitted, by UID. Undefined: their Node is not in the cache, and nobody can judge. */
export type HeldPods = ReadonlyMap<string, Rejection | undefined>;

interface Wait {
  readonly rejection: Rejection | undefined;
  readonly failures: number;
  readonly retryAt: number;
}

interface Sleep {
  readonly since: number;
  /** How long the modules serve, unless the grace period ends before. */
  readonly sleepMs: number;
  readonly until: number;
}

/** A Pod that was deleted while no controller wrote for its Node, since that has ended. */
interface Stranded {
  readonly since: number;
  /** The end of its grace period, which begins then. */
  readonly until: number;
}

interface NodeView {
  /** Ready of the Node is Unknown. */
  readonly isUnknown: boolean;
  readonly now: number;
  /** Whether a stranded Pod may leave before its grace period ends. */
  readonly mayLeave: (pod: VPod) => boolean;
}

/** What the next plan of a Node does about Pods that were deleted while no controller wrote for it. */
export interface StrandedPods {
  /** Those of which load balancers learn now that they leave. */
  readonly departing: readonly VPod[];
  /** Others stay: when to look at them again. */
  readonly wakeAt: number | undefined;
}

interface Judgement {
  readonly nodeName: string;
  readonly pods: readonly VPod[];
  readonly node: AdmittingNode | undefined;
  readonly now: number;
}

const NEVER = Number.POSITIVE_INFINITY;
/** Interval at which Pods that stay are looked at again. */
const LOOK_INTERVAL_MS = 1_000;
const NONE_STRANDED: StrandedPods = { departing: [], wakeAt: undefined };
const NONE_HELD: HeldPods = new Map();

/**
 * What this process knows of Pods beyond their objects, until they are gone: since when a deleted Pod sleeps, which
 * Pods are admitted, and which ones it has deleted. No timers: the plan says when to look again.
 */
export class PodMemory implements SleepUntil {
  readonly #defaultSleepSeconds: number;
  /** Sleeps by the UID of the deleted Pod. Emptied when the Pod is gone. */
  readonly #sleeps = new Map<string, Sleep>();
  /**
   * Node names of deleted Pods by UID, while no controller writes for the Node: load balancers outside of the cluster send
   * requests to them too. Emptied when the Node shows its base again, and with the Pod or the lead of its base.
   */
  readonly #unattended = new Map<string, string>();
  /**
   * Such Pods by UID, from then on: they serve until others do. Emptied when their status says that they leave, and with
   * the Pod or the lead of its base.
   */
  readonly #stranded = new Map<string, Stranded>();
  /**
   * Sleeps of Pods whose modules others replace, by UID: `until` is there from the moment at which the API server has
   * the Pod as not Ready. Emptied when the plan does not replace it after all, and with the Pod or the lead of its base.
   */
  readonly #replaced = new Map<string, { readonly sleepMs: number; readonly until: number | undefined }>();
  /**
   * UIDs of Pods whose status does not say yet that they are admitted. Emptied with the Pod, or the lead of its base.
   */
  readonly #admitted = new Set<string>();
  /** Waits by Node name, then UID. Replaced by each judgement; emptied with the lead of the base. */
  readonly #waits = new Map<string, ReadonlyMap<string, Wait>>();
  /**
   * UIDs of Pods that were being deleted, and had no container status, when this process saw them first: they may have
   * become Pods of modules only then. Emptied with the Pod.
   */
  readonly #late = new Set<string>();
  /** UIDs that this process deleted and that the watch still shows. Emptied by the DELETED event. */
  readonly #deleted = new Set<string>();

  /** `defaultSleepSeconds`: `preStop.sleep` of containers that have none. */
  constructor(defaultSleepSeconds: number) {
    this.#defaultSleepSeconds = defaultSleepSeconds;
  }

  /**
   * Time until which the modules of a Pod that is deleted or replaced stay (`lifecycle.preStop.sleep`), infinite before
   * its status is written, or that of its Node; undefined for any other Pod.
   */
  get(uid: string): number | undefined {
    if (this.#unattended.has(uid)) return NEVER;
    const until = this.#stranded.get(uid)?.until ?? this.#sleeps.get(uid)?.until;
    const replaced = this.#replaced.get(uid);
    if (replaced === undefined) return until;
    return Math.max(until ?? 0, replaced.until ?? NEVER);
  }

  /** The Pod as the watch shows it now; `before` is undefined for one that was deleted before this process saw it. */
  observe(before: VPod | undefined, pod: VPod, { now, wallTime }: { now: number; wallTime: Date }): void {
    if (before === undefined && pod.isDeleting && isUntouched(pod)) this.#late.add(pod.uid);
    if (before?.isDeleting && !pod.isDeleting) this.#returned(pod);
    if (!pod.isDeleting || isTerminal(pod)) return;
    const known = this.#sleeps.get(pod.uid);
    const since = known?.since ?? (before === undefined ? now - sleptMs(pod, wallTime) : now);
    const sleepMs = known?.sleepMs ?? Math.max(sleepMsOf(pod, this.#defaultSleepSeconds), this.#takeReplaced(pod));
    const until = since + withinGrace(sleepMs, pod);
    // A second deletion may shorten the grace period; nothing makes the sleep longer.
    this.#sleeps.set(pod.uid, { since, sleepMs, until: Math.min(until, known?.until ?? until) });
  }

  /**
   * The sleep of a replaced Pod that has not begun: its own sleep replaces it. A status that was on its way before the
   * deletion may show the module as replaced already, while it serves.
   */
  #takeReplaced({ uid }: VPod): number {
    const replaced = this.#replaced.get(uid);
    if (replaced === undefined || replaced.until !== undefined) return 0;
    this.#replaced.delete(uid);
    return replaced.sleepMs;
  }

  /**
   * The Pods of a Node as the next plan sees them. Pods that were deleted while Ready of the Node was Unknown serve until
   * others do, at most for their grace period from then on. Their sleep begins when balancers learn that they leave.
   */
  noteNode(nodeName: string, pods: readonly VPod[], view: NodeView): StrandedPods {
    const departing: VPod[] = [];
    let wakeAt: number | undefined;
    for (const pod of pods) {
      const sleep = pod.isDeleting ? this.#sleeps.get(pod.uid) : undefined;
      if (sleep === undefined) continue;
      if (view.isUnknown) {
        this.#unattended.set(pod.uid, nodeName);
        this.#stranded.delete(pod.uid);
      } else if (isStranded(pod)) {
        if (this.#departs(pod, sleep, view)) departing.push(pod);
        wakeAt = view.now + LOOK_INTERVAL_MS;
      } else this.#noteLeft(pod, sleep, view.now);
    }
    return wakeAt === undefined ? NONE_STRANDED : { departing, wakeAt };
  }

  /** Balancers learn that a Pod leaves before its grace period ends. */
  #departs(pod: VPod, { sleepMs }: Sleep, { now, mayLeave }: NodeView): boolean {
    this.#unattended.delete(pod.uid);
    const { since, until: before } = this.#stranded.get(pod.uid) ?? { since: now, until: NEVER };
    // A second deletion may shorten the grace period; nothing makes it longer.
    const until = Math.min(before, since + withinGrace(NEVER, pod));
    this.#stranded.set(pod.uid, { since, until });
    return mayLeave(pod) || now >= until - sleepMs;
  }

  /** No balancer sends requests to it from now on. */
  #noteLeft(pod: VPod, sleep: Sleep, now: number): void {
    const graceEnd = this.#stranded.get(pod.uid)?.until ?? NEVER;
    const wasStranded = this.#stranded.delete(pod.uid);
    if (!this.#unattended.delete(pod.uid) && !wasStranded) return;
    const until = Math.min(now + withinGrace(sleep.sleepMs, pod), graceEnd);
    this.#sleeps.set(pod.uid, { ...sleep, since: now, until });
  }

  /**
   * The plan of a base shows these of its Pods as replaced. Their modules stay for their sleep, which begins when that
   * is written.
   */
  noteReplaced(replaced: readonly VPod[], pods: readonly VPod[]): void {
    if (this.#replaced.size > 0) {
      const uids = new Set(replaced.map(({ uid }) => uid));
      for (const { uid } of pods) {
        if (!uids.has(uid) && this.#replaced.get(uid)?.until === undefined) this.#replaced.delete(uid);
      }
    }
    for (const pod of replaced) {
      const sleepMs = sleepMsOf(pod, this.#defaultSleepSeconds);
      if (sleepMs > 0) this.#replaced.set(pod.uid, { sleepMs, until: undefined });
    }
  }

  /** `unwritten`: names of the modules of Pods whose status could not be written. */
  noteWritten(pods: readonly VPod[], unwritten: ReadonlySet<string>, now: number): void {
    if (this.#replaced.size === 0) return;
    for (const pod of pods) {
      const entry = this.#replaced.get(pod.uid);
      if (entry === undefined || entry.until !== undefined) continue;
      if (pod.containers.some(({ name }) => unwritten.has(name) || isRunning(pod, name))) continue;
      this.#replaced.set(pod.uid, { ...entry, until: now + entry.sleepMs });
    }
  }

  /**
   * Judges the Pods of a Node. A Pod is judged until it is admitted, and never again: its status says so, and until
   * that is written this memory. One that does not fit is judged with every plan of its base, and after a back-off at
   * the latest.
   */
  judge(nodeName: string, pods: readonly VPod[], node: AdmittingNode | undefined, now: number): HeldPods {
    for (const pod of pods) if (pod.placement === undefined) this.#admitted.delete(pod.uid);
    const open = pods.filter((pod) => this.#isOpen(pod));
    const waits = open.length === 0 ? undefined : this.#waitsOf(open, { nodeName, pods, node, now });
    if (waits === undefined || waits.size === 0) {
      this.#waits.delete(nodeName);
      return NONE_HELD;
    }
    this.#waits.set(nodeName, waits);
    return new Map([...waits].map(([uid, { rejection }]) => [uid, rejection]));
  }

  /** Whether a Pod was never admitted, so that nothing of it is on its base. */
  isHeld(pod: VPod): boolean {
    if (!this.#isOpen(pod)) return false;
    const isJudged = this.#waits.get(pod.nodeName ?? '')?.has(pod.uid) === true;
    return isJudged || !isUntouched(pod) || this.#isLate(pod);
  }

  /** Whether Pods wait for the Node to change. */
  isAwaited(nodeName: string): boolean {
    if (this.#waits.has(nodeName)) return true;
    for (const waitedFor of this.#unattended.values()) if (waitedFor === nodeName) return true;
    return false;
  }

  /** When the Pods of a Node have to be judged again even if nothing happens. */
  wakeAt(nodeName: string): number | undefined {
    let next = NEVER;
    for (const { retryAt } of this.#waits.get(nodeName)?.values() ?? []) next = Math.min(next, retryAt);
    return next === NEVER ? undefined : next;
  }

  isDeleted({ uid }: VPod): boolean {
    return this.#deleted.has(uid);
  }

  noteDeletion({ uid }: VPod): void {
    this.#deleted.add(uid);
  }

  deletionFailed({ uid }: VPod): void {
    this.#deleted.delete(uid);
  }

  /** The Pod is gone. Returns whether its base may still have modules of it: nobody has waited for their removal. */
  forget(pod: VPod): boolean {
    const hadNothing = this.#deleted.delete(pod.uid) || this.isHeld(pod);
    this.#sleeps.delete(pod.uid);
    this.#unattended.delete(pod.uid);
    this.#stranded.delete(pod.uid);
    this.#replaced.delete(pod.uid);
    this.#admitted.delete(pod.uid);
    this.#late.delete(pod.uid);
    return !hadNothing;
  }

  /** Another replica leads the base, and judges its Pods. */
  forgetNode(nodeName: string, pods: readonly VPod[]): void {
    this.#waits.delete(nodeName);
    for (const { uid } of pods) {
      this.#admitted.delete(uid);
      this.#replaced.delete(uid);
      this.#unattended.delete(uid);
      this.#stranded.delete(uid);
    }
  }

  /** A deletion is final, except where etcd was restored to a state before it. */
  #returned({ uid }: VPod): void {
    this.#sleeps.delete(uid);
    this.#unattended.delete(uid);
    this.#stranded.delete(uid);
    this.#deleted.delete(uid);
    this.#late.delete(uid);
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

  #isOpen(pod: VPod): boolean {
    return (pod.placement !== undefined && !this.#admitted.has(pod.uid)) || this.#isLate(pod);
  }

  /** Only a status, which tenants cannot write, proves that something of it may be on its base. */
  #isLate(pod: VPod): boolean {
    return this.#late.has(pod.uid) && isUntouched(pod);
  }
}

/** No container has a status: a first install that has just begun has none, and what nobody has done anything for. */
function isUntouched({ status }: VPod): boolean {
  return status.containerStatuses.length === 0;
}

function nextWait(before: Wait | undefined, rejection: Rejection | undefined, now: number): Wait {
  if (before !== undefined && now < before.retryAt) return { ...before, rejection };
  const failures = (before?.failures ?? 0) + 1;
  return { rejection, failures, retryAt: now + backoffMs(failures, CONTAINER_BACKOFF) };
}
