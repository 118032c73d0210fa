import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { NodeObject } from '../../../src/kube/objects.ts';
import type { Envelope } from '../../../src/tunnel/tunnel.ts';
import { makeBase, makeHealth } from '../../support/builders.ts';
import { CoreRig } from '../../support/core-rig.ts';
import type { RigBase } from '../../support/rig-base.ts';

const NODE = 'vnode.b1';
const MQTT = 'mqtt_tunnel_provider';
const HTTP = 'http_tunnel_provider';
const ADDRESS = { ip: '198.51.100.1', port: 1238 };
const ELSEWHERE = { ip: '198.51.100.2', port: 1238 };
const STRANGER = '203.0.113.9';
let rig: CoreRig;

beforeEach(async () => {
  rig = new CoreRig();
  await rig.start();
});

afterEach(() => rig.stop());

const from = (sender: string): Envelope => ({ tunnel: HTTP, identity: 'b1', publishedAt: undefined, sender });
const goodbye = (sender: string): void => rig.vnodes.onGoingDown(from(sender), makeBase('b1', ADDRESS));

/** A base over HTTP with one running module of Pod p1, that was not asked anything for 5 s. */
async function running(more: Partial<RigBase> = {}): Promise<RigBase> {
  const base = await rig.foundBase('b1', { tunnel: HTTP, info: makeBase('b1', ADDRESS), ...more });
  rig.addPod();
  await rig.pass(14_000);
  rig.commands();
  return base;
}

/** Nobody listens at the base's address. */
function refuse(base: RigBase): void {
  base.isSilent = true;
  rig.http.onSent = () => queueMicrotask(() => rig.vnodes.onConnectionRefused(HTTP, base.info));
}

describe('a goodbye over HTTP', () => {
  it.each([ADDRESS.ip, undefined])('from the base itself counts at once: %s', async (sender) => {
    await running();
    rig.http.take();
    rig.vnodes.onGoingDown({ ...from(''), ...{ sender } } as Envelope, makeBase('b1', ADDRESS));
    expect(rig.store.get(NODE)?.life.liveness).toBe('Dead');
    expect(rig.http.take()).toEqual([]);
    await rig.pass(2_000);
    expect([rig.api.node(NODE), rig.api.pod('p1')]).toEqual([undefined, undefined]);
  });

  it('from an address that only looks different is from the base', async () => {
    await rig.foundBase('b1', { tunnel: HTTP, info: makeBase('b1', { ...ADDRESS, ip: '::ffff:198.51.100.1' }) });
    rig.vnodes.onGoingDown(from(ADDRESS.ip), makeBase('b1', { ...ADDRESS, ip: '::ffff:198.51.100.1' }));
    expect(rig.store.get(NODE)?.life.liveness).toBe('Dead');
  });

  it('from elsewhere is refuted by an answer, however often it comes, and keeps the owner in', async () => {
    await running();
    const uid = rig.api.node(NODE)?.metadata.uid;
    for (let times = 0; times < 20; times++) {
      goodbye(STRANGER);
      await rig.pass(1_000);
    }
    expect(rig.podState('p1')).toBe('Running True');
    expect(rig.api.node(NODE)?.metadata.uid).toBe(uid);
    expect(rig.store.get(NODE)?.proof.goodbyeAt).toBeUndefined();
    expect(rig.commands()).toEqual([]);
  });

  it('from elsewhere has the base asked every 5 s at most', async () => {
    const base = await running();
    base.answersHealth = false;
    rig.http.take();
    for (let times = 0; times < 200; times++) {
      goodbye(STRANGER);
      await rig.pass(100);
    }
    expect(rig.http.take('health').length).toBeLessThanOrEqual(5);
  });

  it('from elsewhere is confirmed by a refused connection', async () => {
    refuse(await running());
    goodbye(STRANGER);
    await rig.pass(1_000);
    expect([rig.api.node(NODE), rig.api.pod('p1')]).toEqual([undefined, undefined]);
  });

  it('right after a question has the base asked 5 s later', async () => {
    const base = await running();
    rig.http.take();
    rig.vnodes.onBaselineQuery(from(STRANGER));
    await rig.pass(10);
    refuse(base);
    goodbye(STRANGER);
    await rig.pass(3_000);
    expect(rig.api.node(NODE)).toBeDefined();
    await rig.pass(4_000);
    expect(rig.api.node(NODE)).toBeUndefined();
  });

  it('from elsewhere is forgotten when neither comes: a refusal much later is another matter', async () => {
    const base = await running();
    base.isSilent = true;
    goodbye(STRANGER);
    await rig.pass(15_000);
    rig.vnodes.onConnectionRefused(HTTP, base.info);
    await rig.pass(1_000);
    expect(rig.store.get(NODE)).toMatchObject({ life: { isRefusing: true, liveness: 'Reachable' } });
  });
});

