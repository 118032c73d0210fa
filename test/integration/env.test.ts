import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { PodObject } from '../../src/kube/objects.ts';
import { eventually } from '../support/eventually.ts';
import { moduleWorkload } from '../support/manifests.ts';
import { conditionOf, isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { startWorld } from '../support/start-world.ts';
import type { World } from '../support/world.ts';

let world: World;
let dev: Fleet;
let test: Fleet;

beforeAll(async () => {
  world = await startWorld();
  await world.startController({ ENV: 'dev', CLIENT_ID: 'controller-dev' });
  await world.startController({ ENV: 'test', CLIENT_ID: 'controller-test' });
  dev = await world.startFleet({ env: 'dev', count: 2 });
  test = await world.startFleet({ env: 'test', count: 1, identityPrefix: 'test-' });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(3));
});

afterAll(() => world?.stop());

/** That the scheduler has looked, and why it bound the Pod nowhere. */
async function unschedulable(selector: string): Promise<PodObject> {
  return eventually(async () => {
    const pending = (await pods(world.admin, selector)).filter(({ spec }) => spec.nodeName === undefined);
    expect(pending).toHaveLength(1);
    expect(conditionOf(pending[0], 'PodScheduled')).toMatchObject({ status: 'False', reason: 'Unschedulable' });
    return pending[0] as PodObject;
  });
}

describe('A-004-5 env: two controllers, one for each ENV, on one control plane', () => {
  it('give each base a Node of its own ENV', async () => {
    const named = async (env: string) =>
      (await nodes(world.admin, `virtual-kubelet.koupleless.io/env=${env}`)).map(({ metadata }) => metadata.name);
    expect(await named('test')).toEqual(['vnode.test-1']);
    expect((await named('dev')).sort()).toEqual(['vnode.base-1', 'vnode.base-2']);
  });

  it('never see a module of ENV dev on a base of ENV test, though it has nowhere else to go', async () => {
    // No nodeSelector: only the taints keep the third copy away.
    const biz1 = moduleWorkload('biz1', [{ name: 'biz1' }], { replicas: 3, spec: { nodeSelector: {} } });
    const daemon = moduleWorkload('daemon', [{ name: 'daemon' }], { kind: 'DaemonSet', spec: { nodeSelector: {} } });
    await world.controlPlane.apply([biz1, daemon]);
    for (const selector of ['app=biz1', 'app=daemon']) {
      await eventually(async () => {
        const ready = (await pods(world.admin, selector)).filter(isReady);
        expect(ready.map(({ spec }) => spec.nodeName).sort()).toEqual(['vnode.base-1', 'vnode.base-2']);
      });
    }
    const left = await unschedulable('app=biz1');
    expect(conditionOf(left, 'PodScheduled')?.message).toContain('1 node(s) had untolerated taint(s)');
    expect(await pods(world.admin, 'app=daemon')).toHaveLength(2);
  });

  it('put a module of ENV test on the base of ENV test, and nowhere else', async () => {
    const biz2 = moduleWorkload('biz2', [{ name: 'biz2' }], { env: 'test', replicas: 2, spec: { nodeSelector: {} } });
    await world.controlPlane.apply(biz2);
    await eventually(async () => {
      const ready = (await pods(world.admin, 'app=biz2')).filter(isReady);
      expect(ready.map(({ spec }) => spec.nodeName)).toEqual(['vnode.test-1']);
    });
    await unschedulable('app=biz2');
    expect(test.history.installsExecuted().map(({ base, bizName }) => `${base} ${bizName}`)).toEqual(['test-1 biz2']);
    expect(dev.history.records({ bizName: 'biz2' })).toEqual([]);
  });

  it('leave an ordinary Pod alone: it lands on no VNode', async () => {
    await world.controlPlane.apply({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'nginx', namespace: 'default', labels: { app: 'nginx' } },
      spec: { containers: [{ name: 'nginx', image: 'nginx:1.29' }] },
    });
    const nginx = await unschedulable('app=nginx');
    expect(conditionOf(nginx, 'PodScheduled')?.message).toContain('3 node(s) had untolerated taint(s)');
  });
});
