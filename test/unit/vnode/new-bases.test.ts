import pino from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeBase, makeHealth } from '../../support/builders.ts';
import { CoreRig, type CoreRigOptions } from '../../support/core-rig.ts';

const HTTP = 'http_tunnel_provider';
const ADDRESS = { ip: '198.51.100.200', port: 1238 };
let rig: CoreRig;

async function start(options: CoreRigOptions): Promise<void> {
  rig = new CoreRig(options);
  await rig.start();
}

beforeEach(() => start({ newBases: { newBasesPerMinute: 2 } }));
afterEach(() => rig.stop());

const refused = async (reason: string): Promise<number | undefined> =>
  (await rig.metrics.newBasesRefused.get()).values.find(({ labels }) => labels.reason === reason)?.value;
const nodeOf = (identity: string) => rig.api.node(`vnode.${identity}`);
const questions = (): string[] => rig.http.take('health');

/** As many as come without a question. */
async function exhaustRate(): Promise<void> {
  for (const identity of ['b1', 'b2']) await rig.foundBase(identity);
}

/** A heartbeat over HTTP that came from `source`. */
function beat(identity: string, source: string, place = ADDRESS): void {
  const envelope = { tunnel: HTTP, identity, publishedAt: undefined, source } as const;
  rig.vnodes.onHeartbeat(envelope, makeBase(identity, place));
}

/** A base and its Node as another process leaves them. */
async function nodeOfAnother() {
  await rig.foundBase('b1');
  const node = nodeOf('b1');
  await rig.stop();
  return { base: 'b1', node };
}

describe('while few bases come', () => {
  it('each gets its Node, also one that answers nothing', async () => {
    await rig.foundBase('b1', { answersHealth: false, answersLists: false });
    await rig.pass(1_000);
    expect(rig.condition('vnode.b1', 'Ready')).toBe('True KubeletReady');
  });

  it('again, a minute after many came', async () => {
    await exhaustRate();
    rig.claim('b3', 'mqtt_tunnel_provider');
    await rig.pass(60_000);
    await rig.foundBase('b4', { answersHealth: false });
    await rig.pass(1_000);
    expect(nodeOf('b4')).toBeDefined();
  });
});