describe('a question for the baseline over HTTP', () => {
  it('repeats no command in work, and has the base asked every 5 s at most', async () => {
    await rig.foundBase('b1', { tunnel: HTTP, info: makeBase('b1', ADDRESS), answersCommands: false });
    rig.addPod();
    await rig.pass(6_000);
    expect(rig.commands()).toEqual(['install b1 biz1:1.0.0']);
    for (const sender of [STRANGER, ADDRESS.ip]) {
      for (let times = 0; times < 10; times++) {
        rig.vnodes.onBaselineQuery(from(sender));
        await rig.pass(1_000);
      }
    }
    const sent = rig.http.take();
    expect(sent.filter((line) => line.startsWith('install'))).toEqual([]);
    expect(sent.filter((line) => line.startsWith('health')).length).toBeLessThanOrEqual(6);
    expect(rig.events.filter((event) => event.includes('Rebooted'))).toEqual([]);
  });

  it('has no base asked that is reached over MQTT', async () => {
    await rig.foundBase('b1', { tunnel: MQTT, info: makeBase('b1', ADDRESS) });
    await rig.pass(6_000);
    rig.http.take();
    rig.tunnel.take();
    rig.vnodes.onBaselineQuery(from(STRANGER));
    expect([...rig.http.take(), ...rig.tunnel.take()]).toEqual([]);
  });

  it('of a new process has its modules installed again, as its age shows', async () => {
    const base = await running();
    base.modules.clear();
    base.startedAt = rig.clock.now();
    rig.vnodes.onBaselineQuery(from(STRANGER));
    await rig.pass(1_000);
    expect(rig.commands()).toEqual(['install b1 biz1:1.0.0']);
    expect(rig.container('p1')).toMatchObject({ restartCount: 1, ready: true });
  });

  it('within 5 s of another question is not forgotten', async () => {
    const base = await running();
    rig.vnodes.onBaselineQuery(from(ADDRESS.ip));
    await rig.pass(1_000);
    base.modules.clear();
    base.startedAt = rig.clock.now();
    rig.vnodes.onBaselineQuery(from(ADDRESS.ip));
    await rig.pass(6_000);
    expect(rig.commands()).toEqual(['install b1 biz1:1.0.0']);
  });

  it('within 5 s of another question does not wait until a burst is over, either', async () => {
    const base = await running();
    rig.traffic.isCalm = false;
    rig.addPod({ name: 'p2', modules: ['biz2:1.0.0'] });
    await rig.pass(6_000);
    rig.vnodes.onBaselineQuery(from(ADDRESS.ip));
    await rig.pass(1_000);
    base.modules.clear();
    base.startedAt = rig.clock.now();
    rig.commands();
    rig.vnodes.onBaselineQuery(from(ADDRESS.ip));
    await rig.pass(6_000);
    expect(rig.commands()).toEqual(['install b1 biz1:1.0.0', 'install b1 biz2:1.0.0']);
  });

  it('is no sign of life', async () => {
    const base = await running();
    base.isSilent = true;
    for (let times = 0; times < 27; times++) {
      rig.vnodes.onBaselineQuery(from(ADDRESS.ip));
      await rig.pass(1_000);
    }
    expect(rig.condition(NODE, 'Ready')).toBe('False BaseUnreachable');
  });
});

