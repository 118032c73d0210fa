import { isDeepStrictEqual } from 'node:util';
import type { ConditionStatus, ContainerStatus, PodCondition } from '../kube/objects.ts';
import { containerStatusOf, terminated } from './container-status.ts';
import { containerModulesOf } from './module-spec.ts';
import type { ContainerView } from './module-view.ts';
import { byType, statusIn, type VPod, type VPodStatus } from './vpod.ts';
import { isAdmissionReason, ruleOf } from './waiting-reason.ts';

/** What a Pod's status needs to know of the base. */
export interface BaseFacts {
  readonly identity: string;
  /** undefined: it has none that may be stored. */
  readonly ip: string | undefined;
  /** A loopback, link-local, … podIP makes Kubernetes refuse the EndpointSlice of every Service that selects it. */
  readonly isRoutable: boolean;
  /** undefined while the base is reachable. */
  readonly unreachable: { readonly message: string } | undefined;
}

export interface PodStatusInput {
  readonly pod: VPod;
  readonly views: readonly ContainerView[];
  readonly base: BaseFacts;
  /** Monotonic now, and the wall clock as metav1.Time (whole seconds). */
  readonly now: number;
  readonly nowText: string;
}

/** An install that ends sooner than this is written once, when it has ended. */
export const SLOW_INSTALL_MS = 2_000;

/**
 * The status a Pod should have, from the one it has and what is known of its modules (ecosystem conventions of a
 * kubelet; docs/modules.md "Module states"). Pure, and it reads all that it remembers from the Pod's own status, so
 * that it goes on after a restart of the controller. Returns the old status itself when nothing is to be written.
 */
export function computePodStatus(input: PodStatusInput): VPodStatus {
  const { pod, views, base, nowText } = input;
  const prev = pod.status;
  if (isUntold(input)) return prev;
  const containerStatuses = containerModulesOf(pod).flatMap((entry, index) => {
    const view = views[index]?.view ?? { kind: 'Unknown' as const };
    const image = pod.containers[index]?.image ?? '';
    const prevStatus = statusIn(prev.containerStatuses, entry.container);
    const status = containerStatusOf({ entry, image, view, prev: prevStatus, identity: base.identity, nowText });
    return status === undefined ? [] : [status];
  });
  const isUnsupported = views.every(({ view }) => view.kind === 'Unsupported');
  const phase = phaseOf(input, containerStatuses);
  const conditions = conditionsOf(input, containerStatuses, phase);
  const next: VPodStatus = {
    phase,
    reason: isUnsupported ? 'UnsupportedWorkload' : base.unreachable ? 'BaseUnreachable' : undefined,
    message: isUnsupported ? UNSUPPORTED_MESSAGE : base.unreachable?.message,
    observedGeneration: pod.generation,
    startTime: prev.startTime ?? nowText,
    podIP: isUnsupported ? prev.podIP : podIPOf(input),
    hostIP: base.ip,
    conditions,
    containerStatuses:
      phase === 'Failed' ? containerStatuses.map((status) => terminated(status, nowText)) : containerStatuses,
  };
  return isDeepStrictEqual(asStoredBeside(prev, next), prev) ? prev : next;
}

/**
 * A Pod that its base does not admit has no address: a Service with `publishNotReadyAddresses` would lead to a base that
 * it must not reach. The others keep the address of before while their base has one that no Service can use, such as
 * loopback.
 */
function podIPOf({ pod, views, base: { ip, isRoutable } }: PodStatusInput): string | undefined {
  if (views.some(({ view }) => view.kind === 'Waiting' && isAdmissionReason(view.reason))) return undefined;
  return ip === undefined || isRoutable ? ip : pod.status.podIP;
}

/**
 * `next` without the generation it was made for, if `stored` has none: Kubernetes 1.33 counts the generations of Pods,
 * but drops that field from statuses, unless its gate `PodObservedGenerationTracking` is on. After an upgrade the field
 * comes with the next change of the status.
 */
export function asStoredBeside(stored: VPodStatus, next: VPodStatus): VPodStatus {
  if (stored.observedGeneration !== undefined || next.observedGeneration === undefined) return next;
  const conditions = next.conditions.map((entry) => {
    const { observedGeneration: _, ...kept } = entry;
    return OWN_CONDITIONS.includes(entry.type) ? kept : entry;
  });
  return { ...next, observedGeneration: undefined, conditions };
}

export const UNSUPPORTED_MESSAGE =
  'no container of the Pod is a module: the image of a module is the address of a .jar';

