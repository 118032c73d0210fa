import type { Patch } from '../client.ts';
import { secondsTime } from '../micro-time.ts';
import type { EventObject } from '../objects.ts';
import { apiVersionOf, PODS, type ResourceKind } from '../resource.ts';
import type { CachedObject } from '../watch/informer-types.ts';
import type { EventSeries, EventSubject } from './event-correlator.ts';

const COMPONENT = 'module-controller';
const MAX_NAME_LENGTH = 253;

export interface EventWriting {
  readonly name: string;
  readonly reportingInstance: string;
  /** Wall-clock times of the first and the last occurrence. */
  readonly firstTime: Date;
  readonly lastTime: Date;
}

/** A Node as the subject of an event; like a kubelet, with its name for a UID, where `kubectl describe node` looks. */
export function nodeSubject(nodeName: string): EventSubject {
  return { apiVersion: 'v1', kind: 'Node', namespace: '', name: nodeName, uid: nodeName };
}

export function podSubject(pod: CachedObject): EventSubject {
  return subjectOf(PODS, pod);
}

/** A cached object of a kind as the subject of an event. */
export function subjectOf(
  kind: ResourceKind,
  { namespace, name, uid }: Pick<CachedObject, 'namespace' | 'name' | 'uid'>,
): EventSubject {
  return { apiVersion: apiVersionOf(kind), kind: kind.kind, namespace, name, uid };
}

/** Events of cluster-scoped objects live in `default`. */
export function eventNamespaceOf(subject: EventSubject): string {
  return subject.namespace === '' ? 'default' : subject.namespace;
}

/** `<object>.<suffix>`, the object's name cut where both would be too long. */
export function eventNameOf(subject: EventSubject, suffix: string): string {
  const stem = subject.name.slice(0, MAX_NAME_LENGTH - suffix.length - 1).replace(/[^a-z0-9]+$/, '');
  return `${stem}.${suffix}`;
}

export function buildEvent(series: EventSeries, writing: EventWriting): EventObject {
  const { subject, type, reason } = series.input;
  const { apiVersion, kind, name, namespace, uid } = subject;
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: writing.name, namespace: eventNamespaceOf(subject) },
    involvedObject: { apiVersion, kind, name, uid, ...(namespace !== '' && { namespace }) },
    type,
    reason,
    message: series.message,
    count: series.count,
    firstTimestamp: secondsTime(writing.firstTime),
    lastTimestamp: secondsTime(writing.lastTime),
    source: { component: COMPONENT },
    reportingComponent: COMPONENT,
    reportingInstance: writing.reportingInstance,
  };
}

export function eventCountPatch(series: EventSeries, lastTime: Date): Patch {
  return { count: series.count, message: series.message, lastTimestamp: secondsTime(lastTime) };
}
