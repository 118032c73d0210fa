import type { Clock } from './clock.ts';
import type { Config } from './config/config.ts';
import { SharedInformer } from './kube/informer.ts';
import type { CachedObject } from './kube/informer-types.ts';
import type { KubeLanes } from './kube/kube-lanes.ts';
import type { KubeObject } from './kube/objects.ts';
import { COMPONENT, COMPONENT_LABEL, ENV_LABEL } from './labels.ts';
import { LEASES_PATH, projectLease } from './lease/lease.ts';
import type { Logger } from './logger.ts';
import type { Metrics } from './metrics.ts';
import { projectPod, type VPod } from './pod/vpod.ts';
import { projectNode } from './vnode/vnode-object.ts';

/** A replica's own membership lease changes each 2 s. */
const LEASE_WATCH_SILENCE_MS = 15_000;

interface Shared {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** One watch a kind for all bases (V9). */
export function createInformers({ env, isCluster }: Config, lanes: KubeLanes, shared: Shared) {
  const create = <T extends CachedObject>(
    kind: string,
    path: string,
    labelSelector: string,
    project: (raw: KubeObject) => T,
  ) => ({ kind, path, labelSelector, project, lane: lanes.watches, ...shared });
  const ofEnv = (component: string): string => `${COMPONENT_LABEL}${component},${ENV_LABEL}=${env}`;
  return {
    nodes: new SharedInformer(create('Node', '/api/v1/nodes', ofEnv(`=${COMPONENT.vnode}`), projectNode)),
    // V10: Pods carry no env; they are ours when they are bound to a Node of ours. One that waits is the scheduler's.
    pods: new SharedInformer({
      ...create('Pod', '/api/v1/pods', `${COMPONENT_LABEL}=${COMPONENT.module}`, projectPod),
      fieldSelector: 'spec.nodeName!=',
      indexers: { node: (pod: VPod) => pod.nodeName },
    }),
    leases: new SharedInformer({
      ...create('Lease', LEASES_PATH, ofEnv(` in (${COMPONENT.lease},${COMPONENT.member})`), (lease) =>
        projectLease(lease, env),
      ),
      silenceMs: isCluster ? LEASE_WATCH_SILENCE_MS : undefined,
    }),
  };
}
