import { labelFaultsOf } from '../../kinds/label-syntax.ts';
import { withoutNulls } from '../../kinds/pod-form.ts';
import { matchesLabels } from '../../kube/placement.ts';
import type { OwnerKey } from '../../reconcile/informers.ts';
import type { AdmissionRequest, Verdict } from '../../reconcile/webhooks.ts';
import { type CachedModuleDeployment, type ModuleDeploymentObject, replicasOf } from './module-deployment.ts';
import { isSameTemplate, type Revision, rollbackOf } from './revision.ts';
import { templateFaultsOf } from './template-faults.ts';

export interface ReviewContext {
  /** The history of a ModuleDeployment; oldest first. */
  readonly historyOf: (deployment: OwnerKey) => readonly Revision[];
  /** Those of a namespace. */
  readonly deploymentsOf: (namespace: string) => readonly CachedModuleDeployment[];
}

/**
 * What the schema of the CRD cannot say: it needs other objects, or compares parts of the template. A template that is
 * not changed is not checked again: an object that was stored before the check can still be scaled and paused.
 */
export function reviewModuleDeployment(
  { object, oldObject, namespace }: AdmissionRequest<ModuleDeploymentObject>,
  { historyOf, deploymentsOf }: ReviewContext,
): Verdict<ModuleDeploymentObject> {
  const after = withoutNulls(object);
  const before = oldObject && withoutNulls(oldObject);
  const isNewTemplate = !isSameTemplate(before?.spec.template, after.spec.template);
  const faults = [
    ...(isNewTemplate ? templateFaultsOf(after.spec.template) : []),
    ...(before === undefined ? labelFaultsOf(after.spec.selector.matchLabels, 'spec.selector.matchLabels') : []),
    ...rollbackFaults(after, before, (uid) => historyOf({ namespace, uid })),
  ];
  if (faults.length > 0) return { isAllowed: false, message: faults.join('; ') };
  const warnings = [...overlaps(after, deploymentsOf(namespace)), ...peerWarnings(after, before)];
  return { isAllowed: true, warnings };
}

/** Asked once: the field stays until the controller has carried it out. */
function rollbackFaults(
  { metadata, spec }: ModuleDeploymentObject,
  before: ModuleDeploymentObject | undefined,
  historyOf: (uid: string) => readonly Revision[],
): string[] {
  const { rollbackTo, template } = spec;
  if (rollbackTo === undefined) return [];
  const history = before === undefined ? [] : historyOf(metadata.uid ?? '');
  const { target, fault } = rollbackOf(history, template, rollbackTo.revision);
  // Once it is asked for, the controller finds out, from a history that may be newer than the one here.
  if (fault !== undefined && before?.spec.rollbackTo !== undefined) return [];
  if (fault !== undefined) {
    const numbers = history.map(({ number }) => number).join(', ');
    return [`spec.rollbackTo.revision: ${fault}${numbers === '' ? '' : `, there are ${numbers}`}`];
  }
  // The controller itself writes both: the template of the revision that the field names.
  const isAsked = rollbackTo.revision === target.number && isSameTemplate(target.template, template);
  if (isAsked || isSameTemplate(before?.spec.template, template)) return [];
  return [
    `spec.rollbackTo: would replace the new spec.template by that of revision ${target.number}: write one of the two`,
  ];
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

/**
 * A refusal would stop the second `kubectl apply` of a manifest with both fields, and the restore of a backup, in which
 * the controller has set `replicas`. 1 is the default, which nobody has to have written.
 */
function peerWarnings({ spec }: ModuleDeploymentObject, before: ModuleDeploymentObject | undefined): string[] {
  if (spec.peer !== true) return [];
  const isWritten = before === undefined ? replicasOf(spec) !== 1 : replicasOf(spec) !== replicasOf(before.spec);
  return isWritten
    ? ['spec.replicas: has no effect while spec.peer is true: the controller sets it to the number of bases']
    : [];
}
