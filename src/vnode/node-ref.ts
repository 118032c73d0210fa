import type { EventSubject } from '../kube/event-correlator.ts';
import type { VNode } from './vnode.ts';

/** The Node as an event's subject; like a kubelet, with its name for a UID, where `kubectl describe node` looks. */
export function nodeRef({ nodeName }: Pick<VNode, 'nodeName'>): EventSubject {
  return { apiVersion: 'v1', kind: 'Node', namespace: '', name: nodeName, uid: nodeName };
}
