import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LeaseObject } from '../../../src/kube/objects.ts';
import { CoreRig } from '../../support/core-rig.ts';

const NODE = 'vnode.b1';
let rig: CoreRig;

beforeEach(async () => {
  rig = new CoreRig({ isCluster: true });
  rig.membership.others = [
    { id: 'other', nonce: 'other#0', address: undefined, tunnels: [rig.tunnel.name], isLeaving: false },
  ];
});

afterEach(() => rig.stop());

/** As another replica would write it. */
function putLease(holder: string): void {
  const lease: LeaseObject = {
    metadata: { name: NODE, namespace: 'kube-node-lease', labels: { 'virtual-kubelet.koupleless.io/env': 'dev' } },
    spec: { holderIdentity: holder, leaseTransitions: 1, renewTime: '2026-01-01T00:00:00.000000Z' },
  };
  rig.api.put('lease', lease);
}

/** b1, led here, with biz1 installed for Pod p1. */
async function leading(): Promise<void> {
  await rig.start();
  rig.membership.gone.add('other');
  rig.membership.others = [];
  await rig.foundBase('b1');
  await rig.pass(2_000);
  rig.addPod();
  await rig.pass(2_000);
  expect(rig.podState('p1')).toBe('Running True');
  rig.membership.others = [
    { id: 'other', nonce: 'other#0', address: undefined, tunnels: [rig.tunnel.name], isLeaving: false },
  ];
  rig.membership.gone.clear();
  forget();
}

/** The base as another replica left it: Node, Lease, Pod p1 Running, biz1 active. */
async function takenByOther(): Promise<void> {
  await leading();
  putLease('other');
  await rig.pass(100);
  expect(rig.leases.isHeld(NODE)).toBe(false);
  forget();
}

function forget(): void {
  rig.api.take();
  rig.tunnel.take();
  rig.events.length = 0;
}

/** What this replica has said to anybody. */
function said(): { requests: string[]; base: string[]; events: string[] } {
  return { requests: rig.api.take(), base: rig.tunnel.take(), events: [...rig.events] };
}

function setSilent(isSilent: boolean): void {
  const base = rig.bases.get('b1');
  if (base) base.isSilent = isSilent;
}

/** The base says nothing from now on, and the other replica renews its lease for these seconds. */
async function silentFor(seconds: number): Promise<void> {
  setSilent(true);
  for (let past = 0; past < seconds; past += 10) {
    await rig.pass(10_000);
    putLease('other');
  }
}

describe('a base whose Lease is being made again', () => {
  it('is asked afterwards for what was due meanwhile', async () => {
    await leading();
    const made = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request.startsWith('post lease') ? made.promise : undefined);
    rig.api.drop('lease', NODE);
    await rig.pass(100);
    rig.store.get(NODE)?.questions.refreshBy(rig.clock.now());
    await rig.pass(2_000);
    expect([rig.leases.isHeld(NODE), rig.tunnel.take()]).toEqual([false, []]);
    made.resolve();
    await rig.pass(2_000);
    expect([rig.leases.isHeld(NODE), rig.tunnel.take()]).toEqual([true, ['list b1', 'health b1']]);
  });
});

