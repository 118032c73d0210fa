import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeBase, makeHealth, makeList } from '../../support/builders.ts';
import { CoreRig } from '../../support/core-rig.ts';
import type { RigBase } from '../../support/rig-base.ts';

const NODE = 'vnode.b1';
const MQTT = 'mqtt_tunnel_provider';
const HTTP = 'http_tunnel_provider';
const ADDRESS = { ip: '198.51.100.1', port: 1238 };
const ELSEWHERE = { ip: '198.51.100.2', port: 1238 };
let rig: CoreRig;

beforeEach(async () => {
  rig = new CoreRig();
  await rig.start();
});

afterEach(() => rig.stop());

const httpBase = (more: Partial<RigBase> = {}): Promise<RigBase> =>
  rig.foundBase('b1', { tunnel: HTTP, info: makeBase('b1', ADDRESS), ...more });
const refusals = (): string[] => rig.events.filter((event) => event === `Warning BaseRefused ${NODE}`);
const refused = async (tunnel: string): Promise<number | undefined> =>
  (await rig.metrics.refusedBases.get()).values.find(({ labels }) => labels.tunnel === tunnel)?.value;

/** The base with one running module of Pod p1. */
async function running(base: Promise<RigBase>): Promise<RigBase> {
  const found = await base;
  rig.addPod();
  await rig.pass(5_000);
  rig.commands();
  return found;
}

describe('of two bases with one identity', () => {
  it.each([
    ['over the other tunnel, where the broker lets anybody in', MQTT, ELSEWHERE],
    ['over HTTP at another address', HTTP, ELSEWHERE],
  ] as const)('the first one heard keeps it while it speaks: %s', async (_, tunnel, place) => {
    rig.tunnel.provesIdentity = false;
    await running(httpBase());
    for (let times = 0; times < 10; times++) {
      rig.claim('b1', tunnel, place);
      await rig.pass(12_000);
    }
    expect(rig.store.get(NODE)).toMatchObject({ tunnel: HTTP, place: { base: ADDRESS } });
    expect(rig.podState('p1')).toBe('Running True');
    expect(rig.container('p1')).toMatchObject({ restartCount: 0 });
    expect(await refused(tunnel)).toBe(10);
    expect(rig.commands()).toEqual([]);
    expect(rig.events.filter((event) => event.includes('Rebooted'))).toEqual([]);
  });

  it('the second one is told of, but not at each of its heartbeats', async () => {
    await httpBase();
    for (let times = 0; times < 10; times++) {
      rig.claim('b1', HTTP, ELSEWHERE);
      await rig.pass(12_000);
    }
    expect(refusals()).toHaveLength(2);
    expect(rig.eventTexts.join()).toContain('http_tunnel_provider at 198.51.100.2:1238');
  });

  it('the second one does not keep the first one alive', async () => {
    const base = await httpBase();
    base.isSilent = true;
    rig.claim('b1', HTTP, ELSEWHERE);
    await rig.pass(20_000);
    rig.claim('b1', HTTP, ELSEWHERE);
    expect(rig.store.get(NODE)?.place.base).toMatchObject(ADDRESS);
    await rig.pass(6_000);
    expect(rig.condition(NODE, 'Ready')).toBe('False BaseUnreachable');
  });

  it('what the second one says over its tunnel is not taken for the first one’s', async () => {
    const base = await running(httpBase());
    base.isSilent = true;
    const envelope = { tunnel: MQTT, identity: 'b1', publishedAt: undefined } as const;
    rig.vnodes.onModuleList(envelope, makeList());
    rig.vnodes.onModuleList(envelope, makeList());
    rig.vnodes.onHealth(envelope, makeHealth({ runTimeSeconds: 1 }));
    rig.vnodes.onBaselineQuery(envelope);
    rig.vnodes.onGoingDown(envelope, makeBase('b1', ELSEWHERE));
    await rig.pass(1_000);
    expect(rig.commands()).toEqual([]);
    expect(rig.podState('p1')).toBe('Running True');
    expect(rig.events.filter((event) => event.includes('Rebooted'))).toEqual([]);
  });

  it('the second one goes down alone, also over the same tunnel', async () => {
    const base = await running(httpBase());
    const envelope = { tunnel: HTTP, identity: 'b1', publishedAt: undefined } as const;
    rig.vnodes.onGoingDown(envelope, makeBase('b1', ELSEWHERE));
    await rig.pass(5_000);
    expect(rig.podState('p1')).toBe('Running True');
    base.isSilent = true;
    rig.vnodes.onGoingDown(envelope, makeBase('b1', ADDRESS));
    await rig.pass(5_000);
    expect([rig.api.pod('p1'), rig.store.size]).toEqual([undefined, 0]);
  });

  describe('that only a Node of an earlier process shows', () => {
    beforeEach(async () => {
      await httpBase();
      rig = await rig.succeededBy(NODE);
    });

    it('whoever is heard over MQTT has the identity', async () => {
      rig.claim('b1', MQTT);
      rig.claim('b1', HTTP, ADDRESS);
      await rig.pass(1_000);
      expect(rig.store.get(NODE)?.tunnel).toBe(MQTT);
      expect(await refused(HTTP)).toBe(1);
    });

    it('the one at the address of the Node has it, though another one is heard first over HTTP', async () => {
      rig.claim('b1', HTTP, ELSEWHERE);
      await rig.pass(1_000);
      rig.claim('b1', HTTP, ADDRESS);
      await rig.pass(1_000);
      rig.claim('b1', HTTP, ELSEWHERE);
      expect(rig.store.get(NODE)?.place.base).toMatchObject(ADDRESS);
      expect(await refused(HTTP)).toBe(2);
    });

    it('another one has it at its next heartbeat once the address of the Node refuses a connection', async () => {
      rig.http.onSent = () => queueMicrotask(() => rig.vnodes.onConnectionRefused(HTTP, makeBase('b1', ADDRESS)));
      rig.claim('b1', HTTP, ELSEWHERE);
      await rig.pass(6_000);
      expect(rig.store.get(NODE)?.place.base).toMatchObject(ADDRESS);
      rig.claim('b1', HTTP, ELSEWHERE);
      expect(rig.store.get(NODE)?.place.base).toMatchObject(ELSEWHERE);
      expect(await refused(HTTP)).toBe(1);
    });

    it('another one has it after 25 s in which nobody was heard from the address of the Node', async () => {
      await rig.pass(25_000);
      rig.claim('b1', HTTP, ELSEWHERE);
      expect(rig.store.get(NODE)?.place.base).toMatchObject(ELSEWHERE);
      expect(await refused(HTTP)).toBe(0);
    });
  });
});

