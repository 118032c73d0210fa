import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sleep } from '../../../src/clock.ts';
import type { LeaseObject, NodeObject } from '../../../src/kube/objects.ts';
import { CoreRig } from '../../support/core-rig.ts';
import type { RigBase } from '../../support/rig-base.ts';

const NODE = 'vnode.b1';
let rig: CoreRig;

beforeEach(async () => {
  rig = new CoreRig();
  await rig.start();
  await rig.foundBase('b1');
  rig.addPod();
  await rig.pass(5_000);
  rig.api.take();
  rig.tunnel.take();
});

afterEach(() => rig.stop());

function silence(isSilent = true): void {
  const base = rig.bases.get('b1');
  if (base) base.isSilent = isSilent;
}

describe('a base that is silent', () => {
  it('for 25 s: its Node and its Pods are not ready, with the reason, and nothing is deleted', async () => {
    silence();
    await rig.pass(36_000);
    expect(rig.condition(NODE, 'Ready')).toBe('False BaseUnreachable');
    expect(rig.condition(NODE, 'BaseReachable')).toBe('False BaseUnreachable');
    expect(rig.podState('p1')).toBe('Running False BaseUnreachable');
    expect(rig.container('p1')?.restartCount).toBe(0);
    expect(rig.api.take('delete')).toEqual([]);
    expect(rig.events).toEqual(expect.arrayContaining([`Warning NodeNotReady ${NODE}`, 'Warning NodeNotReady p1']));
  });

  it('and speaks again: the Node is ready at once, its Pods after a fresh list', async () => {
    silence();
    await rig.pass(36_000);
    silence(false);
    const base = rig.bases.get('b1');
    if (base) base.answersLists = false;
    rig.heartbeat('b1');
    await rig.pass(1_000);
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
    expect(rig.podState('p1')).toBe('Running False BaseUnreachable');
    if (base) base.answersLists = true;
    await rig.pass(6_000);
    expect(rig.podState('p1')).toBe('Running True');
    expect(rig.api.pod('p1')?.status?.reason).toBeUndefined();
    expect(rig.container('p1')?.restartCount).toBe(0);
    expect(rig.tunnel.take().filter((line) => /install/.test(line))).toEqual([]);
  });

  it('for 60 s is dead: Pods, then Node, then Lease are deleted', async () => {
    silence();
    await rig.pass(71_000);
    expect(rig.api.take('delete')).toEqual(['delete pod ns/p1', `delete node ${NODE}`, `delete lease ${NODE}`]);
    expect(rig.store.size).toBe(0);
    expect(rig.leases.isHeld(NODE)).toBe(false);
    await rig.pass(120_000);
    expect(rig.api.take()).toEqual([]);
  });

  it('and dead, and comes back: it is a base like any new one', async () => {
    silence();
    await rig.pass(71_000);
    silence(false);
    await rig.pass(15_000);
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
    expect(rig.leases.isHeld(NODE)).toBe(true);
  });

  it.each([
    ['delete pod', 500],
    ['delete node', 500],
    ['delete lease', 500],
    ['delete pod', 429],
    ['delete lease', 503],
  ])('and dead is taken away also when `%s` is answered with %i twice', async (request, status) => {
    rig.api.fail(request, status, 2);
    silence();
    await rig.pass(80_000);
    expect(rig.api.node(NODE)).toBeUndefined();
    expect(rig.api.lease(NODE)).toBeUndefined();
    expect(rig.api.pod('p1')).toBeUndefined();
    silence(false);
    await rig.pass(15_000);
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
  });

  it('and dead is taken away also when its Lease cannot be deleted at first, and each write of a Lease is slow', async () => {
    rig.api.fail('delete lease', 500);
    rig.api.delay = (request) => (request.startsWith('patch lease') ? sleep(rig.clock, 300) : undefined);
    silence();
    await rig.pass(80_000);
    expect(rig.api.lease(NODE)).toBeUndefined();
    expect(rig.store.size).toBe(0);
  });

  it.each(['delete pod', 'delete node', 'delete lease'])(
    'and dead is taken away also when the answer to `%s` is lost',
    async (request) => {
      rig.api.loseAnswer(request);
      silence();
      await rig.pass(80_000);
      expect(rig.store.size).toBe(0);
      const left = [...rig.api.objects.keys()].filter((key) => !key.startsWith('configmap '));
      expect(left).toEqual([]);
      // It outlives the Node: what comes back under this identity was met before.
      expect(rig.recordOf('b1')).toEqual([]);
    },
  );

  it.each([
    [404, ''],
    [409, 'Conflict'],
  ])('and dead, with all deleted by others (%i): no error, no second try', async (status, reason) => {
    for (const request of ['delete pod', 'delete node', 'delete lease']) rig.api.fail(request, status, 1, reason);
    silence();
    await rig.pass(71_000);
    expect(rig.api.take('delete')).toHaveLength(3);
    expect(rig.store.size).toBe(0);
  });

  it('and dead takes Pods along that were bound while its Node went', async () => {
    const deleted = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request.startsWith('delete node') ? deleted.promise : undefined);
    silence();
    await rig.pass(71_000);
    rig.addPod({ name: 'late' });
    deleted.resolve();
    await rig.pass(1_000);
    expect(rig.api.take('delete pod')).toEqual(['delete pod ns/p1', 'delete pod ns/late']);
  });

  describe('and dead, with a scheduler that does not know it yet', () => {
    beforeEach(async () => {
      silence();
      await rig.pass(71_000);
      rig.api.take();
    });

    it('gives the Pods back that it binds, after a look past the cache', async () => {
      rig.addPod({ name: 'late' });
      await rig.pass(1_000);
      expect(rig.api.take()).toEqual([`get node ${NODE} = 404`, 'delete pod ns/late']);
    });

    it('keeps them when the Node stands again and our cache does not show it', async () => {
      const node = rig.api.node('vnode.other') ?? (await otherNode());
      rig.nodeInformer.isPaused = true;
      rig.api.put('node', { ...node, metadata: { ...node.metadata, name: NODE, uid: 'another' } });
      rig.addPod({ name: 'late' });
      await rig.pass(200_000);
      expect(rig.api.take('delete pod')).toEqual([]);
      const retries = (await rig.metrics.queueRetries.get()).values;
      expect(retries.filter(({ labels }) => labels.name === 'late-pods')).toEqual([]);
    });

    it('deletes none while that look fails, and all when it succeeds', async () => {
      rig.api.fail(`get node ${NODE}`, 500, 3);
      rig.addPod({ name: 'late' });
      await rig.pass(100);
      expect(rig.api.take('delete pod')).toEqual([]);
      await rig.pass(5_000);
      expect(rig.api.take('delete pod')).toEqual(['delete pod ns/late']);
    });

    it('keeps the Pods of the base when it is back and an admin deletes its Node', async () => {
      silence(false);
      await rig.pass(15_000);
      for (const name of ['p2', 'p3']) rig.addPod({ name, modules: [] });
      await rig.pass(2_000);
      rig.api.take();
      rig.api.drop('node', NODE);
      // Each write of a status comes back as an event.
      for (const name of ['p2', 'p3']) touch(name);
      await rig.pass(5_000);
      expect(rig.api.take('delete pod')).toEqual([]);
      expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
    });

    it('leaves a Pod that comes two minutes later to Kubernetes', async () => {
      await rig.pass(121_000);
      rig.addPod({ name: 'late' });
      await rig.pass(1_000);
      expect(rig.api.take()).toEqual([]);
    });

    function touch(name: string): void {
      const pod = rig.api.pod(name);
      if (pod) rig.api.put('pod', { ...pod, metadata: { ...pod.metadata, labels: { touched: 'yes' } } });
    }

    async function otherNode(): Promise<NodeObject> {
      await rig.foundBase('other');
      const node = rig.api.node('vnode.other');
      if (node === undefined) throw new Error('not set up');
      return node;
    }
  });

  it('from our start on is dead after 60 s: what an earlier process left is taken away', async () => {
    const node = rig.api.node(NODE);
    const pod = rig.api.pod('p1');
    if (node === undefined || pod === undefined) throw new Error('not set up');
    const next = new CoreRig();
    next.api.put('node', node);
    next.api.put('pod', pod);
    await next.start();
    await next.pass(55_000);
    expect(next.api.take('delete')).toEqual([]);
    expect(next.leases.isHeld(NODE)).toBe(true);
    await next.pass(10_000);
    expect([...next.api.objects.keys()]).toEqual([]);
    await next.stop();
  });

  it('and whose Node was not ready before our start is not called ready without a sign of life', async () => {
    silence();
    await rig.pass(36_000);
    const node = rig.api.node(NODE);
    if (node === undefined) throw new Error('not set up');
    const next = new CoreRig();
    next.api.put('node', node);
    await next.start();
    await next.pass(20_000);
    expect(next.condition(NODE, 'Ready')).toBe('False BaseUnreachable');
    next.base('b1');
    next.heartbeat('b1');
    await next.pass(1_000);
    expect(next.condition(NODE, 'Ready')).toBe('True KubeletReady');
    await next.stop();
  });

  it('forgets nothing that was forced away meanwhile: it is uninstalled when the base is back', async () => {
    silence();
    await rig.pass(36_000);
    rig.api.drop('pod', 'p1');
    await rig.pass(5_000);
    silence(false);
    await rig.pass(15_000);
    expect(rig.tunnel.take('uninstall')).toEqual(['uninstall b1 biz1:1.0.0']);
  });
});