describe('above the rate of new bases', () => {
  beforeEach(exhaustRate);

  it('a base that answers gets its Node as fast as before', async () => {
    await rig.foundBase('b3');
    expect(rig.condition('vnode.b3', 'Ready')).toBe('True KubeletReady');
    expect(rig.store.unproven.size).toBe(0);
  });

  it('one that does not answer gets no Lease and no Node, and is forgotten', async () => {
    const base = rig.base('b3', { answersHealth: false });
    rig.tunnel.take();
    rig.heartbeat('b3');
    await rig.pass(2_000);
    expect(rig.tunnel.take().filter((line) => line.endsWith('b3'))).toEqual(['health b3']);
    expect([rig.store.senderOf('b3'), rig.store.size, nodeOf('b3')]).toEqual(['Asked', 2, undefined]);
    expect(rig.leases.heldNames()).toEqual(['vnode.b1', 'vnode.b2']);
    base.isSilent = true;
    await rig.pass(26_000);
    expect(rig.store.senderOf('b3')).toBe('Unknown');
    expect(await refused('NoAnswer')).toBe(1);
  });

  it('a flood that goes on makes no Node now and then', async () => {
    for (let time = 0; time < 30; time++) {
      rig.claim(`false-${time}`, 'mqtt_tunnel_provider');
      rig.claim(`more-${time}`, 'mqtt_tunnel_provider');
      await rig.pass(10_000);
    }
    expect(rig.events.filter((event) => /Starting vnode\.(false|more)/.test(event))).toEqual([]);
  });

  it('an answer that nobody asked for, or that names another base, proves nothing', async () => {
    rig.vnodes.onHealth(
      { tunnel: HTTP, identity: 'b3', publishedAt: undefined, askedAt: rig.clock.now() },
      makeHealth(),
    );
    expect(rig.store.size).toBe(2);
    beat('b3', '192.0.2.1');
    const askedAt = rig.clock.now();
    const answer = { tunnel: HTTP, identity: 'b3', publishedAt: undefined } as const;
    rig.vnodes.onHealth({ ...answer, askedAt, answeredBy: 'b1' }, makeHealth());
    rig.vnodes.onHealth({ ...answer, askedAt: askedAt - 1, answeredBy: 'b3' }, makeHealth());
    rig.vnodes.onHealth({ ...answer, tunnel: 'mqtt_tunnel_provider' }, makeHealth());
    expect(rig.store.size).toBe(2);
    rig.vnodes.onHealth({ ...answer, askedAt, answeredBy: 'b3' }, makeHealth());
    expect(rig.store.get('vnode.b3')).toMatchObject({
      tunnel: HTTP,
      place: { base: ADDRESS },
      life: { wasHeard: true },
    });
  });

  it('an answer is that of the address that was asked, not of one that somebody names meanwhile', () => {
    beat('b3', '192.0.2.1');
    beat('b3', '192.0.2.9', { ip: '198.51.100.66', port: 1 });
    const answer = { tunnel: HTTP, identity: 'b3', publishedAt: undefined, askedAt: rig.clock.now() } as const;
    rig.vnodes.onHealth({ ...answer, answeredBy: 'b3' }, makeHealth());
    expect(rig.store.get('vnode.b3')?.place.base).toMatchObject(ADDRESS);
  });

  it('a base whose port is not bound yet is asked again each second', async () => {
    rig.http.refuses = 'health b3';
    const base = rig.base('b3', { tunnel: HTTP });
    rig.heartbeat('b3');
    await rig.pass(2_500);
    expect(questions().length).toBeGreaterThanOrEqual(3);
    expect(base.isSilent).toBe(false);
    rig.http.refuses = undefined;
    await rig.pass(2_000);
    expect(rig.condition('vnode.b3', 'Ready')).toBe('True KubeletReady');
  });

  it('one address gets 512 questions without an answer, and others are asked all the same', async () => {
    for (let index = 0; index < 2_000; index++)
      beat(`false-${index}`, '192.0.2.1', { ip: '198.51.100.9', port: index });
    expect(questions()).toHaveLength(512);
    expect(await refused('Questions')).toBe(2_000 - 512);
    beat('honest', '192.0.2.2');
    expect(questions()).toEqual(['health honest']);
    await rig.pass(1_000);
    for (let index = 0; index < 100; index++) beat(`new-${index}`, '192.0.2.1', { ip: '198.51.100.9', port: index });
    expect(questions()).toHaveLength(5);
  });

  it.each([
    ['HTTP', HTTP, 4_000, 100],
    ['MQTT', 'mqtt_tunnel_provider', 5_000, 500],
  ] as const)('all together get %s questions without an answer: %s, then %d', async (_, tunnel, burst, perSecond) => {
    const asked = tunnel === HTTP ? rig.http : rig.tunnel;
    const beatOfMany = (prefix: string): number => {
      asked.take();
      for (let index = 0; index < 6_000; index++) rig.claim(`${prefix}-${index}`, tunnel);
      return asked.take('health').length;
    };
    expect(beatOfMany('false')).toBe(burst);
    rig.clock.skip(1_000);
    expect(beatOfMany('more')).toBe(perSecond);
  });

  it('an answer gives its question back', async () => {
    for (let index = 0; index < 1_000; index++) {
      const identity = `honest-${index}`;
      beat(identity, '192.0.2.1', { ip: '198.51.100.9', port: index + 1 });
      const answer = { tunnel: HTTP, identity, publishedAt: undefined, askedAt: rig.clock.now() } as const;
      rig.vnodes.onHealth({ ...answer, answeredBy: identity }, makeHealth());
    }
    expect(rig.store.size).toBe(1_002);
  });

  it('a base that goes down is asked no more', async () => {
    beat('b3', '192.0.2.1');
    const envelope = { tunnel: HTTP, identity: 'b3', publishedAt: undefined } as const;
    rig.vnodes.onGoingDown(envelope, makeBase('b3', ADDRESS));
    expect(rig.store.senderOf('b3')).toBe('Unknown');
  });

  it('a goodbye for it from elsewhere, or for another address, changes nothing', () => {
    beat('b3', '192.0.2.1');
    const envelope = { tunnel: HTTP, identity: 'b3', publishedAt: undefined } as const;
    rig.vnodes.onGoingDown({ ...envelope, sender: '203.0.113.9' }, makeBase('b3', ADDRESS));
    const other = { ip: '203.0.113.9', port: 1 };
    rig.vnodes.onGoingDown({ ...envelope, sender: other.ip }, makeBase('b3', other));
    expect(rig.store.senderOf('b3')).toBe('Asked');
  });

  it('a base of which only others tell has answered already, and is not asked twice', () => {
    const envelope = { tunnel: HTTP, identity: 'b3', publishedAt: undefined } as const;
    rig.vnodes.onHeartbeat({ ...envelope, sender: '203.0.113.9' }, makeBase('b3', ADDRESS));
    expect(rig.store.get('vnode.b3')).toBeUndefined();
    const answer = { ...envelope, askedAt: rig.clock.now(), answeredBy: 'b3', place: ADDRESS };
    rig.clock.skip(5);
    rig.vnodes.onHealth(answer, makeHealth());
    expect(rig.store.get('vnode.b3')).toMatchObject({ place: { base: ADDRESS }, life: { wasHeard: true } });
    expect(rig.store.unproven.size).toBe(0);
  });

  it('no more than 8,000 wait for an answer', () => {
    for (let index = 0; index < 9_000; index++) {
      rig.clock.skip(3);
      rig.claim(`false-${index}`, 'mqtt_tunnel_provider');
    }
    expect(rig.store.unproven.size).toBe(8_000);
    expect([rig.store.senderOf('false-0'), rig.store.senderOf('false-8999')]).toEqual(['Unknown', 'Asked']);
  });
});

