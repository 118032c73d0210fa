import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startWorld } from '../support/start-world.ts';
import type { World } from '../support/world.ts';

const SERVICE_ACCOUNT = 'koupleless-system/module-controller';

describe('deploy/flow-schemas.yaml', () => {
  let world: World;

  beforeAll(async () => {
    world = await startWorld();
    await world.controlPlane.apply(await readFile(new URL('../../deploy/flow-schemas.yaml', import.meta.url), 'utf8'));
  });
  afterAll(() => world.stop());

  /** How many requests the API server has let through under a schema and a level. */
  async function dispatched(schema: string, level: string): Promise<number> {
    const text: string = await world.admin.get('/metrics');
    const name = 'apiserver_flowcontrol_dispatched_requests_total';
    const line = text.split('\n').find((each) => {
      return each.startsWith(name) && each.includes(`"${schema}"`) && each.includes(`"${level}"`);
    });
    return Number(line?.split(' ').at(-1) ?? 0);
  }

  it.each([
    ['a Lease of a Node', '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/x', 'nodes', 'node-high'],
    ['all Leases', '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases?limit=1', 'nodes', 'node-high'],
    ['a Node', '/api/v1/nodes/x', 'nodes', 'node-high'],
    ['a Pod', '/api/v1/namespaces/default/pods/x', undefined, 'module-controller'],
  ])('sorts a request about %s', async (_what, path, part, level) => {
    const schema = part === undefined ? 'module-controller' : `module-controller-${part}`;
    const client = await world.controlPlane.client({ serviceAccount: SERVICE_ACCOUNT });
    const before = await dispatched(schema, level);
    // The API server takes a moment to go by a new schema.
    await eventually(async () => {
      await client.get(path).catch(() => {});
      expect(await dispatched(schema, level)).toBeGreaterThan(before);
    }, 30_000);
  });
});