describe('an identity that a Node says is over MQTT', () => {
  const isTaken = (): boolean => rig.store.get(NODE)?.tunnel === HTTP;

  /** Another base says each second over HTTP that it is this one. */
  async function claimFor(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      rig.claim('b1', HTTP, ADDRESS);
      await rig.pass(1_000);
      if (isTaken()) return;
    }
  }

  it('is never taken over HTTP, also right after a restart, however silent the base is', async () => {
    await rig.foundBase('b1', { tunnel: MQTT });
    const uid = rig.api.node(NODE)?.metadata.uid;
    const node = rig.api.node(NODE);
    await rig.stop();
    rig = new CoreRig();
    rig.api.put('node', node as never);
    rig.tunnel.isLinkUp = false;
    rig.tunnel.brokenAt = rig.clock.now();
    await rig.start();
    await claimFor(30);
    expect(isTaken()).toBe(false);
    rig.linkUp();
    await claimFor(50);
    expect(isTaken()).toBe(false);
    expect(rig.api.node(NODE)?.metadata.uid).toBe(uid);
    expect(rig.eventTexts.join()).toContain('is refused while its Node is one of mqtt_tunnel_provider');
  });

  it('has another Node over HTTP when its own was deleted for its silence, until it is heard over MQTT again', async () => {
    const base = await rig.foundBase('b1', { tunnel: MQTT });
    const uid = rig.api.node(NODE)?.metadata.uid;
    base.isSilent = true;
    await claimFor(59);
    expect(isTaken()).toBe(false);
    await claimFor(10);
    await rig.pass(2_000);
    expect(isTaken()).toBe(true);
    expect(rig.api.node(NODE)?.metadata.uid).not.toBe(uid);
    rig.claim('b1', HTTP, ADDRESS);
    base.isSilent = false;
    rig.heartbeat('b1');
    expect(isTaken()).toBe(false);
    await claimFor(60);
    expect(isTaken()).toBe(false);
    expect(rig.api.node(NODE)?.metadata.labels?.['vnode.koupleless.io/tunnel']).toBe(MQTT);
  });

  it('is taken back at once however often the one over HTTP has moved', async () => {
    const elsewhere = (port: number) => ({ ...ADDRESS, port });
    for (let port = 1; port < 20; port++) {
      rig.claim('b1', HTTP, elsewhere(port));
      rig.vnodes.onConnectionRefused(HTTP, { identity: 'b1', ...elsewhere(port) });
    }
    rig.base('b1', { tunnel: MQTT });
    rig.heartbeat('b1');
    expect(rig.store.get(NODE)?.tunnel).toBe(MQTT);
  });

  it('is not kept back by a stranger over HTTP who does not answer, when all new bases have to', async () => {
    await rig.stop();
    rig = new CoreRig({ newBases: { newBasesPerMinute: 0 } });
    await rig.start();
    rig.http.onSent = () => {};
    rig.claim('b1', HTTP, ADDRESS);
    rig.base('b1', { tunnel: MQTT });
    rig.claim('b1', HTTP, ADDRESS);
    rig.heartbeat('b1');
    rig.claim('b1', HTTP, ADDRESS);
    await rig.pass(1_000);
    expect(rig.store.get(NODE)?.tunnel).toBe(MQTT);
  });

  it('is not taken over MQTT from a base over HTTP where the broker lets anybody in', async () => {
    rig.tunnel.provesIdentity = false;
    rig.claim('b1', HTTP, ADDRESS);
    await rig.pass(1_000);
    for (let second = 0; second < 50; second++) {
      rig.claim('b1', MQTT);
      await rig.pass(1_000);
    }
    expect(isTaken()).toBe(true);
  });
});