describe('a base that another replica leads', () => {
  it('is listened to, and neither asked nor commanded nor written about, whatever happens to its Pods', async () => {
    await takenByOther();
    rig.addPod({ name: 'p2', modules: ['biz2:1'] });
    rig.deletePod('p1');
    await rig.pass(30_000);
    rig.api.drop('pod', 'p1');
    putLease('other');
    await rig.pass(30_000);
    expect(said()).toEqual({ requests: [], base: [], events: [] });
  });

  it('is not judged, however silent it is', async () => {
    await takenByOther();
    await silentFor(120);
    expect(said()).toEqual({ requests: [], base: [], events: [] });
    expect(rig.store.get(NODE)?.life.liveness).toBe('Unreachable');
  });

  it('is forgotten when its Node is gone and it says nothing, and not before', async () => {
    await takenByOther();
    rig.api.drop('pod', 'p1');
    rig.api.drop('node', NODE);
    await rig.pass(5_000);
    expect(rig.store.get(NODE)).toBeDefined();
    setSilent(true);
    await rig.pass(30_000);
    expect(rig.store.get(NODE)).toBeUndefined();
    expect(rig.leases.size().known).toBe(0);
    expect(said().requests).toEqual([]);
  });

  it('is taken when its Lease was deleted with its Node, though it speaks', async () => {
    await takenByOther();
    rig.api.drop('pod', 'p1');
    rig.api.drop('node', NODE);
    rig.api.drop('lease', NODE);
    for (let seconds = 0; seconds < 50; seconds += 10) await rig.pass(10_000);
    expect(rig.leases.isHeld(NODE)).toBe(true);
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
  });

  it('is where its Node says it is, when it has moved and nothing of that came here', async () => {
    await rig.start();
    rig.base('b1', { tunnel: 'http_tunnel_provider' });
    putLease('other');
    rig.claim('b1', 'http_tunnel_provider', { ip: '198.51.100.7', port: 1238 });
    await rig.pass(100);
    rig.api.put('node', nodeAt('198.51.100.7', '1238'));
    rig.api.put('node', nodeAt('198.51.100.8', '1240'));
    await rig.pass(100);
    expect(rig.store.get(NODE)?.place.base).toMatchObject({ ip: '198.51.100.8', port: 1240 });
  });
});

function nodeAt(ip: string, port: string) {
  return {
    metadata: {
      name: NODE,
      labels: { 'vnode.koupleless.io/tunnel': 'http_tunnel_provider' },
      annotations: { 'platform.koupleless.io/arklet-port': port },
    },
    status: { addresses: [{ type: 'InternalIP', address: ip }] },
  };
}

describe('a base whose leader is gone', () => {
  /** From the moment when that is proven. */
  async function goneLeader(): Promise<void> {
    rig.membership.gone.add('other');
    rig.membership.others = [];
    await rig.pass(5_000);
    expect(rig.leases.isHeld(NODE)).toBe(true);
  }

  it('is adopted: asked for what it has, and nothing is installed or written where all is as it should be', async () => {
    await takenByOther();
    await goneLeader();
    const { requests, base, events } = said();
    expect(base.sort()).toEqual(['health b1', 'list b1']);
    const others = requests.filter((request) => !/^patch lease/.test(request));
    expect(others).toEqual([expect.stringMatching(/^get configmap [^ ]+$/)]);
    expect(events).toEqual([]);
    expect(rig.container('p1')?.restartCount).toBe(0);
  });

  it('gets what is missing and loses what is to go', async () => {
    await takenByOther();
    rig.addPod({ name: 'p2', modules: ['biz2:1'] });
    rig.deletePod('p1');
    await goneLeader();
    expect(rig.commands().sort()).toEqual(['install b1 biz2:1', 'uninstall b1 biz1:1.0.0']);
    expect(rig.api.pod('p1')).toBeUndefined();
    expect(rig.podState('p2')).toBe('Running True');
  });

  it('that was not heard here for long stays Ready, and has some seconds to speak', async () => {
    await takenByOther();
    await silentFor(40);
    expect(rig.store.get(NODE)?.life.liveness).toBe('Unreachable');
    setSilent(false);
    await goneLeader();
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
    expect(rig.podState('p1')).toBe('Running True');
    expect(said().requests.filter((request) => /status/.test(request))).toEqual([]);
  });

  it('that was not heard here for long, and does not speak, is not Ready after those seconds', async () => {
    await takenByOther();
    await silentFor(40);
    await goneLeader();
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
    await rig.pass(11_000);
    expect(rig.condition(NODE, 'Ready')).toBe('False BaseUnreachable');
    await rig.pass(25_000);
    expect(rig.api.node(NODE)).toBeDefined();
  });

  it('that has died with it is given up, by what was heard here', async () => {
    await takenByOther();
    setSilent(true);
    await rig.pass(10_000);
    await goneLeader();
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
    await rig.pass(60_000);
    expect(rig.api.node(NODE)).toBeUndefined();
    expect(rig.api.lease(NODE)).toBeUndefined();
  });
});

