import type { ContainerStatus } from '../kube/objects.ts';
import type { ContainerView } from './module-view.ts';
import { UNSUPPORTED_MESSAGE } from './pod-status.ts';
import { statusIn, type VPod, type VPodStatus } from './vpod.ts';
import { ruleOf } from './waiting-reason.ts';

export interface PodEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

/**
 * The events of one status change, with a kubelet's reasons. They follow from what is written and what was
 * written before, so a restart of the controller reports nothing twice.
 */
export function podEventsOf(pod: VPod, next: VPodStatus, views: readonly ContainerView[]): PodEvent[] {
  const prev = pod.status;
  const events: PodEvent[] = [];
  if (next.reason !== prev.reason) {
    if (next.reason === 'UnsupportedWorkload') events.push(warning('UnsupportedWorkload', UNSUPPORTED_MESSAGE));
    if (next.reason === 'BaseUnreachable') events.push(warning('NodeNotReady', next.message ?? ''));
  }
  const viewOf = new Map(views.map(({ container, view }) => [container, view]));
  for (const status of next.containerStatuses) {
    const before = statusIn(prev.containerStatuses, status.name);
    const view = viewOf.get(status.name);
    if (view !== undefined) events.push(...containerEventsOf(status, before, view));
  }
  return events;
}

function containerEventsOf(
  status: ContainerStatus,
  before: ContainerStatus | undefined,
  view: ContainerView['view'],
): PodEvent[] {
  const { name } = status;
  if (status.state?.running && !before?.state?.running) return startedEvents(name, view);
  const waiting = status.state?.waiting;
  if (waiting === undefined || view.kind === 'Unsupported') return [];
  const old = before?.state?.waiting;
  if (old?.reason === waiting.reason && old?.message === waiting.message) return [];
  const rule = ruleOf(waiting.reason ?? '');
  if (rule?.event === undefined) return [];
  const message = `${waiting.reason}: container ${name}: ${waiting.message ?? ''}`;
  const isExpected = view.kind === 'Waiting' && view.isExpected === true;
  return [{ type: isExpected ? 'Normal' : rule.eventType, reason: rule.event, message }];
}

function startedEvents(name: string, view: ContainerView['view']): PodEvent[] {
  const started = normal('Started', `Started module of container ${name}`);
  if (view.kind !== 'Running' || view.sharedWith === undefined) return [started];
  const message = `Container ${name} shares the module that Pod ${view.sharedWith} has on this base; it is uninstalled when the last of these Pods is deleted`;
  return [started, warning('ModuleShared', message)];
}

function normal(reason: string, message: string): PodEvent {
  return { type: 'Normal', reason, message };
}

function warning(reason: string, message: string): PodEvent {
  return { type: 'Warning', reason, message };
}
