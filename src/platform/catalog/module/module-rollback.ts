import { messageOf } from '../../../errors.ts';
import { managersWithout } from '../../../kube/field-managers.ts';
import type { ResourceClient } from '../../../kube/resource.ts';
import { ApiError, isConflict, isRetriable } from '../../../kube/transport/api-error.ts';
import type { Permit } from '../../../kube/transport/rest-lane.ts';
import type { EventDefinition } from '../../../reconcile/controller-definition.ts';
import type { CachedReleases } from '../release/module-release.ts';
import type { CachedModule } from './cached-module.ts';
import type { KnownConfig } from './configs-in-force.ts';
import type { ModuleObject } from './module.ts';
import { configsPatchOf, releasePatchOf, rollbackTarget } from './module-history.ts';
import { wantedRelease } from './release-in-force.ts';

export const MODULE_ROLLBACK_EVENTS: readonly EventDefinition[] = [
  {
    about: 'Module',
    type: 'Normal',
    reasons: ['RolledBack'],
    meaning: 'The release of an earlier revision, with its configuration, is in the specification again.',
  },
  {
    about: 'Module',
    type: 'Warning',
    reasons: ['RollbackFailed'],
    meaning:
      '`rollbackTo` names no revision of the history, its configuration is gone, or the API server refuses its release. The field is removed.',
  },
];

export interface ModuleRollbackOptions {
  readonly client: Pick<ResourceClient<ModuleObject>, 'get' | 'mergePatch' | 'fieldManager'>;
  readonly published: CachedReleases | undefined;
  readonly findConfig: (name: string) => KnownConfig | undefined;
  readonly permit: Permit;
  readonly report: (type: 'Normal' | 'Warning', reason: 'RolledBack' | 'RollbackFailed', message: string) => void;
}

/**
 * Restores the release of a revision, and then removes `rollbackTo`. Two writes: the second one gives up the fields that
 * the first one has changed, so that a server-side apply of the user's manifest is no conflict. In between, `rollbackTo`
 * names the revision by its number: another process that goes on from there restores the same one. Both writes are for
 * the version that they were decided from.
 */
export async function rollBack(module: CachedModule, options: ModuleRollbackOptions): Promise<void> {
  const { client, published, findConfig, permit, report } = options;
  const { resourceVersion, spec, status } = module;
  const found = rollbackTarget(status?.history ?? [], spec.rollbackTo?.revision ?? 0, wantedRelease(module, published));
  const removal = (version: string | undefined, managedFields?: object) =>
    client.mergePatch(
      module,
      { metadata: { resourceVersion: version, ...(managedFields && { managedFields }) }, spec: { rollbackTo: null } },
      { permit },
    );
  if ('fault' in found) {
    await removal(resourceVersion);
    report('Warning', 'RollbackFailed', `${found.fault}: nothing was changed`);
    return;
  }
  const { target } = found;
  const gone = target.configs?.find(({ name, version }) => !findConfig(name)?.versions.has(version));
  if (gone !== undefined) {
    await removal(resourceVersion);
    const message = `revision ${target.revision} has version ${gone.version} of ModuleConfig ${gone.name}, which is gone`;
    report('Warning', 'RollbackFailed', `${message}: nothing was changed`);
    return;
  }
  const release = releasePatchOf(target, published, spec.module);
  const configs = configsPatchOf(target, spec.configs);
  let restored: ModuleObject;
  try {
    const rollbackTo = { revision: target.revision };
    restored = await client.mergePatch(
      module,
      { metadata: { resourceVersion }, spec: { release, rollbackTo, ...(configs !== undefined && { configs }) } },
      { permit },
    );
  } catch (error) {
    if (!(error instanceof ApiError) || isRetriable(error) || isConflict(error)) throw error;
    await removal(resourceVersion);
    report('Warning', 'RollbackFailed', `release ${target.id}: ${messageOf(error)}`);
    return;
  }
  try {
    await removal(restored.metadata.resourceVersion, managersWithout(restored, client.fieldManager));
  } catch (error) {
    if (!isConflict(error)) throw error;
    // Somebody has changed the Module after the first write. A release that was published then stays.
    const latest = await client.get(module);
    const isOwn = latest.metadata.uid === module.uid && latest.spec.rollbackTo?.revision === target.revision;
    if (isOwn) await removal(latest.metadata.resourceVersion, managersWithout(latest, client.fieldManager));
  }
  report('Normal', 'RolledBack', `release ${target.id} of revision ${target.revision} is in the specification again`);
}
