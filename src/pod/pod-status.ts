import { isDeepStrictEqual } from 'node:util';
import type { ConditionStatus, ContainerState, ContainerStatus, PodCondition } from '../kube/objects.ts';
import { moduleKeyOf } from '../tunnel/module.ts';
import { containerModulesOf } from './module-spec.ts';
import type { ContainerView, ModuleView } from './module-view.ts';
import { byType, type VPod, type VPodStatus } from './vpod.ts';
import { ruleOf } from './waiting-reason.ts';

/** What a Pod's status needs to know of the base. */
export interface BaseFacts {
  readonly identity: string;
  readonly ip: string;
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
 * kubelet; README "Module states"). Pure, and it reads all that it remembers from the Pod's own status, so that
 * it goes on after a restart of the controller. Returns the old status itself when nothing is to be written.
 */
export function computePodStatus(input: PodStatusInput): VPodStatus {
  const { pod, views, base, nowText } = input;
  const prev = pod.status;
  if (isUntold(input)) return prev;
  const containerStatuses = pod.containers.flatMap((container, index) => {
    const view = views[index]?.view ?? { kind: 'Unknown' as const };
    const status = containerStatusOf(input, container.name, view);
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
    podIP: isUnsupported || !base.isRoutable ? prev.podIP : base.ip,
    hostIP: base.ip,
    conditions,
    containerStatuses:
      phase === 'Failed' ? containerStatuses.map((status) => terminated(status, nowText)) : containerStatuses,
  };
  return isDeepStrictEqual(next, prev) ? prev : next;
}

export const UNSUPPORTED_MESSAGE =
  'no container of the Pod is a module: the image of a module is the address of a .jar';

/** Unknown is not news: nothing is written before the list was read. Nor is a quick first install, until it ends. */
function isUntold({ pod, views, base, now }: PodStatusInput): boolean {
  const isNew = pod.status.containerStatuses.length === 0;
  if (base.unreachable) return isNew;
  if (views.some(({ view }) => view.kind === 'Unknown')) return true;
  return isNew && views.every(({ view }) => view.kind === 'Installing' && now - view.sinceMs < SLOW_INSTALL_MS);
}

function containerStatusOf(input: PodStatusInput, name: string, view: ModuleView): ContainerStatus | undefined {
  const { pod, base } = input;
  const index = pod.containers.findIndex((container) => container.name === name);
  const entry = containerModulesOf(pod)[index];
  const prev = pod.status.containerStatuses.find((status) => status.name === name);
  if (view.kind === 'Unknown') return prev;
  const image = pod.containers[index]?.image ?? '';
  const common = { name, image, imageID: prev?.imageID ?? '', restartCount: prev?.restartCount ?? 0 };
  if (entry?.kind !== 'module' || view.kind === 'Unsupported') {
    const [reason, message] = waitingText(view);
    return { ...common, ready: false, started: false, state: { waiting: waitingState(reason, message) } };
  }
  const containerID = `koupleless://${base.identity}/${moduleKeyOf(entry.spec)}`;
  if (view.kind === 'Running') return { ...runningStatus(common, prev, input.nowText), imageID: image, containerID };
  return { ...waitingStatus(common, prev, view, input.nowText), ...(prev?.containerID ? { containerID } : {}) };
}

type Common = Pick<ContainerStatus, 'name' | 'image' | 'imageID' | 'restartCount'>;

function runningStatus(common: Common, prev: ContainerStatus | undefined, nowText: string): ContainerStatus {
  const lastState = prev?.lastState?.terminated ? { lastState: prev.lastState } : {};
  if (prev?.state?.running) {
    return { ...common, ready: true, started: true, state: prev.state, ...lastState };
  }
  // It ended before (lastState says so) and now runs again; a deactivated module never ended.
  const isRestart = prev?.lastState?.terminated !== undefined && prev.state?.waiting?.reason !== 'BizDeactivated';
  const restartCount = common.restartCount + (isRestart ? 1 : 0);
  return {
    ...common,
    restartCount,
    ready: true,
    started: true,
    state: { running: { startedAt: nowText } },
    ...lastState,
  };
}

function waitingStatus(
  common: Common,
  prev: ContainerStatus | undefined,
  view: ModuleView,
  nowText: string,
): ContainerStatus {
  const [reason, message] = waitingText(view);
  // What is installed anew is not there meanwhile.
  const isEnded = view.kind === 'Installing' || (view.kind === 'Waiting' && view.isEnded);
  const lastState = isEnded ? endedState(prev, reason, message, nowText) : prev?.lastState;
  const state = { waiting: waitingState(reason, message) };
  const isStarted = !isEnded && prev?.started === true;
  return { ...common, ready: false, started: isStarted, state, ...(lastState?.terminated ? { lastState } : {}) };
}

function endedState(
  prev: ContainerStatus | undefined,
  reason: string,
  message: string | undefined,
  nowText: string,
): ContainerState | undefined {
  const startedAt = prev?.state?.running?.startedAt;
  const wasDeactivated = prev?.state?.waiting?.reason === 'BizDeactivated' && prev.started === true;
  if (startedAt === undefined && !wasDeactivated) return prev?.lastState;
  return {
    terminated: {
      exitCode: 1,
      reason: reason === 'ContainerCreating' ? 'Error' : reason,
      ...(message === undefined ? {} : { message }),
      startedAt: startedAt ?? nowText,
      finishedAt: nowText,
      ...(prev?.containerID ? { containerID: prev.containerID } : {}),
    },
  };
}

function waitingState(reason: string, message: string | undefined): NonNullable<ContainerState['waiting']> {
  return message === undefined ? { reason } : { reason, message };
}

function waitingText(view: ModuleView): [string, string | undefined] {
  if (view.kind === 'Waiting') return [view.reason, view.message];
  if (view.kind === 'Unsupported') return ['UnsupportedWorkload', 'the image is no .jar, so this is no module'];
  return ['ContainerCreating', undefined];
}

function terminated(status: ContainerStatus, nowText: string): ContainerStatus {
  if (status.state?.terminated) return status;
  const { lastState, ...rest } = status;
  // It ran and ended: that end is the one to show.
  if (lastState?.terminated && !status.state?.running) {
    return { ...rest, ready: false, started: false, state: { terminated: lastState.terminated } };
  }
  const { reason, message } = status.state?.waiting ?? { reason: 'Error', message: 'another module of the Pod failed' };
  const state = {
    terminated: {
      exitCode: 1,
      reason: reason ?? 'Error',
      ...(message === undefined ? {} : { message }),
      startedAt: status.state?.running?.startedAt ?? nowText,
      finishedAt: nowText,
    },
  };
  return { ...status, ready: false, started: false, state };
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

/** Our four conditions follow those of others, which stay as they are. */
function conditionsOf(input: PodStatusInput, statuses: readonly ContainerStatus[], phase: string): PodCondition[] {
  const { pod, views, base } = input;
  const counted = views.filter(({ view }) => view.kind !== 'Unsupported').map(({ container }) => container);
  const waiting = counted.filter((name) => !statuses.find((status) => status.name === name)?.ready);
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
