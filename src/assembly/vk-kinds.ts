import type { Config } from '../config/config.ts';
import { POD_PAGE_SIZE } from '../kube/requests.ts';
import { COMPONENT, COMPONENT_LABEL, ENV_LABEL } from '../labels.ts';
import { type CachedLease, LEASES_PATH, projectLease } from '../lease/lease.ts';
import { projectPod, type VPod } from '../pod/vpod.ts';
import type { WatchedKind } from '../reconcile/informers.ts';

/** A replica's own membership Lease changes every second. */
const LEASE_WATCH_SILENCE_MS = 15_000;

/** Pods carry no ENV: the Node that a Pod is bound to says whose it is. An unbound Pod is the scheduler's. */
export const VPODS: WatchedKind<VPod> = {
  kind: 'Pod',
  path: '/api/v1/pods',
  labelSelector: () => `${COMPONENT_LABEL}=${COMPONENT.module}`,
  fieldSelector: 'spec.nodeName!=',
  indexers: { node: ({ nodeName }) => nodeName },
  pageSize: POD_PAGE_SIZE,
  project: projectPod,
};

export const VNODE_LEASES: WatchedKind<CachedLease> = {
  kind: 'Lease',
  path: LEASES_PATH,
  labelSelector: ({ env }) => `${COMPONENT_LABEL} in (${COMPONENT.lease},${COMPONENT.member}),${ENV_LABEL}=${env}`,
  silenceMs: ({ isCluster }: Config) => (isCluster ? LEASE_WATCH_SILENCE_MS : undefined),
  project: (lease, { env }) => projectLease(lease, env),
};