describe('a base that has moved', () => {
  it.each([
    ['at once', 0],
    ['after 30 s of silence', 30_000],
  ])('to MQTT with a user of its own is the same Node, with the modules that it still has: %s', async (_, silentMs) => {
    const base = await running(httpBase());
    const uid = rig.api.node(NODE)?.metadata.uid;
    base.isSilent = true;
    await rig.pass(silentMs);
    Object.assign(base, { isSilent: false, tunnel: MQTT, info: makeBase('b1') });
    rig.heartbeat('b1');
    await rig.pass(5_000);
    expect(rig.api.node(NODE)?.metadata.uid).toBe(uid);
    expect(rig.api.node(NODE)?.metadata.labels?.['vnode.koupleless.io/tunnel']).toBe(MQTT);
    expect(rig.api.node(NODE)?.metadata.annotations?.['platform.koupleless.io/arklet-port']).toBeUndefined();
    expect(rig.podState('p1')).toBe('Running True');
    expect([rig.commands(), rig.container('p1')?.restartCount]).toEqual([[], 0]);
  });

  it('as another process gets its modules again after one list', async () => {
    const base = await running(httpBase());
    base.isSilent = true;
    await rig.pass(30_000);
    Object.assign(base, { isSilent: false, info: makeBase('b1', ELSEWHERE), startedAt: rig.clock.now() });
    base.modules.clear();
    rig.heartbeat('b1');
    await rig.pass(2_000);
    expect(rig.commands()).toEqual(['install b1 biz1:1.0.0']);
    expect(rig.container('p1')).toMatchObject({ restartCount: 1, ready: true });
    expect(rig.api.pod('p1')?.status?.podIP).toBe(ELSEWHERE.ip);
  });

  it('is believed at once after a refused connection, and its first list counts alone', async () => {
    const base = await running(httpBase());
    rig.vnodes.onConnectionRefused(HTTP, base.info);
    Object.assign(base, { info: makeBase('b1', ELSEWHERE), startedAt: rig.clock.now() });
    base.modules.clear();
    rig.heartbeat('b1');
    await rig.pass(1_000);
    expect(rig.store.get(NODE)?.place.base).toMatchObject(ELSEWHERE);
    expect(rig.commands()).toEqual(['install b1 biz1:1.0.0']);
    expect(await refused(HTTP)).toBe(0);
  });

  it('is believed at its second heartbeat where its earlier process was asked right before the first', async () => {
    const base = await running(httpBase());
    await rig.pass(30_000);
    rig.vnodes.onBaselineQuery({ tunnel: HTTP, identity: 'b1', publishedAt: undefined, sender: ADDRESS.ip });
    await rig.pass(1_000);
    const elsewhere = makeBase('b1', ELSEWHERE);
    rig.http.onSent = () => queueMicrotask(() => rig.vnodes.onConnectionRefused(HTTP, base.info));
    const beat = (): void =>
      rig.vnodes.onHeartbeat({ tunnel: HTTP, identity: 'b1', publishedAt: undefined }, elsewhere);
    beat();
    expect(await refused(HTTP)).toBe(1);
    await rig.pass(5_000);
    expect(rig.store.get(NODE)).toMatchObject({ life: { isRefusing: true }, place: { base: ADDRESS } });
    await rig.pass(4_000);
    beat();
    expect(await refused(HTTP)).toBe(1);
    expect(rig.store.get(NODE)?.place.base).toMatchObject(ELSEWHERE);
  });

  it('is not confused by answers to questions that its earlier process was asked', async () => {
    const base = await running(httpBase());
    const askedAt = rig.clock.now();
    await rig.pass(1);
    rig.vnodes.onConnectionRefused(HTTP, base.info);
    base.info = makeBase('b1', ELSEWHERE);
    base.answersLists = false;
    rig.heartbeat('b1');
    rig.list('b1', askedAt);
    await rig.pass(100);
    expect(rig.store.get(NODE)?.ledger.isKnown).toBe(false);
  });
});

