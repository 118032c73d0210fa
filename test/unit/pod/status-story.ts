import type { ContainerStatus } from '../../../src/kube/objects.ts';
import type { ContainerView, ModuleView } from '../../../src/pod/module-view.ts';
import { type BaseFacts, computePodStatus } from '../../../src/pod/pod-status.ts';
import { isTerminal, type VPod, type VPodStatus } from '../../../src/pod/vpod.ts';
import { WAITING_REASONS, type WaitingReason } from '../../../src/pod/waiting-reason.ts';
import { makePod, type PodOptions } from '../../support/builders.ts';

/** What a Pod of one base goes through, step by step, one minute each; `t3` is the time of the third step. */
export interface Story {
  readonly name: string;
  readonly pod?: PodOptions;
  readonly gates?: readonly string[];
  readonly steps: readonly Step[];
}

export interface Step {
  /** By container: `Running`, `Unknown`, `Unsupported`, `Installing 3` (s), `Switching 3`, `Waiting Reason`, `Waiting Reason kept`. */
  readonly modules: Readonly<Record<string, string>>;
  readonly base?: { ip?: string; unreachable?: boolean; unroutable?: boolean };
  /** The image from now on. */
  readonly image?: string;
  /** Conditions that others write before the step, `type` → status. */
  readonly others?: Readonly<Record<string, 'True' | 'False'>>;
  readonly expect: string | readonly string[];
}

const NOW_MS = 1_000_000;
const timeOf = (step: number): string => `2026-01-01T00:${String(step).padStart(2, '0')}:00Z`;
const shortTime = (text = '-'): string => text.replace(/^2026-01-01T00:0?(\d+):00Z$/, 't$1');

export function tellStory({ pod: options = {}, gates = [], steps }: Story): (string | readonly string[])[] {
  const scheduled = { type: 'PodScheduled', status: 'True' as const, lastTransitionTime: timeOf(0) };
  let pod: VPod = {
    ...makePod({ ...options, uid: 'u1', status: { phase: 'Pending', conditions: [scheduled] } }),
    readinessGates: gates,
  };
  return steps.map((step, index) => {
    pod = prepared(pod, step, index + 1);
    const next = statusAt(pod, step, index + 1);
    if (next === pod.status) return 'unchanged';
    pod = { ...pod, status: next };
    // A second look, or another controller, must find nothing to write; at a Pod that has ended nobody looks.
    const isWrittenAgain = !isTerminal(pod) && statusAt(pod, step, index + 1) !== next;
    if (isWrittenAgain) throw new Error(`step ${index + 1} would be written again`);
    return wordsOf(next);
  });
}

function prepared(pod: VPod, { image, others = {} }: Step, index: number): VPod {
  const changed = Object.entries(others).map(([type, status]) => ({ type, status, lastTransitionTime: timeOf(index) }));
  const conditions = [...pod.status.conditions.filter(({ type }) => !(type in others)), ...changed];
  conditions.sort((a, b) => (a.type < b.type ? -1 : 1));
  const containers = image === undefined ? pod.containers : pod.containers.map((entry) => ({ ...entry, image }));
  const status = changed.length === 0 ? pod.status : { ...pod.status, conditions };
  return { ...pod, containers, status };
}

export function statusAt(pod: VPod, step: Pick<Step, 'modules' | 'base'>, index: number): VPodStatus {
  const { ip = '198.51.100.1', unreachable = false, unroutable = false } = step.base ?? {};
  const base: BaseFacts = {
    identity: 'b1',
    ip,
    isRoutable: !unroutable,
    unreachable: unreachable ? { message: 'base b1 sent nothing for 25 s' } : undefined,
  };
  const views = Object.entries(step.modules).map(([container, text]) => ({ container, view: viewOf(text) }));
  return computePodStatus({ pod, views: views as ContainerView[], base, now: NOW_MS, nowText: timeOf(index) });
}

export function viewOf(text: string): ModuleView {
  const [kind, word = '', kept] = text.split(' ');
  if (kind === 'Installing') return { kind, sinceMs: NOW_MS - Number(word) * 1000 };
  if (kind === 'Switching') return { kind: 'Installing', sinceMs: NOW_MS - Number(word) * 1000, isSwitch: true };
  if (kind === 'Waiting') return waitingView(word, kept !== 'kept');
  return { kind: kind as 'Running' | 'Unknown' | 'Unsupported' };
}

function waitingView(reason: string, isEnded: boolean): ModuleView {
  if (!Object.hasOwn(WAITING_REASONS, reason)) throw new Error(`no such waiting reason: ${reason}`);
  return { kind: 'Waiting', reason: reason as WaitingReason, message: `why ${reason}`, isEnded };
}

/** A status in a few lines: phase and addresses, our conditions that say something, containers. */
export function wordsOf(status: VPodStatus): string[] {
  const { phase, reason, podIP = '-', hostIP = '-', startTime } = status;
  const pod = [
    `${phase}${reason ? ` (${reason})` : ''}`,
    `podIP ${podIP}`,
    `hostIP ${hostIP}`,
    `start ${shortTime(startTime)}`,
  ];
  const conditions = status.conditions
    .filter(({ type }) => type !== 'Initialized' && type !== 'PodScheduled')
    .map(({ type, status, reason, lastTransitionTime }) =>
      [type, status, shortTime(lastTransitionTime ?? '-'), reason].filter(Boolean).join(' '),
    );
  return [pod.join(', '), conditions.join(', '), ...status.containerStatuses.map(containerWords)];
}

function containerWords(status: ContainerStatus): string {
  const { name, ready, started, restartCount, imageID, state, lastState } = status;
  const { waiting, running, terminated } = state ?? {};
  const now =
    (running && `running since ${shortTime(running.startedAt)}`) ??
    (waiting && `waiting ${waiting.reason}`) ??
    `terminated ${terminated?.reason}`;
  const last = lastState?.terminated;
  return [
    `${name} ${now}`,
    ready ? 'ready' : 'not ready',
    started ? 'started' : 'not started',
    `restarts ${restartCount}`,
    `image ${imageID.split('/').pop() || '-'}`,
    ...(last ? [`before ${last.reason} ${shortTime(last.startedAt)} to ${shortTime(last.finishedAt)}`] : []),
  ].join(', ');
}
