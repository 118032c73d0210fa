import { describe, expect, it } from 'vitest';
import type { JsonPatchOperation } from '../../../../src/kube/resource.ts';
import {
  type ModuleDeploymentObject,
  projectModuleDeployment,
} from '../../../../src/platform/rollout/module-deployment.ts';
import { projectRevision, type Revision } from '../../../../src/platform/rollout/revision.ts';
import { rollBack } from '../../../../src/platform/rollout/rollback.ts';
import { FakeObjects } from '../../../support/fake-objects.ts';
import { moduleDeployment } from '../../../support/rollouts.ts';

const OF_USER = { manager: 'kubectl', operation: 'Apply' };
const OF_STATUS = { manager: 'platform-rollout', operation: 'Update', subresource: 'status' };
const OWN = { manager: 'platform-rollout', operation: 'Update' };

class Killed extends Error {}

function templateOf(version: string) {
  return moduleDeployment({ version }).spec.template;
}

function revisionOf(version: string, number: number): Revision {
  const metadata = { name: `shop-${number}`, labels: { 'controller-revision-hash': `hash-${number}` } };
  return projectRevision({ metadata, data: { spec: { template: templateOf(version) } }, revision: number } as never);
}

/** A ModuleDeployment that is to go back, and an API server that notes who owns its fields. */
class Rollback {
  readonly events: string[] = [];
  readonly patches: object[] = [];
  /** The process ends before this write, counted from 1. */
  killedAt = Number.POSITIVE_INFINITY;
  history = [revisionOf('1.0.0', 1), revisionOf('2.0.0', 2)];
  readonly #objects = new FakeObjects<ModuleDeploymentObject, ReturnType<typeof projectModuleDeployment>>({
    project: projectModuleDeployment,
    onWrite: (isDone) => {
      if (!isDone && this.patches.length === this.killedAt) throw new Killed();
    },
  });

  constructor(version: string, rollbackTo: object, managedFields: readonly object[] = [OF_USER, OF_STATUS]) {
    const { metadata, spec } = moduleDeployment({ version });
    this.#objects.put({ metadata: { ...metadata, managedFields }, spec: { ...spec, rollbackTo } } as never);
  }

  get object(): ModuleDeploymentObject {
    const [object] = this.#objects.all;
    if (object === undefined) throw new Error('it is gone');
    return object;
  }

  get version(): string | undefined {
    return this.object.spec.template.metadata.labels.version;
  }

  edit(spec: object): void {
    this.#objects.put({ ...this.object, spec: { ...this.object.spec, ...spec } });
  }

  async run(deployment = projectModuleDeployment(this.object)): Promise<void> {
    const client = this.#objects.client(() => {});
    const noted = (patch: object): void => void this.patches.push(patch);
    await rollBack(deployment, {
      client: {
        fieldManager: 'platform-rollout',
        get: client.get,
        mergePatch: async (ref, patch) => {
          noted(patch);
          return client.mergePatch(ref, patch);
        },
        jsonPatch: async (ref, patch) => {
          noted(patch);
          const { managedFields = [] } = this.object.metadata;
          const owned: JsonPatchOperation = {
            op: 'add',
            path: '/metadata/managedFields',
            value: [...managedFields, OWN],
          };
          return client.jsonPatch(ref, [...patch, owned]);
        },
      },
      history: this.history,
      permit: () => true,
      report: ([type, reason]) => void this.events.push(`${type} ${reason}`),
    });
  }
}

describe('a rollback', () => {
  it('gives the fields of the template up again, and keeps the owners of all others', async () => {
    const rollback = new Rollback('2.0.0', {});
    await rollback.run();
    expect(rollback.version).toBe('1.0.0');
    expect(rollback.object.spec.rollbackTo).toBeUndefined();
    expect(rollback.object.metadata.managedFields).toEqual([OF_USER, OF_STATUS]);
    expect(rollback.events).toEqual(['Normal RollbackDone']);
  });

  it('leaves the owners alone where nobody else owns a field: an empty list would keep them', async () => {
    const rollback = new Rollback('2.0.0', {}, []);
    await rollback.run();
    expect(rollback.object.metadata.managedFields).toEqual([OWN]);
    expect(rollback.version).toBe('1.0.0');
  });

  it('is ended by another process after the first one was killed between its writes', async () => {
    const rollback = new Rollback('2.0.0', {});
    rollback.killedAt = 2;
    await expect(rollback.run()).rejects.toThrow(Killed);
    expect([rollback.version, rollback.object.spec.rollbackTo]).toEqual(['1.0.0', { revision: 1 }]);
    rollback.killedAt = Number.POSITIVE_INFINITY;
    await rollback.run();
    expect([rollback.version, rollback.object.spec.rollbackTo]).toEqual(['1.0.0', undefined]);
    expect(rollback.object.metadata.managedFields).toEqual([OF_USER, OF_STATUS]);
    expect(rollback.events).toEqual(['Normal RollbackDone']);
  });

  it('to the template that is there writes only that it is done', async () => {
    const rollback = new Rollback('2.0.0', { revision: 2 });
    await rollback.run();
    expect(rollback.patches).toHaveLength(1);
    expect([rollback.version, rollback.object.spec.rollbackTo]).toEqual(['2.0.0', undefined]);
  });

  it('to the template that is there waits for the watch when the object has changed', async () => {
    const rollback = new Rollback('2.0.0', { revision: 2 });
    const seen = projectModuleDeployment(rollback.object);
    rollback.edit({ rollbackTo: { revision: 1 } });
    await rollback.run(seen);
    expect(rollback.patches).toEqual([]);
    expect(rollback.object.spec.rollbackTo).toEqual({ revision: 1 });
  });

  it('is reported where it replaces a template that was never rolled out', async () => {
    const rollback = new Rollback('3.0.0', { revision: 1 });
    await rollback.run();
    expect(rollback.version).toBe('1.0.0');
    expect(rollback.events).toEqual(['Warning TemplateReplaced', 'Normal RollbackDone']);
  });
});