describe('a refused connection', () => {
  it('at a place that the base has left says nothing', async () => {
    await running(httpBase());
    rig.vnodes.onConnectionRefused(HTTP, makeBase('b1', ELSEWHERE));
    rig.vnodes.onConnectionRefused(MQTT, makeBase('b1', ADDRESS));
    expect(rig.store.get(NODE)).toMatchObject({ life: { isRefusing: false } });
    expect(rig.store.get(NODE)?.ledger.isKnown).toBe(true);
  });

  it('is no sign of life, and no end of a base that still has its modules', async () => {
    const base = await running(httpBase());
    rig.vnodes.onConnectionRefused(HTTP, base.info);
    await rig.pass(30_000);
    expect(rig.podState('p1')).toBe('Running True');
    expect([rig.commands(), rig.container('p1')?.restartCount]).toEqual([[], 0]);
    base.isSilent = true;
    for (let times = 0; times < 13; times++) {
      rig.vnodes.onConnectionRefused(HTTP, base.info);
      await rig.pass(5_000);
    }
    expect(rig.store.size).toBe(0);
  });

  it('right after its heartbeat has the base asked again each second: the agent binds its port later', async () => {
    const base = rig.base('b1', { tunnel: HTTP, info: makeBase('b1', ADDRESS) });
    rig.addPod();
    const answer = rig.http.onSent;
    rig.http.onSent = () => queueMicrotask(() => rig.vnodes.onConnectionRefused(HTTP, base.info));
    rig.heartbeat('b1');
    await rig.pass(2_000);
    expect(rig.commands()).toEqual([]);
    rig.http.onSent = answer;
    await rig.pass(1_000);
    expect(rig.commands()).toEqual(['install b1 biz1:1.0.0']);
  });

  it('has the base asked each second for five seconds after a heartbeat, and then less often', async () => {
    const base = await httpBase();
    rig.http.onSent = () => queueMicrotask(() => rig.vnodes.onConnectionRefused(HTTP, base.info));
    rig.heartbeat('b1');
    base.isSilent = true;
    rig.vnodes.onConnectionRefused(HTTP, base.info);
    rig.http.take();
    await rig.pass(5_000);
    expect(rig.http.take('list')).toHaveLength(4);
    await rig.pass(20_000);
    // Its routine question, 19 s after it was met.
    expect(rig.http.take('list')).toEqual(['list b1']);
  });

  it('has the base asked again each few seconds, and not in a loop', async () => {
    const base = await running(httpBase());
    base.isSilent = true;
    rig.http.onSent = () => queueMicrotask(() => rig.vnodes.onConnectionRefused(HTTP, base.info));
    rig.http.take();
    rig.vnodes.onConnectionRefused(HTTP, base.info);
    await rig.pass(20_000);
    expect(rig.http.take('list').length).toBeLessThanOrEqual(6);
  });
});