describe('limits', () => {
  it('MAX_VNODES holds for what is found, and a base that was refused gets its Node when there is room', async () => {
    await rig.stop();
    await start({ newBases: { maxVNodes: 2 } });
    const [first] = [await rig.foundBase('b1'), await rig.foundBase('b2'), await rig.foundBase('b3')];
    expect([rig.store.size, nodeOf('b3'), await refused('VNodes')]).toEqual([2, undefined, 1]);
    first.isSilent = true;
    await rig.pass(75_000);
    expect([nodeOf('b1'), rig.condition('vnode.b3', 'Ready')]).toEqual([undefined, 'True KubeletReady']);
  });

  it('MAX_NEW_NODES_PER_MINUTE holds, and the rest gets Nodes at later heartbeats', async () => {
    await rig.stop();
    await start({ newBases: { newNodesPerMinute: 3 } });
    for (let index = 1; index <= 5; index++) await rig.foundBase(`b${index}`);
    expect(rig.store.size).toBe(3);
    expect(await refused('Rate')).toBeGreaterThan(0);
    await rig.pass(60_000);
    expect(rig.store.size).toBe(5);
  });

  it('a base that goes down and comes back gets five Nodes at once, then one every 15 s, and takes none of others', async () => {
    await rig.stop();
    await start({ newBases: { newNodesPerMinute: 10 } });
    const envelope = { tunnel: HTTP, identity: 'b1', publishedAt: undefined } as const;
    const comeAndGo = async (): Promise<boolean> => {
      rig.vnodes.onHeartbeat(envelope, makeBase('b1', ADDRESS));
      const isThere = rig.store.get('vnode.b1') !== undefined;
      rig.vnodes.onGoingDown(envelope, makeBase('b1', ADDRESS));
      await rig.pass(100);
      expect(rig.store.get('vnode.b1')).toBeUndefined();
      return isThere;
    };
    const came: boolean[] = [];
    for (let time = 0; time < 20; time++) came.push(await comeAndGo());
    expect(came).toEqual(came.map((_, time) => time < 5));
    expect(await refused('Flapping')).toBe(15);
    await rig.pass(13_000);
    expect([await comeAndGo(), await comeAndGo()]).toEqual([true, false]);
    await rig.foundBase('b2');
    expect(nodeOf('b2')).toBeDefined();
  });
});

it('a base whose Node another replica has made needs no answer any more', async () => {
  const { base, node } = await nodeOfAnother();
  await start({ isCluster: true, newBases: { newBasesPerMinute: 0 } });
  rig.claim(base, 'mqtt_tunnel_provider');
  expect([rig.store.senderOf(base), rig.store.unproven.size]).toEqual(['Asked', 1]);
  rig.api.put('node', node as never);
  await rig.pass(1_000);
  expect([rig.store.senderOf(base), rig.store.unproven.size]).toEqual(['Known', 0]);
});

it('of several replicas each asks on its own, and the base is led after it has answered', async () => {
  await rig.stop();
  await start({ isCluster: true, newBases: { newBasesPerMinute: 0 } });
  rig.heartbeat(rig.base('b1').info.identity);
  await rig.pass(10_000);
  expect(rig.condition('vnode.b1', 'Ready')).toBe('True KubeletReady');
  expect(rig.leases.isHeld('vnode.b1')).toBe(true);
});

it('of several replicas a member may ask a base that has no leader, and nobody commands a base of another one', async () => {
  const { node } = await nodeOfAnother();
  await start({ isCluster: true, newBases: { newBasesPerMinute: 0 } });
  rig.claim('b2', 'mqtt_tunnel_provider');
  expect(['b1', 'b2', 'b3'].map(rig.isOurs)).toEqual([false, true, false]);
  rig.api.put('node', node as never);
  await rig.pass(1_000);
  rig.membership.valid = false;
  expect(['b1', 'b2', 'b3'].map(rig.isOurs)).toEqual([false, false, false]);
});

describe('bases that are refused', () => {
  it('are logged once a minute for each reason', async () => {
    const reasons: string[] = [];
    const write = (line: string): void => {
      const { msg, reason } = JSON.parse(line);
      if (msg === 'new bases are refused') reasons.push(reason);
    };
    rig = new CoreRig({ logger: pino({ level: 'warn', base: null }, { write }), newBases: { maxVNodes: 0 } });
    for (let seconds = 0; seconds < 120; seconds += 10) {
      rig.claim(`b${seconds}`, 'mqtt_tunnel_provider');
      rig.clock.advance(10_000);
    }
    expect(reasons).toEqual(['VNodes', 'VNodes']);
  });
});
