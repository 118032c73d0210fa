import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Envelope } from '../../../src/tunnel/tunnel.ts';
import { makeBase } from '../../support/builders.ts';
import { CoreRig } from '../../support/core-rig.ts';
import type { RigBase } from '../../support/rig-base.ts';

const NODE = 'vnode.b1';
const MQTT = 'mqtt_tunnel_provider';
const HTTP = 'http_tunnel_provider';
const ADDRESS = { ip: '198.51.100.1', port: 1238 };
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
    expect(rig.store.get(NODE)?.liveness).toBe('Dead');
    expect(rig.http.take()).toEqual([]);
    await rig.pass(2_000);
    expect([rig.api.node(NODE), rig.api.pod('p1')]).toEqual([undefined, undefined]);
  });

  it('from an address that only looks different is from the base', async () => {
    await rig.foundBase('b1', { tunnel: HTTP, info: makeBase('b1', { ...ADDRESS, ip: '::ffff:198.51.100.1' }) });
    rig.vnodes.onGoingDown(from(ADDRESS.ip), makeBase('b1', { ...ADDRESS, ip: '::ffff:198.51.100.1' }));
    expect(rig.store.get(NODE)?.liveness).toBe('Dead');
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
    expect(rig.store.get(NODE)?.goodbyeAt).toBeUndefined();
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
    expect(rig.store.get(NODE)).toMatchObject({ isRefusing: true, liveness: 'Reachable' });
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
  it('is not taken over HTTP right after a restart, before the base had 25 s to speak', async () => {
    await rig.foundBase('b1', { tunnel: MQTT });
    const node = rig.api.node(NODE);
    await rig.stop();
    rig = new CoreRig();
    rig.api.put('node', node as never);
    rig.tunnel.isLinkUp = false;
    rig.tunnel.brokenAt = rig.clock.now();
    await rig.start();
    rig.claim('b1', HTTP, ADDRESS);
    await rig.pass(30_000);
    rig.claim('b1', HTTP, ADDRESS);
    expect(rig.store.get(NODE)?.tunnel).toBe(MQTT);
    rig.linkUp();
    await rig.pass(24_000);
    rig.claim('b1', HTTP, ADDRESS);
    expect(rig.store.get(NODE)?.tunnel).toBe(MQTT);
    await rig.pass(2_000);
    rig.claim('b1', HTTP, ADDRESS);
    expect(rig.store.get(NODE)?.tunnel).toBe(HTTP);
  });

  it('may be taken over HTTP when the link has been down for 5 minutes', async () => {
    await rig.foundBase('b1', { tunnel: MQTT });
    rig.linkDown();
    rig.tunnel.brokenAt = rig.clock.now();
    await rig.pass(290_000);
    rig.claim('b1', HTTP, ADDRESS);
    expect(rig.store.get(NODE)?.tunnel).toBe(MQTT);
    await rig.pass(11_000);
    rig.claim('b1', HTTP, ADDRESS);
    expect(rig.store.get(NODE)?.tunnel).toBe(HTTP);
  });
});