describe('a replica that may lead nothing for a while', () => {
  it('says nothing from then on, not even what was about to be written', async () => {
    await leading();
    let go = (): void => {};
    rig.api.delay = (request) =>
      request.startsWith('patch pod/status') ? new Promise<void>((resolve) => (go = resolve)) : undefined;
    rig.addPod({ name: 'p2', modules: ['biz2:1'] });
    await rig.pass(1_000);
    forget();
    rig.membership.valid = false;
    go();
    rig.addPod({ name: 'p3', modules: ['biz3:1'] });
    await rig.pass(60_000);
    expect(said()).toEqual({ requests: [], base: [], events: [] });
    expect(rig.podState('p2') ?? '').not.toContain('Running');
  });

  it('confirms its leases before it goes on, and asks the base anew', async () => {
    await leading();
    rig.leases.onFenced();
    rig.membership.valid = false;
    rig.addPod({ name: 'p2', modules: ['biz2:1'] });
    await rig.pass(20_000);
    forget();
    rig.membership.valid = true;
    rig.membership.term = 2;
    await rig.pass(5_000);
    const { requests, base } = said();
    expect(requests[0]).toBe(`patch lease ${NODE}`);
    expect(base.slice(0, 2).sort()).toEqual(['health b1', 'list b1']);
    expect(base).toContain('install b1 biz2:1');
    expect(base).not.toContain('install b1 biz1:1.0.0');
  });

  it('leads nothing that another one took meanwhile', async () => {
    await leading();
    rig.leaseInformer.isPaused = true;
    putLease('other');
    rig.leases.onFenced();
    rig.membership.valid = false;
    await rig.pass(1_000);
    rig.membership.valid = true;
    rig.membership.term = 2;
    await rig.pass(5_000);
    expect(rig.leases.isHeld(NODE)).toBe(false);
    expect(rig.api.lease(NODE)?.spec?.holderIdentity).toBe('other');
    expect(rig.tunnel.take()).toEqual([]);
  });
});

describe('a replica that may not write for a moment, within one term of its membership', () => {
  it('removes a dead base after that', async () => {
    await leading();
    let go = (): void => {};
    rig.api.delay = (request) =>
      request.startsWith('delete pod') ? new Promise<void>((resolve) => (go = resolve)) : undefined;
    setSilent(true);
    await rig.pass(61_000);
    expect(rig.store.get(NODE)?.life.liveness).toBe('Dead');
    rig.api.delay = () => undefined;
    rig.membership.valid = false;
    go();
    await rig.pass(300);
    expect(rig.api.pod('p1')).toBeDefined();
    rig.membership.valid = true;
    await rig.pass(600_000);
    expect(rig.api.node(NODE)).toBeUndefined();
    expect(rig.api.pod('p1')).toBeUndefined();
    expect(rig.api.lease(NODE)).toBeUndefined();
    expect(rig.store.get(NODE)).toBeUndefined();
  });

  it('installs the module of a Pod that came meanwhile within seconds', async () => {
    await leading();
    await rig.pass(20_000);
    forget();
    rig.membership.valid = false;
    rig.addPod({ name: 'p2', modules: ['biz2:1'] });
    await rig.pass(300);
    expect(said()).toEqual({ requests: [], base: [], events: [] });
    rig.membership.valid = true;
    await rig.pass(5_000);
    expect(rig.commands()).toContain('install b1 biz2:1');
    expect(rig.podState('p2')).toBe('Running True');
  });

  it('does the same when the moment is that in which a deleted Lease is made again', async () => {
    await leading();
    await rig.pass(20_000);
    let go = (): void => {};
    rig.api.delay = (request) =>
      request.startsWith('post lease') ? new Promise<void>((resolve) => (go = resolve)) : undefined;
    rig.api.drop('lease', NODE);
    await rig.pass(100);
    forget();
    rig.addPod({ name: 'p2', modules: ['biz2:1'] });
    await rig.pass(300);
    expect(said()).toEqual({ requests: [], base: [], events: [] });
    go();
    await rig.pass(5_000);
    expect(rig.commands()).toContain('install b1 biz2:1');
  });

  it('uninstalls the module of a Pod that was forced away meanwhile, even where it keeps unknown modules', async () => {
    await rig.stop();
    rig = new CoreRig({ isCluster: true, unknownModulePolicy: 'keep' });
    await leading();
    rig.membership.valid = false;
    rig.api.drop('pod', 'p1');
    await rig.pass(300);
    expect(rig.commands()).toEqual([]);
    rig.membership.valid = true;
    await rig.pass(5_000);
    expect(rig.commands()).toEqual(['uninstall b1 biz1:1.0.0']);
    expect(rig.store.get(NODE)?.pendingRemovals.size).toBe(0);
  });

  it('stops looking at a base that another replica has taken in that moment', async () => {
    await leading();
    rig.membership.valid = false;
    rig.addPod({ name: 'p2', modules: ['biz2:1'] });
    await rig.pass(300);
    putLease('other');
    await rig.pass(2_000);
    const before = await rig.podAdds();
    rig.membership.valid = true;
    await rig.pass(10_000);
    expect(await rig.podAdds()).toBe(before);
    expect(said()).toEqual({ requests: [], base: [], events: [] });
  });
});

