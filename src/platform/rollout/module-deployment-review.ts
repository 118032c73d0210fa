import { versionOf } from '../../kinds/pod-defaults.ts';
import { matchesLabels } from '../../kube/placement.ts';
import { VERSION_ENV } from '../../labels.ts';
import type { OwnerKey } from '../../reconcile/informers.ts';
import type { AdmissionRequest, Verdict } from '../../reconcile/webhooks.ts';
import type { CachedModuleDeployment, ModuleDeploymentObject } from './module-deployment.ts';
import { type Revision, rollbackOf } from './revision.ts';

export interface ReviewContext {
  /** The history of a ModuleDeployment; oldest first. */
  readonly historyOf: (deployment: OwnerKey) => readonly Revision[];
  /** Those of a namespace. */
  readonly deploymentsOf: (namespace: string) => readonly CachedModuleDeployment[];
}

/** What the schema of the CRD cannot say: it needs other objects, or a name of a jar taken apart. */
export function reviewModuleDeployment(
  { object, oldObject, namespace }: AdmissionRequest<ModuleDeploymentObject>,
  { historyOf, deploymentsOf }: ReviewContext,
): Verdict<ModuleDeploymentObject> {
  const faults = [
    ...versionFaults(object),
    ...rollbackFaults(object, oldObject, (uid) => historyOf({ namespace, uid })),
  ];
  if (faults.length > 0) return { isAllowed: false, message: faults.join('; ') };
  return { isAllowed: true, warnings: overlaps(object, deploymentsOf(namespace)) };
}

function versionFaults({ spec }: ModuleDeploymentObject): string[] {
  const { metadata, spec: podSpec } = spec.template;
  const isOnly = podSpec.containers.length === 1;
  return podSpec.containers
    .filter((container) => !versionOf(container, metadata.labels, isOnly))
    .map(
      ({ name }) =>
        `spec.template.spec.containers[${name}].env: ${VERSION_ENV} is missing: write the version of the module there, or name the jar ${name}-<version>-ark-biz.jar`,
    );
}

/** Asked once: the field stays until the controller has carried it out. */
function rollbackFaults(
  { metadata, spec }: ModuleDeploymentObject,
  oldObject: ModuleDeploymentObject | undefined,
  historyOf: (uid: string) => readonly Revision[],
): string[] {
  const { rollbackTo, template } = spec;
  if (rollbackTo === undefined) return [];
  const history = oldObject === undefined ? [] : historyOf(metadata.uid ?? '');
  const { fault } = rollbackOf(history, template, rollbackTo.revision);
  if (fault === undefined) return [];
  const numbers = history.map(({ number }) => number).join(', ');
  return [`spec.rollbackTo.revision: ${fault}${numbers === '' ? '' : `, there are ${numbers}`}`];
}

/** Neither takes Pods of the other, but Services and people that select by these labels find both. */
function overlaps({ metadata, spec }: ModuleDeploymentObject, others: readonly CachedModuleDeployment[]): string[] {
  const labels = spec.template.metadata.labels;
  return others
    .filter(({ name, isDeleting }) => name !== metadata.name && !isDeleting)
    .filter(
      (other) =>
        matchesLabels(other.spec.selector, labels) || matchesLabels(spec.selector, other.spec.template.metadata.labels),
    )
    .map(
      ({ name }) => `spec.selector: the Pods of ModuleDeployment ${name} fit it too, or its selector fits these Pods`,
    );
}
