import type { ContainerState, ContainerStatus } from '../kube/objects.ts';
import { imageIdOf, redactUrl, redactUrls, storedImageIdOf } from '../redact-url.ts';
import { moduleKeyOf } from '../tunnel/module.ts';
import type { ContainerModule } from './module-spec.ts';
import type { ModuleView } from './module-view.ts';

export interface ContainerInput {
  readonly entry: ContainerModule;
  readonly image: string;
  readonly view: ModuleView;
  /** What is written now; undefined for a container that nothing was written of yet. */
  readonly prev: ContainerStatus | undefined;
  readonly identity: string;
  readonly nowText: string;
}

/** The status of one container from the one it has, without secrets of URLs; undefined when there is none yet. */
export function containerStatusOf(input: ContainerInput): ContainerStatus | undefined {
  const status = nextStatusOf(input);
  return status && withoutSecrets(status);
}

/** An earlier version of the controller wrote whole URLs, and a base's words as they came. */
function withoutSecrets({ state, lastState, ...status }: ContainerStatus): ContainerStatus {
  return {
    ...status,
    image: redactUrl(status.image),
    imageID: storedImageIdOf(status.imageID),
    ...(state === undefined ? {} : { state: stateWithoutSecrets(state) }),
    ...(lastState === undefined ? {} : { lastState: stateWithoutSecrets(lastState) }),
  };
}

function stateWithoutSecrets(state: ContainerState): ContainerState {
  const { waiting, terminated: ended } = state;
  if (waiting?.message !== undefined) {
    return { ...state, waiting: { ...waiting, message: redactUrls(waiting.message) } };
  }
  if (ended?.message === undefined) return state;
  return { ...state, terminated: { ...ended, message: redactUrls(ended.message) } };
}

function nextStatusOf({ entry, image, view, prev, identity, nowText }: ContainerInput): ContainerStatus | undefined {
  if (view.kind === 'Unknown') return prev;
  if (isSwitching(view) && prev) return prev.state?.running ? deactivatedStatus(prev) : prev;
  const name = entry.container;
  const common = { name, image, imageID: prev?.imageID ?? '', restartCount: prev?.restartCount ?? 0 };
  if (entry.kind !== 'module' || view.kind === 'Unsupported') {
    const [reason, message] = waitingText(view);
    return { ...common, ready: false, started: false, state: { waiting: waitingState(reason, message) } };
  }
  const containerID = `koupleless://${identity}/${moduleKeyOf(entry.spec)}`;
  if (view.kind === 'Running')
    return { ...runningStatus(common, prev, nowText), imageID: imageIdOf(image), containerID };
  return { ...waitingStatus(common, prev, view, nowText), ...(prev?.containerID ? { containerID } : {}) };
}

/** It is on the base all the while: what is shown of it changes when it has become the active version. */
function isSwitching(view: ModuleView): boolean {
  return view.kind === 'Installing' && view.isSwitch === true;
}

/** It ran and does not serve now. */
function deactivatedStatus(prev: ContainerStatus): ContainerStatus {
  const state = { waiting: waitingState('BizDeactivated', 'the base is switching back to this version') };
  return { ...prev, ready: false, state };
}

type Common = Pick<ContainerStatus, 'name' | 'image' | 'imageID' | 'restartCount'>;

function runningStatus(common: Common, prev: ContainerStatus | undefined, nowText: string): ContainerStatus {
  const lastState = prev?.lastState?.terminated ? { lastState: prev.lastState } : {};
  if (prev?.state?.running) {
    return { ...common, ready: true, started: true, state: prev.state, ...lastState };
  }
  // It ended before (lastState says so) and now runs again; one that was only deactivated is still started.
  const isRestart = prev?.lastState?.terminated !== undefined && prev.started !== true;
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
  // A module that is being reinstalled is not there meanwhile.
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
  if (startedAt === undefined && prev?.started !== true) return prev?.lastState;
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
  if (view.kind === 'Unsupported')
    return ['UnsupportedWorkload', 'the image is not a .jar, so the container is not a module'];
  return ['ContainerCreating', undefined];
}

/** The last status of a container whose Pod has failed. */
export function terminated(status: ContainerStatus, nowText: string): ContainerStatus {
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