describe('a replica that ends', () => {
  it('begins nothing, and hears what it has begun', async () => {
    await leading();
    const base = rig.bases.get('b1');
    if (base) base.answersCommands = false;
    rig.addPod({ name: 'p2', modules: ['biz2:1'] });
    await rig.pass(1_000);
    expect(rig.commands()).toEqual(['install b1 biz2:1']);
    rig.isLeaving = true;
    rig.addPod({ name: 'p3', modules: ['biz3:1'] });
    // Not in the very millisecond of a list that was asked for: of two such one is taken for a repetition.
    await rig.pass(1_100);
    base?.modules.set('biz2:1', 'ACTIVATED');
    rig.list('b1');
    await rig.pass(1_000);
    expect(rig.commands()).toEqual([]);
    expect(rig.podState('p2')).toBe('Running True');
  });

  it('leads no more from the moment when it hands over, and the next one is the holder', async () => {
    await leading();
    const given = rig.leases.handOver(NODE, 'other', 'Leaving');
    expect(rig.leases.isHeld(NODE)).toBe(false);
    await given;
    expect(rig.api.lease(NODE)?.spec).toMatchObject({ holderIdentity: 'other', leaseTransitions: 1 });
    await rig.pass(5_000);
    expect(rig.tunnel.take()).toEqual([]);
  });

  it('hands over once: another call before the write is done changes nothing', async () => {
    await leading();
    await Promise.all([rig.leases.handOver(NODE, 'other', 'Leaving'), rig.leases.handOver(NODE, 'third', 'Leaving')]);
    expect(rig.api.lease(NODE)?.spec).toMatchObject({ holderIdentity: 'other', leaseTransitions: 1 });
    const { values } = await rig.metrics.leaseLosses.get();
    expect(values.filter(({ value }) => value > 0)).toMatchObject([{ labels: { reason: 'Leaving' }, value: 1 }]);
  });

  it('goes on leading what nobody else can be told of', async () => {
    await leading();
    rig.api.fail('patch lease', 409, 1, 'Conflict');
    await rig.leases.handOver(NODE, 'other', 'Rebalancing');
    await rig.pass(5_000);
    expect(rig.leases.isHeld(NODE)).toBe(true);
    expect(rig.api.lease(NODE)?.spec?.holderIdentity).toBe('me');
  });
});
