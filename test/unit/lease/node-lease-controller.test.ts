import { afterEach, describe, expect, it } from 'vitest';
import { sleep } from '../../../src/clock.ts';
import { CoreRig, type CoreRigOptions } from '../../support/core-rig.ts';

const NODE = 'vnode.b1';
let rig: CoreRig;

async function started(options: CoreRigOptions = {}, lease?: { holder: string; env?: string }): Promise<void> {
  rig = new CoreRig(options);
  if (lease) putLease(lease.holder, lease.env);
  await rig.start();
}

function putLease(holder: string, env = 'dev'): void {
  rig.api.put('lease', {
    metadata: {
      name: NODE,
      namespace: 'kube-node-lease',
      labels: { 'virtual-kubelet.koupleless.io/component': 'vnode-lease', 'virtual-kubelet.koupleless.io/env': env },
    },
    spec: { holderIdentity: holder, leaseTransitions: 3, renewTime: '2020-01-01T00:00:00.000000Z' },
  } as never);
}

afterEach(() => rig.stop());

describe('the lease of a base', () => {
  it('is taken at once and renewed each 10 s, in the words of a kubelet', async () => {
    await started();
    await rig.foundBase('b1');
    expect(rig.api.lease(NODE)?.spec).toEqual({
      holderIdentity: 'me',
      leaseDurationSeconds: 40,
      acquireTime: '2026-01-01T00:00:00.000000Z',
      renewTime: '2026-01-01T00:00:00.000000Z',
      leaseTransitions: 0,
    });
    await rig.pass(10_000);
    rig.api.take();
    await rig.pass(600_000);
    expect(rig.api.take('patch lease')).toHaveLength(60);
    expect(rig.api.requests.filter((request) => request.startsWith('get'))).toEqual([]);
  });

  it('is gained once, however often it is renewed', async () => {
    await started();
    await rig.foundBase('b1');
    await rig.pass(60_000);
    const { values } = await rig.metrics.leaseTakeovers.get();
    expect(values.filter(({ value }) => value > 0)).toMatchObject([{ labels: { reason: 'New' }, value: 1 }]);
  });

  it('is renewed at a moment of each base’s own, though all were found at once', async () => {
    await started();
    for (let index = 0; index < 50; index++) rig.base(`b${index}`);
    for (const identity of rig.bases.keys()) rig.heartbeat(identity);
    await rig.pass(60_000);
    const perSecond: number[] = [];
    for (let second = 0; second < 10; second++) {
      rig.api.take();
      await rig.pass(1_000);
      perSecond.push(rig.api.take('patch lease').length);
    }
    expect(perSecond.reduce((sum, count) => sum + count)).toBe(50);
    expect(Math.max(...perSecond)).toBeLessThan(20);
  });

  it('is renewed before leases of new bases are made, however many come at once', async () => {
    await started();
    await rig.foundBase('b1');
    // 32 workers: 800 leases take 25 s.
    rig.api.delay = () => sleep(rig.clock, 1_000);
    for (let index = 0; index < 800; index++) rig.base(`new-${index}`);
    for (const identity of rig.bases.keys()) rig.heartbeat(identity);
    for (let second = 0; second < 20; second++) {
      await rig.pass(1_000);
      const { renewTime = '' } = rig.api.lease(NODE)?.spec ?? {};
      expect(rig.clock.wallTime().getTime() - Date.parse(renewTime)).toBeLessThan(13_000);
    }
    expect(rig.api.lease('vnode.new-799')).toBeUndefined();
    rig.api.delay = () => undefined;
    await rig.pass(1_000);
  });

  it.each([500, 503, 429])('is tried again within seconds when a renewal is answered with %i', async (status) => {
    await started();
    await rig.foundBase('b1');
    rig.api.fail('patch lease', status, 5);
    await rig.pass(30_000);
    const { renewTime = '' } = rig.api.lease(NODE)?.spec ?? {};
    expect(rig.clock.wallTime().getTime() - Date.parse(renewTime)).toBeLessThan(15_000);
    expect(rig.leases.isHeld(NODE)).toBe(true);
  });

  it('is kept when the answer to a renewal or to the creation was lost', async () => {
    await started();
    rig.api.loseAnswer('post lease');
    await rig.foundBase('b1');
    await rig.pass(10_000);
    rig.api.loseAnswer('patch lease');
    await rig.pass(20_000);
    expect(rig.leases.isHeld(NODE)).toBe(true);
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
  });

  it('is made again when somebody deletes it', async () => {
    await started();
    await rig.foundBase('b1');
    rig.api.drop('lease', NODE);
    await rig.pass(1_000);
    expect(rig.api.lease(NODE)?.spec?.holderIdentity).toBe('me');
  });

  it('that was deleted while the watch was broken costs a few requests, not a storm', async () => {
    await started();
    await rig.foundBase('b1');
    rig.leaseInformer.isPaused = true;
    rig.api.drop('lease', NODE);
    rig.api.take();
    await rig.pass(30_000);
    expect(rig.api.take().filter((request) => request.includes('lease')).length).toBeLessThan(10);
    expect(rig.api.lease(NODE)?.spec?.holderIdentity).toBe('me');
    rig.leaseInformer.resume();
    await rig.pass(20_000);
    expect(rig.leases.isHeld(NODE)).toBe(true);
  });

  it('that was left without a Node and without a base is deleted after a minute', async () => {
    await started({}, { holder: 'me' });
    await rig.pass(59_000);
    expect(rig.api.lease(NODE)).toBeDefined();
    await rig.pass(2_000);
    expect(rig.api.lease(NODE)).toBeUndefined();
  });

  it('that was left without a Node is kept when its base comes', async () => {
    await started({}, { holder: 'me' });
    await rig.pass(30_000);
    await rig.foundBase('b1');
    const uid = rig.api.lease(NODE)?.metadata.uid;
    await rig.pass(60_000);
    expect(rig.api.lease(NODE)?.metadata.uid).toBe(uid);
  });

  it('that cannot be made at all is tried with a growing delay', async () => {
    await started();
    rig.api.fail('post lease', 404, 1_000);
    await rig.foundBase('b1');
    await rig.pass(60_000);
    expect(rig.api.take('post lease').length).toBeLessThan(25);
    expect(rig.leases.isHeld(NODE)).toBe(false);
    expect(rig.api.node(NODE)).toBeUndefined();
  });

  it('of another ENV is never touched', async () => {
    await started();
    rig.leaseInformer.isPaused = true;
    putLease('theirs', 'prod');
    rig.api.take();
    await rig.foundBase('b1');
    await rig.pass(60_000);
    expect(rig.api.lease(NODE)?.spec?.holderIdentity).toBe('theirs');
    expect(rig.api.node(NODE)).toBeUndefined();
    expect((await rig.metrics.nodeNameConflicts.get()).values[0]?.value).toBeGreaterThan(0);
  });

  it('of another ENV is asked for once a minute by one of several replicas too', async () => {
    await started({ isCluster: true });
    rig.leaseInformer.isPaused = true;
    putLease('theirs', 'prod');
    await rig.foundBase('b1');
    await rig.pass(5_000);
    rig.api.take();
    await rig.pass(300_000);
    const posts = rig.api.take('post lease').length;
    expect(posts).toBeGreaterThanOrEqual(4);
    expect(posts).toBeLessThanOrEqual(5);
  });

  it('that is due while the membership is in doubt for a moment is renewed a second later', async () => {
    await started({ isCluster: true });
    await rig.foundBase('b1');
    await rig.pass(20_000);
    rig.membership.valid = false;
    await rig.pass(10_300);
    rig.api.take();
    rig.membership.valid = true;
    await rig.pass(1_100);
    expect(rig.api.take('patch lease')).toHaveLength(1);
  });

  it('that this replica holds and cannot renew is tried every 7 s, though every second proves its membership', async () => {
    await started({ isCluster: true });
    await rig.foundBase('b1');
    await rig.pass(20_000);
    rig.api.fail('patch lease', 403, 1_000);
    await rig.pass(60_000);
    rig.api.take();
    await rig.pass(70_000);
    const patches = rig.api.take('patch lease').length;
    expect(patches).toBeGreaterThanOrEqual(9);
    expect(patches).toBeLessThanOrEqual(20);
  });
});