describe('a heartbeat over HTTP from another address than the base’s', () => {
  const hint = (more: object = {}, sender = STRANGER): void =>
    rig.vnodes.onHeartbeat(from(sender), makeBase('b1', { ...ADDRESS, ...more }));
  /** A base whose posts come through a sidecar, SNAT or a proxy. */
  const behindProxy = (more: Partial<RigBase> = {}): Promise<RigBase> => running({ sender: STRANGER, ...more });

  it('makes a Node when the base answers with this identity', async () => {
    await behindProxy();
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
    expect(rig.podState('p1')).toBe('Running True');
    expect(rig.store.get(NODE)?.life.lastBeatAt).toBeUndefined();
  });

  it('makes no Node when nobody answers', async () => {
    for (let times = 0; times < 5; times++) {
      hint();
      await rig.pass(12_000);
    }
    expect([rig.store.size, rig.api.node(NODE)]).toEqual([0, undefined]);
  });

  it.each([
    ['no identity', undefined, ADDRESS],
    ['another identity', 'b2', ADDRESS],
    ['its identity, at another port', 'b1', { ...ADDRESS, port: 1239 }],
  ])('makes no Node when the answer names %s', async (_, answeredBy, place) => {
    hint();
    const named = answeredBy === undefined ? {} : { answeredBy };
    const envelope = { tunnel: HTTP, identity: 'b1', publishedAt: undefined, askedAt: rig.clock.now(), place } as const;
    rig.vnodes.onHealth({ ...envelope, ...named }, makeHealth());
    await rig.pass(1_000);
    expect(rig.store.size).toBe(0);
  });

  it('makes no Node when the answer is from another address than it names', async () => {
    rig.base('b1', { tunnel: HTTP, info: makeBase('b1', ELSEWHERE), sender: STRANGER });
    hint();
    await rig.pass(5_000);
    expect(rig.store.size).toBe(0);
  });

  it('is asked about each second after a refused connection: the agent binds its port later', async () => {
    const base = rig.base('b1', { tunnel: HTTP, info: makeBase('b1', ADDRESS), sender: STRANGER });
    const answer = rig.http.onSent;
    rig.http.onSent = () => queueMicrotask(() => rig.vnodes.onConnectionRefused(HTTP, base.info));
    hint();
    await rig.pass(2_500);
    expect(rig.store.size).toBe(0);
    rig.http.onSent = answer;
    await rig.pass(1_500);
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
  });

  it('is asked about for 5 s after it when connections are refused', async () => {
    const askedAt: number[] = [];
    const heardAt = rig.clock.now();
    rig.http.onSent = () => {
      askedAt.push(rig.clock.now() - heardAt);
      queueMicrotask(() => rig.vnodes.onConnectionRefused(HTTP, makeBase('b1', ADDRESS)));
    };
    hint();
    await rig.pass(11_000);
    expect(askedAt).toEqual([0, 1_000, 2_000, 3_000, 4_000]);
  });

  it('keeps a base for as long as it answers: it is asked about every 15 s, and its Pods are left alone', async () => {
    await behindProxy();
    rig.http.take();
    const enqueued = vi.spyOn(rig.pods, 'enqueue');
    await rig.pass(180_000);
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
    const sent = rig.http.take();
    const asked = sent.filter((line) => line.startsWith('health')).length;
    expect(asked).toBeGreaterThanOrEqual(10);
    expect(asked).toBeLessThanOrEqual(14);
    // Only lists are a reason to look at Pods.
    expect(enqueued.mock.calls.length).toBeLessThanOrEqual(sent.length - asked);
  });

  it('changes what is said of such a base once in 10 s', async () => {
    await behindProxy();
    const names = ['first', 'second', 'third'].map((name) => {
      hint({ name });
      return rig.store.get(NODE)?.place.base.name;
    });
    expect(names).toEqual(['first', 'first', 'first']);
    rig.clock.skip(10_000);
    hint({ name: 'fourth' });
    expect(rig.store.get(NODE)?.place.base.name).toBe('fourth');
  });

  it('has a base asked again that did not answer once', async () => {
    const base = await behindProxy();
    await rig.pass(30_000);
    base.answersHealth = false;
    rig.http.take();
    const heardAt = rig.store.get(NODE)?.life.lastHeardAt ?? 0;
    await rig.pass(heardAt + 18_000 - rig.clock.now());
    base.answersHealth = true;
    await rig.pass(4_000);
    expect(rig.store.get(NODE)?.life.lastHeardAt).toBeGreaterThan(heardAt);
    await rig.pass(10_000);
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
  });

  it.each([
    [5_000, []],
    [6_000, ['health b1']],
  ])('has a base asked again for less than 15 s: one that comes %i ms after the last answer', async (ms, asked) => {
    const base = await behindProxy();
    await rig.pass(30_000);
    base.isSilent = true;
    const heardAt = rig.store.get(NODE)?.life.lastHeardAt ?? 0;
    await rig.pass(heardAt + ms - rig.clock.now());
    hint();
    await rig.pass(heardAt + 19_000 - rig.clock.now());
    rig.http.take();
    await rig.pass(1_000);
    expect(rig.http.take('health')).toEqual(asked);
  });

  it('has a base asked at once when it comes at an odd moment: it may be another process', async () => {
    const base = await behindProxy();
    await rig.pass(26_000);
    base.modules.clear();
    base.startedAt = rig.clock.now();
    rig.heartbeat('b1');
    await rig.pass(100);
    expect(rig.commands()).toEqual(['install b1 biz1:1.0.0']);
  });

  it('has a base asked that was silent and may answer again', async () => {
    const base = await behindProxy();
    Object.assign(base, { answersHealth: false, answersLists: false });
    await rig.pass(30_000);
    expect(rig.condition(NODE, 'Ready')).toBe('False BaseUnreachable');
    Object.assign(base, { answersHealth: true, answersLists: true });
    await rig.pass(13_000);
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
  });

  it('is no reason to ask a base whose own heartbeats come, and changes nothing of it', async () => {
    await running();
    rig.http.take();
    for (let times = 0; times < 50; times++) {
      hint({ name: 'forged' });
      await rig.pass(1_000);
    }
    expect(rig.store.get(NODE)?.place.base.name).not.toBe('forged');
    expect(rig.http.take('health').length).toBeLessThanOrEqual(1);
  });

  it.each([true, false])(
    'does not keep a dead base Ready, nor its Node, however often it is forged: %s',
    async (answersCommands) => {
      const base = await running({ answersCommands });
      const named = { answeredBy: 'b1', askedAt: rig.clock.now(), place: ADDRESS };
      rig.vnodes.onHealth({ ...rig.envelope('b1'), ...named }, makeHealth());
      base.isSilent = true;
      for (let times = 0; times < 30; times++) {
        hint({ name: 'forged' });
        await rig.pass(1_000);
      }
      expect(rig.condition(NODE, 'Ready')).toBe('False BaseUnreachable');
      expect(rig.store.get(NODE)?.place.base.name).not.toBe('forged');
      for (let times = 0; times < 45; times++) {
        hint({ name: 'forged' });
        await rig.pass(1_000);
      }
      expect(rig.api.node(NODE)).toBeUndefined();
    },
  );

  it('does not keep a dead base Ready that lived by its answers', async () => {
    const base = await behindProxy();
    await rig.pass(60_000);
    base.isSilent = true;
    for (let times = 0; times < 27; times++) {
      hint();
      await rig.pass(1_000);
    }
    expect(rig.condition(NODE, 'Ready')).toBe('False BaseUnreachable');
  });

  it('keeps a base whose threads are all in our commands', async () => {
    const base = await running({ sender: STRANGER, answersCommands: false });
    base.answersHealth = false;
    base.answersLists = false;
    await rig.pass(120_000);
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
    expect(rig.store.get(NODE)?.ledger.hasOpenCommand).toBe(true);
  });

  it('moves no base, and displaces none, without an answer from there', async () => {
    await running();
    for (let times = 0; times < 4; times++) {
      hint(ELSEWHERE);
      rig.vnodes.onHeartbeat({ ...from(STRANGER), identity: 'ghost' }, makeBase('ghost', ADDRESS));
      await rig.pass(10_000);
    }
    expect(rig.store.get(NODE)).toMatchObject({ place: { base: ADDRESS, isDisplaced: false } });
    expect(rig.store.size).toBe(1);
    expect(rig.podState('p1')).toBe('Running True');
  });

  it('moves a base that is silent at its former address and answers at the new one', async () => {
    const base = await behindProxy();
    base.isSilent = true;
    await rig.pass(26_000);
    Object.assign(base, { isSilent: false, info: makeBase('b1', ELSEWHERE) });
    rig.heartbeat('b1');
    await rig.pass(1_000);
    expect(rig.store.get(NODE)).toMatchObject({ place: { base: ELSEWHERE } });
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
  });

  it('moves a base at once that answers elsewhere, when another base was heard at its former address', async () => {
    const base = await behindProxy();
    rig.claim('b2', HTTP, ADDRESS);
    expect(rig.store.get(NODE)?.place.isDisplaced).toBe(true);
    base.info = makeBase('b1', ELSEWHERE);
    rig.heartbeat('b1');
    await rig.pass(1_000);
    expect(rig.store.get(NODE)).toMatchObject({ place: { base: ELSEWHERE, isDisplaced: false } });
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
  });

  it('has a Node of an earlier process asked at once', async () => {
    const base = await behindProxy();
    rig = await rig.succeededBy(NODE);
    rig.base('b1', { tunnel: HTTP, info: base.info, sender: STRANGER });
    rig.heartbeat('b1');
    await rig.pass(500);
    expect(rig.store.get(NODE)?.life.wasHeard).toBe(true);
  });

  describe('for a base that was known from its Node, and whose own may not have come yet,', () => {
    const answer = (): void => {
      const named = { answeredBy: 'b1', askedAt: rig.clock.now(), place: ADDRESS };
      rig.vnodes.onHealth({ ...from(ADDRESS.ip), ...named }, makeHealth());
    };

    beforeEach(async () => {
      await running();
      rig = await rig.succeededBy(NODE);
    });

    it('changes nothing, though it answers, and then answers no more', async () => {
      for (let times = 0; times < 40; times++) {
        if (times < 20) answer();
        hint({ name: 'forged' });
        await rig.pass(1_000);
      }
      expect(rig.store.get(NODE)?.place.base.name).not.toBe('forged');
    });

    it('changes what is said of it when it answers 25 s later, and none has come', async () => {
      for (let times = 0; times < 27; times++) {
        answer();
        hint({ name: 'renamed' });
        await rig.pass(1_000);
      }
      expect(rig.store.get(NODE)?.place.base.name).toBe('renamed');
    });
  });

  it('tells of what a base that answers says of itself now', async () => {
    const base = await behindProxy();
    base.info = makeBase('b1', { ...ADDRESS, version: '9.9.9' });
    rig.heartbeat('b1');
    await rig.pass(1_000);
    expect(rig.api.node(NODE)?.metadata.labels?.['vnode.koupleless.io/version']).toBe('9.9.9');
  });

  it('costs 100 questions at once and 50 a second at most, and room for 1000 bases', async () => {
    for (let index = 0; index < 3_000; index++) {
      const identity = `x${index}`;
      rig.vnodes.onHeartbeat({ ...from(STRANGER), identity }, makeBase(identity, ADDRESS));
    }
    expect(rig.http.take('health')).toHaveLength(100);
    expect(rig.candidates.size).toBe(1_000);
    await rig.pass(26_000);
    expect(rig.candidates.size).toBe(0);
  });
});

