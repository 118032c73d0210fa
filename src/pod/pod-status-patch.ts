import { isDeepStrictEqual } from 'node:util';
import type { Patch } from '../kube/client.ts';
import type { VPod, VPodStatus } from './vpod.ts';

/**
 * The strategic merge patch from the Pod's status to `next`, with its UID: another incarnation refuses it.
 * Conditions are merged by type, so that only changed ones of the controller are sent and those of others are not
 * touched.
 */
export function podStatusPatchOf(pod: VPod, next: VPodStatus): Patch & { readonly status: Record<string, unknown> } {
  const prev = pod.status;
  const status: Record<string, unknown> = {};
  const scalars = ['phase', 'reason', 'message', 'observedGeneration', 'startTime', 'podIP', 'hostIP'] as const;
  for (const field of scalars) if (prev[field] !== next[field]) status[field] = next[field] ?? null;
  // The lists merge by IP: without the directive an old address would stay.
  if ('podIP' in status) status.podIPs = addressesOf(next.podIP);
  if ('hostIP' in status) status.hostIPs = addressesOf(next.hostIP);
  const conditions = next.conditions.filter(
    (condition) => !prev.conditions.some((entry) => isDeepStrictEqual(entry, condition)),
  );
  if (conditions.length > 0) {
    status.conditions = conditions.map((condition) => ({ reason: null, message: null, ...condition }));
  }
  if (!isDeepStrictEqual(prev.containerStatuses, next.containerStatuses)) {
    status.containerStatuses = next.containerStatuses;
  }
  return { metadata: { uid: pod.uid }, status };
}

function addressesOf(ip: string | undefined): Record<string, string>[] | null {
  return ip === undefined ? null : [{ ip }, { $patch: 'replace' }];
}
