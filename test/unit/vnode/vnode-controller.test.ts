import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeBase, makeHealth, makeList, makeResult } from '../../support/builders.ts';
import { CoreRig } from '../../support/core-rig.ts';

const NODE = 'vnode.b1';
let rig: CoreRig;

beforeEach(async () => {
  rig = new CoreRig();
  await rig.start();
});

afterEach(() => rig.stop());

describe('a base', () => {
  it('is found by its heartbeat, and by nothing else', async () => {
    const envelope = rig.envelope('b1');
    rig.vnodes.onHealth(envelope, makeHealth());
    rig.vnodes.onModuleList(envelope, makeList('biz1:1'));
    rig.vnodes.onOperationResult(envelope, makeResult('install', 'biz1:1'));
    rig.vnodes.onBaselineQuery(envelope);
    await rig.pass(5_000);
    expect(rig.store.size).toBe(0);
    expect(rig.api.take()).toEqual([]);
    await rig.foundBase('b1');
    expect(rig.tunnel.take()).toEqual(['list b1', 'health b1']);
  });

  it.each([
    ['health', () => rig.vnodes.onHealth(rig.envelope('b1'), makeHealth())],
    ['a list', () => rig.vnodes.onModuleList(rig.envelope('b1'), [])],
    ['an answer', () => rig.vnodes.onOperationResult(rig.envelope('b1'), makeResult('install', 'biz9:1'))],
  ])('lives by any message: %s', async (_, say) => {
    const base = await rig.foundBase('b1', { answersLists: false, answersHealth: false });
    base.isSilent = true;
    for (let times = 0; times < 8; times++) {
      say();
      await rig.pass(20_000);
    }
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
  });

  it('that lets a heartbeat say the same again costs no write', async () => {
    await rig.foundBase('b1');
    await rig.pass(10_000);
    rig.api.take();
    await rig.pass(60_000);
    expect(rig.api.take().filter((request) => !request.startsWith('patch lease'))).toEqual([]);
  });

  it('is asked once when our link comes up again, and its late answers are taken', async () => {
    await rig.foundBase('b1');
    rig.linkDown();
    rig.tunnel.take();
    rig.linkUp();
    expect(rig.tunnel.take()).toEqual(['list b1', 'health b1']);
    await rig.pass(1_000);
    expect(rig.store.get(NODE)?.ledger.isKnown).toBe(true);
  });

  it('whose run time is rounded, or is told out of order, was not restarted', async () => {
    await rig.foundBase('b1');
    for (const runTimeSeconds of [100, 99, 100, undefined, 101]) {
      rig.vnodes.onHealth(rig.envelope('b1'), makeHealth({ runTimeSeconds }));
    }
    await rig.pass(1_000);
    expect(rig.events.filter((event) => event.includes('Rebooted'))).toEqual([]);
  });

  it('whose query for its baseline is overtaken by its first heartbeat was not restarted', async () => {
    const asked = rig.envelope('b1');
    await rig.pass(20);
    const base = await rig.foundBase('b1');
    rig.addPod({ node: NODE });
    await rig.pass(5_000);
    rig.tunnel.take();
    rig.vnodes.onBaselineQuery(asked);
    await rig.pass(1_000);
    expect([rig.tunnel.take(), rig.events.filter((event) => event.includes('Rebooted'))]).toEqual([[], []]);
    expect(base.modules.size).toBe(1);
  });

  it.each([
    ['after what we heard first of it', 1],
    ['long before, so by another clock', -30_000],
  ])('that asks for its baseline %s was restarted', async (_, laterMs) => {
    const asked = rig.envelope('b1');
    await rig.foundBase('b1');
    await rig.pass(60_000);
    rig.vnodes.onBaselineQuery({ ...asked, publishedAt: (asked.publishedAt ?? 0) + laterMs });
    await rig.pass(1_000);
    expect(rig.events.filter((event) => event.includes('Rebooted'))).toHaveLength(1);
  });

  it('that cannot find out its health keeps the memory it told before', async () => {
    await rig.foundBase('b1');
    await rig.pass(20_000);
    const unknown = makeHealth({
      metaspaceMaxBytes: undefined,
      metaspaceCommittedBytes: undefined,
      metaspaceUsedBytes: undefined,
      runTimeSeconds: undefined,
    });
    rig.vnodes.onHealth(rig.envelope('b1'), unknown);
    await rig.pass(1_000);
    expect(rig.api.node(NODE)?.status?.capacity?.memory).toBe('262144Ki');
  });
});

