import { messageOf } from '../../errors.ts';
import type { ResourceClient } from '../../kube/resource.ts';
import { ApiError, isConflict } from '../../kube/transport/api-error.ts';
import type { Permit } from '../../kube/transport/rest-lane.ts';
import type { CachedModuleDeployment, ModuleDeploymentObject } from './module-deployment.ts';
import { type Revision, rollbackOf } from './revision.ts';
import type { RolloutEvent } from './rollout-events.ts';

export interface RollbackOptions {
  readonly client: Pick<ResourceClient<ModuleDeploymentObject>, 'jsonPatch' | 'mergePatch'>;
  /** Oldest first. */
  readonly history: readonly Revision[];
  readonly permit: Permit;
  readonly report: (event: RolloutEvent) => void;
}

/**
 * Restores an earlier template, and removes `rollbackTo`. Where there is no such revision, or the API server refuses
 * its template, only the field is removed: while it is there, the controller does nothing else.
 */
export async function rollBack(
  deployment: CachedModuleDeployment,
  { client, history, permit, report }: RollbackOptions,
): Promise<void> {
  const { resourceVersion, spec } = deployment;
  const { target, fault } = rollbackOf(history, spec.template, spec.rollbackTo?.revision);
  // Each patch is only for the version that it was decided from: done twice, it would go back again.
  const remove = () =>
    client.mergePatch(deployment, { metadata: { resourceVersion }, spec: { rollbackTo: null } }, { permit });
  if (target === undefined) {
    await remove();
    report(['Warning', 'RollbackRevisionNotFound', `${fault}: nothing was changed`]);
    return;
  }
  try {
    await client.jsonPatch(
      deployment,
      [
        { op: 'replace', path: '/metadata/resourceVersion', value: resourceVersion },
        { op: 'replace', path: '/spec/template', value: target.template },
        { op: 'remove', path: '/spec/rollbackTo' },
      ],
      { permit },
    );
  } catch (error) {
    if (!isRefused(error)) throw error;
    const reportRefusal = (): void =>
      report(['Warning', 'RollbackRefused', `template of revision ${target.number}: ${messageOf(error)}`]);
    try {
      await remove();
    } catch (removalError) {
      // A conflict: the field was removed already, and a JSON patch that does not fit gets 422 too.
      if (!isConflict(removalError)) reportRefusal();
      throw removalError;
    }
    reportRefusal();
    return;
  }
  report(['Normal', 'RollbackDone', `template of revision ${target.number} is restored`]);
}

/** A policy, a webhook or the schema does not allow it (403, 422): the same patch is refused again. */
function isRefused(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 403 || error.status === 422);
}
