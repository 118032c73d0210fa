import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import { eventually } from '../support/eventually.ts';
import { modulePod } from '../support/manifests.ts';
import { findNode, isReady, pods } from '../support/observe.ts';
import { startWorld } from '../support/start-world.ts';
import { nodePath, type World } from '../support/world.ts';
import { beginAttack } from './begin-attack.ts';

const PODS = 20;
const WRITERS = 5;
const TIMES = 5;

let world: World;
let fleet: Fleet;

beforeAll(async () => {
  world = await startWorld();
  await world.startController();
  fleet = await world.startFleet({ count: 1 });
  await eventually(async () => expect(isReady(await findNode(world.admin, 'base-1'))).toBe(true));
});

afterAll(() => world?.stop());

async function readyPods(): Promise<string[]> {
  return (await pods(world.admin, 'app=kept')).filter(isReady).map(({ metadata }) => metadata.uid ?? '');
}

/** Changes one Pod after the other until `signal` is aborted; one that is gone is passed over. */
async function touchAll(writer: number, signal: AbortSignal): Promise<void> {
  for (let round = 0; !signal.aborted; round++) {
    const path = `/api/v1/namespaces/default/pods/kept-${(writer + round * WRITERS) % PODS}`;
    await world.admin.mergePatch(path, { metadata: { annotations: { round: `${round}` } } }).catch(() => {});
  }
}

/** As the agent does it when its process is told to end. */
async function sayGoodbye(): Promise<void> {
  const base = fleet.base('base-1');
  const baseMetadata = { identity: 'base-1', name: 'base', version: '1.0.0', clusterName: 'default' };
  const body = { baseMetadata, localIP: base.localIP, port: base.port, state: 'DEACTIVATED' };
  const response = await fetch(`${await world.controllerUrl()}/heartbeat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  expect(response.status).toBe(200);
}

it('an admin who deletes the Node of a base that is back loses none of its Pods', async () => {
  const { admin } = world;
  const base = fleet.base('base-1');
  base.silence();
  await sayGoodbye();
  await eventually(async () => expect(await findNode(admin, 'base-1')).toBeUndefined());
  // Within the two minutes in which late Pods of the Node are looked for.
  base.speak();
  base.announce();
  await eventually(async () => expect(isReady(await findNode(admin, 'base-1'))).toBe(true));
  const manifests = Array.from({ length: PODS }, (_, index) =>
    modulePod(`kept-${index}`, [{ name: `kept-${index}` }], { nodeName: 'vnode.base-1', labels: { app: 'kept' } }),
  );
  await world.controlPlane.apply(manifests);
  await eventually(async () => expect(await readyPods()).toHaveLength(PODS));
  const before = (await readyPods()).sort();
  const mark = fleet.history.mark();

  // Events of the Pods come all the time, so also while there is no Node.
  const endChanges = beginAttack((signal) =>
    Promise.all(Array.from({ length: WRITERS }, (_, writer) => touchAll(writer, signal))),
  );
  for (let time = 0; time < TIMES; time++) {
    const uid = (await findNode(admin, 'base-1'))?.metadata.uid;
    await admin.delete(nodePath('base-1'));
    await eventually(async () => {
      const node = await findNode(admin, 'base-1');
      expect(node?.metadata.uid).not.toBe(uid);
      expect(isReady(node)).toBe(true);
    });
  }
  await endChanges();
  await eventually(async () => expect((await readyPods()).sort()).toEqual(before));
  expect(fleet.history.records({ command: 'installBiz', since: mark })).toEqual([]);
  expect(fleet.history.records({ command: 'uninstallBiz', since: mark })).toEqual([]);
});