describe('a Node of our env', () => {
  it('that no process of ours made is led at once, and a foreign name is not', async () => {
    const labels = { 'virtual-kubelet.koupleless.io/component': 'vnode', 'virtual-kubelet.koupleless.io/env': 'dev' };
    rig.api.put('node', { metadata: { name: NODE, labels } });
    rig.api.put('node', { metadata: { name: 'worker-1', labels } });
    rig.api.put('node', { metadata: { name: `vnode.${'x'.repeat(58)}`, labels } });
    await rig.pass(100);
    expect([...rig.store.values()].map(({ nodeName }) => nodeName)).toEqual([NODE]);
    expect(rig.leases.isHeld(NODE)).toBe(true);
  });
});

describe('in a cluster of controllers', () => {
  it('a base that another one leads is found again after its death', async () => {
    await rig.stop();
    rig = new CoreRig({ isCluster: true });
    const putLease = (): void =>
      rig.api.put('lease', {
        metadata: { name: NODE, namespace: 'kube-node-lease' },
        spec: { holderIdentity: 'other' },
      } as never);
    putLease();
    await rig.start();
    const base = await rig.foundBase('b1');
    expect(rig.api.node(NODE)).toBeUndefined();
    base.isSilent = true;
    for (let times = 0; times < 8; times++) {
      await rig.pass(10_000);
      putLease();
    }
    rig.api.drop('lease', NODE);
    base.isSilent = false;
    // Who led it may not know yet that its lease is gone, and makes it again if it hears of the base.
    await rig.pass(30_000);
    expect(rig.api.node(NODE)).toBeUndefined();
    await rig.pass(30_000);
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
    expect(rig.leases.isHeld(NODE)).toBe(true);
  });
});

describe('a heartbeat', () => {
  /** Its routine questions come 61 s after it was met. */
  const LATE = 'b3';

  /** What the base is asked at a heartbeat that comes after a time; it has no others, and answers nothing. */
  async function askedAfter(ms: number, tunnel = rig.http): Promise<string[]> {
    await rig.pass(ms);
    tunnel.take();
    rig.vnodes.onHeartbeat(rig.envelope(LATE), rig.bases.get(LATE)?.info ?? makeBase(LATE));
    return tunnel.take();
  }

  async function silentBase(tunnel = rig.http): Promise<void> {
    const base = await rig.foundBase(LATE, { tunnel: tunnel.name });
    base.isSilent = true;
  }

  it('over HTTP that comes when it should is no reason to ask', async () => {
    await silentBase();
    expect(await askedAfter(11_000)).toEqual([]);
    expect(await askedAfter(10_000)).toEqual([]);
    expect(await askedAfter(14_000)).toEqual([]);
  });

  it.each([
    ['too early', 8_000],
    ['too late', 14_001],
  ])('over HTTP that comes %s may be of a process that was started anew, which is asked', async (_, ms) => {
    await silentBase();
    await askedAfter(11_000);
    expect(await askedAfter(ms)).toEqual([`list ${LATE}`, `health ${LATE}`]);
  });

  it('over HTTP at an odd moment is a reason to ask, though not within 5 s of the question before', async () => {
    await silentBase();
    const both = [`list ${LATE}`, `health ${LATE}`];
    expect(await askedAfter(3_000)).toEqual([]);
    await rig.pass(1_500);
    expect(rig.http.take()).toEqual(both);
    expect(await askedAfter(1_000)).toEqual([]);
    await rig.pass(3_000);
    expect(rig.http.take()).toEqual([]);
    await rig.pass(1_500);
    expect(rig.http.take()).toEqual(both);
    expect(await askedAfter(9_800)).toEqual(both);
  });

  it('over MQTT is no reason to ask, whenever it comes', async () => {
    await silentBase(rig.tunnel);
    for (const ms of [6_000, 1, 20_000]) expect(await askedAfter(ms, rig.tunnel)).toEqual([]);
  });
});

describe('a restart', () => {
  it('that is reported again before the base has listed its modules is one restart', async () => {
    const base = await rig.foundBase('b1');
    await rig.pass(10_000);
    base.answersLists = false;
    for (let times = 0; times < 3; times++) {
      rig.restart('b1');
      await rig.pass(1_000);
    }
    expect(rig.events.filter((event) => event === 'Warning Rebooted vnode.b1')).toHaveLength(1);
  });
});