describe('a lease of another holder', () => {
  it('is taken at once when we are alone', async () => {
    await started({}, { holder: 'earlier-me' });
    await rig.foundBase('b1');
    expect(rig.api.lease(NODE)?.spec).toMatchObject({ holderIdentity: 'me', leaseTransitions: 4 });
    expect(rig.leases.isHeld(NODE)).toBe(true);
  });

  it('is left to it in a cluster while it renews, and taken 40 s after it stopped, by our clock', async () => {
    await started({ isCluster: true }, { holder: 'other' });
    rig.base('b1');
    rig.heartbeat('b1');
    for (let times = 0; times < 6; times++) {
      await rig.pass(10_000);
      putLease('other');
    }
    expect(rig.api.node(NODE)).toBeUndefined();
    await rig.pass(39_000);
    expect(rig.leases.isHeld(NODE)).toBe(false);
    await rig.pass(2_000);
    expect(rig.api.lease(NODE)?.spec?.holderIdentity).toBe('me');
    await rig.pass(1_000);
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
  });

  it('that died before we started is taken 40 s after we first saw it', async () => {
    await started({ isCluster: true }, { holder: 'dead' });
    await rig.foundBase('b1');
    await rig.pass(42_000);
    expect(rig.leases.isHeld(NODE)).toBe(true);
  });

  it('that took ours while we slept is respected', async () => {
    await started({ isCluster: true });
    await rig.foundBase('b1');
    putLease('other');
    await rig.pass(1_000);
    expect(rig.leases.isHeld(NODE)).toBe(false);
    expect(rig.api.lease(NODE)?.spec?.holderIdentity).toBe('other');
  });
});

describe('an API server that is down', () => {
  it('does not stop us when we are alone: commands are still sent', async () => {
    await started();
    await rig.foundBase('b1');
    rig.api.fail('patch', 503, 10_000);
    await rig.pass(120_000);
    expect(rig.leases.isHeld(NODE)).toBe(true);
  });

  it('makes us let go after 40 s in a cluster, and go on when it is back', async () => {
    await started({ isCluster: true });
    await rig.foundBase('b1');
    await rig.pass(10_000);
    rig.api.fail('patch', 503, 10_000);
    await rig.pass(60_000);
    expect(rig.leases.isHeld(NODE)).toBe(false);
    rig.addPod();
    await rig.pass(1_000);
    expect(rig.tunnel.take('install')).toEqual([]);
    rig.api.heal();
    await rig.pass(15_000);
    expect(rig.leases.isHeld(NODE)).toBe(true);
    expect(rig.podState('p1')).toBe('Running True');
  });
});
