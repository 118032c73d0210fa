import type { EventSubject } from '../kube/event-correlator.ts';
import type { VPod } from './vpod.ts';

/** What an event of a Pod is about. */
export function podRef({ namespace, name, uid }: VPod): EventSubject {
  return { apiVersion: 'v1', kind: 'Pod', namespace, name, uid };
}
