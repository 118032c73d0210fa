import type { ModulePod } from '../../kinds/module-pod.ts';
import { type CachedNode, isReadyNode } from '../../kinds/vnode-object.ts';
import { MODULE_DEPLOYMENTS } from '../../kinds/workload-kinds.ts';
import { isSameForPeers, matchesLabels } from '../../kube/placement.ts';
import { objectKey } from '../../kube/watch/informer-types.ts';
import { controllerKeyOf } from '../../reconcile/reconciler.ts';
import type { CachedModuleDeployment } from './module-deployment.ts';
import type { Revision } from './revision.ts';
import { conditionOf } from './rollout-status.ts';

/** Which changes have a ModuleDeployment looked at again. */

/** Its own, or all that it could be adopted by. */
export function keysOfPod(pod: ModulePod, deployments: readonly CachedModuleDeployment[]): string[] {
  if (pod.controller !== undefined) return keysOfOwned(pod);
  return deployments.filter(({ spec }) => matchesLabels(spec.selector, pod.labels)).map(objectKey);
}

export function keysOfOwned({ namespace, controller }: Pick<Revision, 'namespace' | 'controller'>): string[] {
  const key = controller && controllerKeyOf({ namespace, owners: [controller] }, MODULE_DEPLOYMENTS);
  return key === undefined ? [] : [key];
}

/** Its status is written by this controller alone. */
export function isSameDeployment(a: CachedModuleDeployment, b: CachedModuleDeployment): boolean {
  return a.generation === b.generation && a.isDeleting === b.isDeleting && a.confirmBatch === b.confirmBatch;
}

/** Nodes decide how many peers there are, and where the next Pod of a rollout may go. */
export function dependsOnNodes({ spec, status }: CachedModuleDeployment): boolean {
  return spec.peer === true || conditionOf(status, 'Progressing')?.reason !== 'RolloutComplete';
}

export function isSameNode(a: CachedNode, b: CachedNode): boolean {
  return isReadyNode(a) === isReadyNode(b) && isSameForPeers(a, b);
}