describe('a heartbeat from elsewhere for a base that another replica leads', () => {
  const OTHER = { id: 'other', nonce: 'other#0', address: undefined, tunnels: [HTTP], isLeaving: false } as const;
  const hint = (): void => rig.vnodes.onHeartbeat(from(STRANGER), makeBase('b1', ADDRESS));

  /** The base's Node, as its leader wrote it, and half a minute of heartbeats that prove nothing. */
  async function following(isReady: boolean): Promise<void> {
    const base = await running({ sender: STRANGER });
    if (!isReady) {
      base.isSilent = true;
      await rig.pass(30_000);
    }
    const node = rig.api.node(NODE);
    await rig.stop();
    rig = new CoreRig({ isCluster: true });
    rig.membership.others = [OTHER];
    const labels = { 'virtual-kubelet.koupleless.io/env': 'dev' };
    const metadata = { name: NODE, namespace: 'kube-node-lease', labels };
    const spec = { holderIdentity: 'other', leaseTransitions: 1, renewTime: '2026-01-01T00:00:00.000000Z' };
    rig.api.put('lease', { metadata, spec } as never);
    rig.api.put('node', node as never);
    await rig.start();
    for (let times = 0; times < 30; times++) {
      hint();
      await rig.pass(1_000);
    }
    expect(rig.leases.isHeld(NODE)).toBe(false);
  }

  async function takeOver(): Promise<void> {
    rig.membership.gone.add('other');
    rig.membership.others = [];
    await rig.pass(3_000);
    expect(rig.leases.isHeld(NODE)).toBe(true);
  }

  it('keeps it in view, and has nobody asked', async () => {
    await following(true);
    expect(rig.store.get(NODE)?.life.liveness).toBe('Reachable');
    expect(rig.http.take()).toEqual([]);
  });

  it.each([
    [true, 0, 'True KubeletReady'],
    [true, 15_000, 'False BaseUnreachable'],
    [false, 0, 'False BaseUnreachable'],
    [false, 15_000, 'False BaseUnreachable'],
  ])('is no proof for the next leader: Node Ready %s, %i ms after the change', async (isReady, laterMs, condition) => {
    await following(isReady);
    await takeOver();
    for (let ms = 0; ms < laterMs; ms += 1_000) {
      hint();
      await rig.pass(1_000);
    }
    expect(rig.condition(NODE, 'Ready')).toBe(condition);
  });

  it('is no proof for the next leader either when the Node is gone', async () => {
    await following(true);
    rig.api.drop('node', NODE);
    await takeOver();
    expect(rig.store.get(NODE)?.life.liveness).toBe('Unreachable');
  });

  it('has a base that nobody leads asked by every replica that hears it', async () => {
    await rig.stop();
    rig = new CoreRig({ isCluster: true });
    await rig.start();
    rig.base('b1', { tunnel: HTTP, info: makeBase('b1', ADDRESS), sender: STRANGER });
    hint();
    await rig.pass(2_000);
    expect(rig.store.get(NODE)?.life.wasHeard).toBe(true);
  });
});