describe('a Node', () => {
  it('tells a later process where the arklet of its base is', async () => {
    await httpBase();
    const node = rig.api.node(NODE);
    expect(node?.metadata.annotations).toMatchObject({ 'platform.koupleless.io/arklet-port': '1238' });
    rig = await rig.succeededBy(NODE);
    expect(rig.store.get(NODE)).toMatchObject({ tunnel: HTTP, place: { base: ADDRESS }, life: { wasHeard: false } });
  });
});

describe('the port of an arklet', () => {
  const shownPort = () => rig.api.node(NODE)?.metadata.annotations?.['platform.koupleless.io/arklet-port'];

  it('is shown when an arklet has answered there: a base may name the port of another one, or of a module', async () => {
    const base = await httpBase({ isSilent: true });
    rig.claim('b1', HTTP, ADDRESS);
    await rig.pass(5_000);
    expect(rig.api.node(NODE)).toBeDefined();
    expect(shownPort()).toBeUndefined();
    base.isSilent = false;
    rig.claim('b1', HTTP, ADDRESS);
    await rig.pass(20_000);
    expect(shownPort()).toBe('1238');
  });

  it('stays that of before until an arklet has answered at the new one', async () => {
    const base = await httpBase();
    expect(shownPort()).toBe('1238');
    base.isSilent = true;
    rig.vnodes.onConnectionRefused(HTTP, base.info);
    rig.claim('b1', HTTP, { ...ADDRESS, port: 8080 });
    await rig.pass(5_000);
    expect(rig.store.get(NODE)?.place.base.port).toBe(8080);
    expect(shownPort()).toBe('1238');
    Object.assign(base, { isSilent: false, info: makeBase('b1', { ...ADDRESS, port: 8080 }) });
    rig.heartbeat('b1');
    await rig.pass(10_000);
    expect(shownPort()).toBe('8080');
  });
});