/** Unknown is not news: nothing is written before the list was read. Nor is a quick first install, until it ends. */
function isUntold({ pod, views, base, now }: PodStatusInput): boolean {
  const isNew = pod.status.containerStatuses.length === 0;
  if (base.unreachable) return isNew;
  const isReady = (name: string): boolean => statusIn(pod.status.containerStatuses, name)?.ready === true;
  const isLoss = ({ container, view }: ContainerView): boolean =>
    view.kind !== 'Unknown' && view.kind !== 'Running' && isReady(container);
  // What is known to be lost does not wait for what is not known.
  if (views.some(({ view }) => view.kind === 'Unknown')) return !views.some(isLoss);
  return isNew && views.every(({ view }) => view.kind === 'Installing' && now - view.sinceMs < SLOW_INSTALL_MS);
}

function phaseOf({ pod, views }: PodStatusInput, statuses: readonly ContainerStatus[]): string {
  const modules = statuses.filter((_, index) => views[index]?.view.kind !== 'Unsupported');
  if (pod.restartPolicy === 'Never' && modules.some(hasFailed)) return 'Failed';
  if (pod.status.phase === 'Running') return 'Running';
  const wanted = views.filter(({ view }) => view.kind !== 'Unsupported').length;
  const started = modules.filter(({ state, lastState }) => state?.running || lastState?.terminated).length;
  return wanted > 0 && started === wanted ? 'Running' : 'Pending';
}

function hasFailed({ state }: ContainerStatus): boolean {
  return ruleOf(state?.waiting?.reason ?? '')?.isFailure === true;
}

const OWN_CONDITIONS = ['PodReadyToStartContainers', 'Initialized', 'ContainersReady', 'Ready'];

/** The controller's conditions as in `own`, those of others as in `stored`. */
export function withOwnConditionsOf(own: VPodStatus, stored: VPodStatus): PodCondition[] {
  const isOurs = ({ type }: PodCondition): boolean => OWN_CONDITIONS.includes(type);
  const others = stored.conditions.filter((entry) => !isOurs(entry));
  return [...others, ...own.conditions.filter(isOurs)].sort(byType);
}

/** The controller's four conditions follow those of others, which stay as they are. */
function conditionsOf(input: PodStatusInput, statuses: readonly ContainerStatus[], phase: string): PodCondition[] {
  const { pod, views, base } = input;
  const counted = views.filter(({ view }) => view.kind !== 'Unsupported').map(({ container }) => container);
  const waiting = counted.filter((name) => !statusIn(statuses, name)?.ready);
  const gates = pod.readinessGates.filter((gate) => !hasTrue(pod.status.conditions, gate));
  const containersReady = counted.length > 0 && waiting.length === 0 && phase === 'Running';
  const isStarted = counted.length > 0;
  const notReady = { reason: 'ContainersNotReady', message: `containers with unready status: [${waiting.join(' ')}]` };
  const conditions = [
    ...pod.status.conditions.filter(({ type }) => !OWN_CONDITIONS.includes(type)),
    condition(input, 'PodReadyToStartContainers', isStarted),
    condition(input, 'Initialized', true),
    condition(input, 'ContainersReady', containersReady, notReady),
    base.unreachable
      ? condition(input, 'Ready', false, { reason: 'BaseUnreachable', message: base.unreachable.message })
      : condition(
          input,
          'Ready',
          containersReady && gates.length === 0,
          containersReady ? gatesNotReady(gates) : notReady,
        ),
  ];
  return conditions.sort(byType);
}

function gatesNotReady(gates: readonly string[]): { reason: string; message: string } {
  return {
    reason: 'ReadinessGatesNotReady',
    message: `the status of pod readiness gate "${gates.join('", "')}" is not "True"`,
  };
}

function hasTrue(conditions: readonly PodCondition[], type: string): boolean {
  return conditions.some((entry) => entry.type === type && entry.status === 'True');
}

/** `lastTransitionTime` moves only with `status`: minReadySeconds counts from it. */
function condition(
  { pod, nowText }: PodStatusInput,
  type: string,
  isTrue: boolean,
  why?: { reason: string; message: string },
): PodCondition {
  const status: ConditionStatus = isTrue ? 'True' : 'False';
  const prev = pod.status.conditions.find((entry) => entry.type === type);
  const lastTransitionTime = prev?.status === status ? (prev.lastTransitionTime ?? nowText) : nowText;
  return {
    type,
    status,
    lastTransitionTime,
    ...(isTrue || why === undefined ? {} : why),
    ...(pod.generation === undefined ? {} : { observedGeneration: pod.generation }),
  };
}