it('a base that goes down while its first Lease is made leaves nothing', async () => {
  const made = Promise.withResolvers<void>();
  rig.api.delay = (request) => (request.startsWith('post lease') ? made.promise : undefined);
  const base = await rig.foundBase('b2');
  base.isSilent = true;
  rig.vnodes.onGoingDown(rig.envelope('b2'), base.info);
  await rig.pass(1_000);
  made.resolve();
  await rig.pass(15_000);
  expect(rig.store.get('vnode.b2')).toBeUndefined();
  expect([rig.api.lease('vnode.b2'), rig.api.node('vnode.b2')]).toEqual([undefined, undefined]);
});

describe('a base whose name belongs to another ENV', () => {
  const THEIRS = 'vnode.b2';
  const component = 'virtual-kubelet.koupleless.io/component';
  const labels = { 'virtual-kubelet.koupleless.io/env': 'other' };

  it.each<[string, number, (base: RigBase) => void]>([
    ['is silent', 120_000, (base) => (base.isSilent = true)],
    ['says that it goes down', 1_000, (base) => rig.vnodes.onGoingDown(rig.envelope('b2'), base.info)],
  ])('is forgotten when it is dead because it %s, and what the other ENV has is left alone', async (_, waitMs, end) => {
    // The watches select by ENV.
    rig.leaseInformer.isPaused = true;
    rig.nodeInformer.isPaused = true;
    const spec = { holderIdentity: 'theirs', leaseTransitions: 1, renewTime: '2026-01-01T00:00:00.000000Z' };
    const name = THEIRS;
    const leaseLabels = { ...labels, [component]: 'vnode-lease' };
    rig.api.put('lease', {
      metadata: { name, namespace: 'kube-node-lease', labels: leaseLabels },
      spec,
    } as LeaseObject);
    rig.api.put('node', { metadata: { name, labels: { ...labels, [component]: 'vnode' } } });
    const before = [rig.api.lease(THEIRS), rig.api.node(THEIRS)];
    const base = await rig.foundBase('b2');
    expect(rig.store.get(THEIRS)).toBeDefined();
    end(base);
    base.isSilent = true;
    await rig.pass(waitMs);
    expect(rig.store.get(THEIRS)).toBeUndefined();
    rig.api.take();
    await rig.pass(600_000);
    expect(rig.api.take().filter((request) => request.includes(THEIRS))).toEqual([]);
    expect([rig.api.lease(THEIRS), rig.api.node(THEIRS)]).toEqual(before);
  });
});
