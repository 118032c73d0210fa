import type { EventSubject } from '../../kube/events/event-correlator.ts';
import { apiVersionOf } from '../../kube/resource.ts';
import { type CachedModuleDeployment, MODULE_DEPLOYMENTS } from './module-deployment.ts';

/** What events of a rollout are about. */
export function subjectOf({ namespace, name, uid }: CachedModuleDeployment): EventSubject {
  return { apiVersion: apiVersionOf(MODULE_DEPLOYMENTS), kind: MODULE_DEPLOYMENTS.kind, namespace, name, uid };
}
