import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../../errors.ts';
import { MODULE_DEPLOYMENTS } from '../../kinds/workload-kinds.ts';
import { type FieldManager, managersWithout } from '../../kube/field-managers.ts';
import type { ResourceClient } from '../../kube/resource.ts';
import { ApiError, isConflict } from '../../kube/transport/api-error.ts';
import type { Permit } from '../../kube/transport/rest-lane.ts';
import type { EventDefinition } from '../../reconcile/controller-definition.ts';
import {
  type CachedModuleDeployment,
  type ModuleDeploymentObject,
  projectModuleDeployment,
} from './module-deployment.ts';
import { isSameTemplate, type Revision, rollbackOf } from './revision.ts';
import type { RolloutEvent } from './rollout-events.ts';

/** Events of rollbacks, besides those in `ROLLOUT_EVENTS`. */
export const ROLLBACK_EVENTS: readonly EventDefinition[] = [
  {
    about: MODULE_DEPLOYMENTS.kind,
    type: 'Warning',
    reasons: ['TemplateReplaced'],
    meaning:
      'The template of an earlier revision replaces one that is no revision yet: `rollbackTo` was written together with it, or before the controller could store it.',
  },
];

export interface RollbackOptions {
  readonly client: Pick<ResourceClient<ModuleDeploymentObject>, 'get' | 'jsonPatch' | 'mergePatch' | 'fieldManager'>;
  /** Oldest first. */
  readonly history: readonly Revision[];
  readonly permit: Permit;
  readonly report: (event: RolloutEvent) => void;
}

/**
 * Restores an earlier template, and then removes `rollbackTo`. Where there is no such revision, or the API server
 * refuses its template, only the field is removed: while it is there, the controller does nothing else.
 *
 * It takes two writes. The first one makes this program the owner of the fields that it has changed, and the next
 * `kubectl apply --server-side` of the manifest would be a conflict. The second one gives them up. In between,
 * `rollbackTo` names the revision by its number: another process that goes on from there restores the same one.
 */
export async function rollBack(deployment: CachedModuleDeployment, options: RollbackOptions): Promise<void> {
  const { history, report } = options;
  const { resourceVersion, spec } = deployment;
  const { target, fault } = rollbackOf(history, spec.template, spec.rollbackTo?.revision);
  if (target === undefined) {
    await removeField(deployment, resourceVersion, options);
    report(['Warning', 'RollbackRevisionNotFound', `${fault}: nothing was changed`]);
    return;
  }
  const restored = await restore(deployment, target, options);
  if (restored === undefined) return;
  const version = restored.metadata.resourceVersion ?? resourceVersion;
  await removeField(deployment, version, options, managersWithout(restored, options.client.fieldManager));
  report(['Normal', 'RollbackDone', `template of revision ${target.number} is restored`]);
}

/** The object with the template of the revision. Undefined where nothing is left to do now. */
async function restore(
  deployment: CachedModuleDeployment,
  target: Revision,
  options: RollbackOptions,
): Promise<ModuleDeploymentObject | undefined> {
  const { client, history, permit, report } = options;
  const { resourceVersion, spec } = deployment;
  // It was restored before, by a process that did not get to the second write, or it never was another one.
  if (isSameTemplate(target.template, spec.template)) return await asDecided(deployment, client);
  const isKnown = history.some(({ template }) => isSameTemplate(template, spec.template));
  try {
    const restored = await client.jsonPatch(
      deployment,
      [
        { op: 'replace', path: '/metadata/resourceVersion', value: resourceVersion },
        { op: 'replace', path: '/spec/template', value: target.template },
        { op: 'replace', path: '/spec/rollbackTo', value: { revision: target.number } },
      ],
      { permit },
    );
    if (!isKnown)
      report(['Warning', 'TemplateReplaced', `by that of revision ${target.number}: it was no revision yet`]);
    return restored;
  } catch (error) {
    if (!isRefused(error)) throw error;
    const reportRefusal = (): void =>
      report(['Warning', 'RollbackRefused', `template of revision ${target.number}: ${messageOf(error)}`]);
    try {
      await removeField(deployment, resourceVersion, options);
    } catch (removalError) {
      // A conflict: the field was removed already, and a JSON patch that does not fit gets 422 too.
      if (!isConflict(removalError)) reportRefusal();
      throw removalError;
    }
    reportRefusal();
    return undefined;
  }
}

/** The cache has no field managers. Undefined where the object has changed since: the watch brings it. */
async function asDecided(
  deployment: CachedModuleDeployment,
  client: RollbackOptions['client'],
): Promise<ModuleDeploymentObject | undefined> {
  const stored = await client.get(deployment);
  const { uid, spec } = projectModuleDeployment(stored);
  const isSame = uid === deployment.uid && isDeepStrictEqual(spec, deployment.spec);
  return isSame ? stored : undefined;
}

/** Each patch is only for the version that it was decided from: done twice, it would go back again. */
async function removeField(
  deployment: CachedModuleDeployment,
  resourceVersion: string,
  { client, permit }: RollbackOptions,
  managedFields?: readonly FieldManager[],
): Promise<void> {
  const metadata = { resourceVersion, ...(managedFields && { managedFields }) };
  await client.mergePatch(deployment, { metadata, spec: { rollbackTo: null } }, { permit });
}

/** A policy, a webhook or the schema does not allow it (403, 422): the same patch is refused again. */
function isRefused(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 403 || error.status === 422);
}