describe('an address over HTTP that two identities name', () => {
  it('stays the first one’s while that is heard: nothing of it is uninstalled, and the other one gets no Node', async () => {
    await running(httpBase());
    for (let round = 0; round < 5; round++) {
      rig.claim('ghost', HTTP, ADDRESS);
      await rig.pass(12_000);
    }
    expect(rig.store.get('vnode.ghost')).toBeUndefined();
    expect(rig.api.node('vnode.ghost')).toBeUndefined();
    expect(rig.events).toContain(`Warning BaseRefused ${NODE}`);
    expect(rig.podState('p1')).toBe('Running True');
    expect([rig.commands(), rig.modulesOf('b1')]).toEqual([[], ['biz1:1.0.0 ACTIVATED']]);
  });

  it('is not spoken to between a heartbeat of the other one and the next of its own', async () => {
    await running(httpBase());
    rig.claim('ghost', HTTP, ADDRESS);
    rig.addPod({ name: 'p2', modules: ['biz2:1'] });
    await rig.pass(1_000);
    expect(rig.commands()).toEqual([]);
    rig.heartbeat('b1');
    await rig.pass(2_000);
    expect(rig.podState('p2')).toBe('Running True');
  });

  it('is spoken to while the first one goes on: more claims of the other one are only counted', async () => {
    await running(httpBase());
    for (let second = 0; second < 24; second++) {
      rig.claim('ghost', HTTP, ADDRESS);
      await rig.pass(1_000);
    }
    rig.claim('ghost', HTTP, ADDRESS);
    expect(rig.store.get(NODE)?.place.isDisplaced).toBe(false);
    rig.addPod({ name: 'p2', modules: ['biz2:1'] });
    for (let second = 0; second < 5; second++) {
      rig.claim('ghost', HTTP, ADDRESS);
      await rig.pass(1_000);
    }
    expect(rig.podState('p2')).toBe('Running True');
    expect(await refused(HTTP)).toBe(30);
  });

  it('is not spoken to when the first one has missed a heartbeat, though claims were false before', async () => {
    const base = await running(httpBase());
    rig.claim('ghost', HTTP, ADDRESS);
    await rig.pass(12_000);
    expect(rig.store.get(NODE)?.place.isDisplaced).toBe(false);
    base.isSilent = true;
    await rig.pass(15_000);
    rig.claim('ghost', HTTP, ADDRESS);
    expect(rig.store.get(NODE)?.place.isDisplaced).toBe(true);
  });

  it('is not spoken to before a base is heard there, when two Nodes tell of it', async () => {
    await httpBase();
    const node = rig.api.node(NODE);
    await rig.stop();
    rig = new CoreRig();
    for (const name of [NODE, 'vnode.b2']) {
      rig.api.put('node', { ...node, metadata: { ...node?.metadata, name, uid: name } } as never);
    }
    await rig.start();
    await rig.pass(20_000);
    expect(rig.http.take()).toEqual([]);
    rig.claim('b1', HTTP, ADDRESS);
    expect(['vnode.b1', 'vnode.b2'].map((name) => rig.store.get(name)?.place.isDisplaced)).toEqual([false, true]);
    expect(rig.http.take()).toEqual(['list b1', 'health b1']);
  });

  it('goes over to the other one when the first one is heard no more, whoever answers there', async () => {
    const base = await running(httpBase());
    base.isSilent = true;
    await rig.pass(26_000);
    rig.claim('b2', HTTP, ADDRESS);
    await rig.pass(1_000);
    expect(rig.store.get('vnode.b2')?.place.isDisplaced).toBe(false);
    expect(rig.store.get(NODE)?.place.isDisplaced).toBe(true);
    await rig.pass(40_000);
    expect(rig.api.node(NODE)).toBeUndefined();
  });
});

describe('an answer over HTTP', () => {
  const answer = (answeredBy?: string) => ({
    tunnel: HTTP as typeof HTTP,
    identity: 'b1',
    publishedAt: undefined,
    askedAt: rig.clock.now(),
    ...(answeredBy === undefined ? {} : { answeredBy }),
  });

  /** The Node of a base over HTTP, as a controller that has just started finds it; the base is silent. */
  async function adopted(): Promise<void> {
    await running(httpBase());
    const [node, pod] = [rig.api.node(NODE), rig.api.pod('p1')];
    await rig.stop();
    rig = new CoreRig();
    rig.api.put('node', node as never);
    rig.api.put('pod', pod as never);
    await rig.start();
    await rig.pass(1_000);
  }

  it('that says it is another base’s is not taken, and that address is not spoken to before the own base is heard', async () => {
    const base = await running(httpBase());
    rig.claim('b2', HTTP, ELSEWHERE);
    await rig.pass(1_000);
    base.answersLists = false;
    rig.vnodes.onModuleList(answer('b2'), makeList());
    rig.vnodes.onModuleList(answer('b2'), makeList());
    rig.addPod({ name: 'p2', modules: ['biz2:1'] });
    await rig.pass(1_000);
    expect([rig.podState('p1'), rig.commands()]).toEqual(['Running True', []]);
    base.answersLists = true;
    rig.heartbeat('b1');
    await rig.pass(6_000);
    expect(rig.podState('p2')).toBe('Running True');
  });

  it('at the address that a Node tells is taken before the first heartbeat only when it says whose it is', async () => {
    await adopted();
    rig.vnodes.onModuleList(answer(), makeList());
    rig.vnodes.onModuleList(answer('somebody-else'), makeList());
    await rig.pass(1_000);
    expect([rig.podState('p1'), rig.commands()]).toEqual(['Running True', []]);
    rig.vnodes.onModuleList(answer('b1'), makeList());
    await rig.pass(1_000);
    expect(rig.store.get(NODE)?.life.wasHeard).toBe(true);
    expect(rig.store.get(NODE)?.ledger.isKnown).toBe(true);
  });
});