describe('a base that posts to a replica that does not lead it', () => {
  const OTHER = { id: 'other', nonce: 'other#0', address: undefined, tunnels: [HTTP], isLeaving: false } as const;

  it('keeps its place there while its leader has no answer yet, and so shows no port in the Node', async () => {
    await running();
    const shown = rig.api.node(NODE) as NodeObject;
    const { 'platform.koupleless.io/arklet-port': port, ...annotations } = shown.metadata.annotations ?? {};
    expect(port).toBe(String(ADDRESS.port));
    const unanswered = { ...shown, metadata: { ...shown.metadata, annotations } };
    await rig.stop();
    rig = new CoreRig({ isCluster: true });
    rig.membership.others = [OTHER];
    const labels = { 'virtual-kubelet.koupleless.io/env': 'dev' };
    const metadata = { name: NODE, namespace: 'kube-node-lease', labels };
    const spec = { holderIdentity: 'other', leaseTransitions: 1, renewTime: '2026-01-01T00:00:00.000000Z' };
    rig.api.put('lease', { metadata, spec } as never);
    rig.api.put('node', unanswered as never);
    await rig.start();
    rig.vnodes.onHeartbeat(from(ADDRESS.ip), makeBase('b1', ADDRESS));
    await rig.pass(1_000);
    expect(rig.leases.isHeld(NODE)).toBe(false);
    const told = {
      ...unanswered,
      metadata: { ...unanswered.metadata, labels: { ...shown.metadata.labels, told: 'x' } },
    };
    rig.api.put('node', told as never);
    await rig.pass(1_000);
    expect(rig.store.get(NODE)?.place.base).toMatchObject(ADDRESS);
  });
});
