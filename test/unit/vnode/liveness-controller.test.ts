import pino from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeBase } from '../../support/builders.ts';
import { CoreRig } from '../../support/core-rig.ts';

let rig: CoreRig;

beforeEach(async () => {
  rig = new CoreRig();
  await rig.start();
});

afterEach(() => rig.stop());

async function foundBases(count: number): Promise<void> {
  for (let index = 1; index <= count; index++) {
    rig.base(`b${index}`);
    rig.addPod({ name: `p${index}`, node: `vnode.b${index}` });
    rig.heartbeat(`b${index}`);
  }
  await rig.pass(20_000);
  rig.api.take();
  rig.tunnel.take();
}

function silence(count: number, isSilent = true): void {
  for (let index = 1; index <= count; index++) {
    const base = rig.bases.get(`b${index}`);
    if (base) base.isSilent = isSilent;
  }
}

const readiness = (): string[] =>
  [...rig.bases.keys()].map((identity) => rig.condition(`vnode.${identity}`, 'Ready') ?? 'gone');
const count = (state: string): number => readiness().filter((ready) => ready === state).length;
const frozen = async () => (await rig.metrics.livenessFrozen.get()).values[0]?.value;

describe.each([
  [1, 1],
  [1, 2],
  [2, 4],
  [6, 10],
  [10, 10],
  [1, 10],
])('%i of %i bases', (dead, all) => {
  it('that die are all found dead and moved within 75 s, and no other is touched', async () => {
    await foundBases(all);
    silence(dead);
    await rig.pass(75_000);
    expect(count('gone')).toBe(dead);
    expect(count('True KubeletReady')).toBe(all - dead);
    for (let index = 1; index <= all; index++) {
      expect(rig.api.pod(`p${index}`) === undefined).toBe(index <= dead);
    }
    expect(rig.events.filter((event) => event.startsWith('Warning NodeNotReady vnode'))).toHaveLength(dead);
  });
});

describe('most bases silent at once', () => {
  it('are not judged before the link is proven, and it is said so', async () => {
    const proof = Promise.withResolvers<boolean>();
    rig.tunnel.probe = () => proof.promise;
    await foundBases(10);
    silence(6);
    await rig.pass(100_000);
    expect(count('True KubeletReady')).toBe(10);
    expect(rig.condition('vnode.b1', 'BaseReachable')).toBe('Unknown LivenessFrozen');
    expect(rig.condition('vnode.b10', 'BaseReachable')).toBe('True HeartbeatReceived');
    expect(await frozen()).toBe(1);
    expect(rig.podState('p1')).toBe('Running True');
    rig.tunnel.take();
    proof.resolve(true);
    await rig.pass(2_000);
    expect(rig.tunnel.take('health')).toEqual(expect.arrayContaining(['health b1', 'health b6']));
    await rig.pass(10_000);
    expect(count('gone')).toBe(6);
    expect(await frozen()).toBe(0);
  });

  it('that answer when they are asked are not judged', async () => {
    await foundBases(10);
    silence(6);
    const answering = [...rig.bases.values()].slice(0, 3);
    rig.tunnel.probe = () => {
      for (const base of answering) base.isSilent = false;
      return Promise.resolve(true);
    };
    await rig.pass(90_000);
    expect(readiness().slice(0, 3)).toEqual(new Array(3).fill('True KubeletReady'));
    expect(count('gone')).toBe(3);
  });

  it('are judged after five minutes when the broker refuses the message to ourselves', async () => {
    rig.tunnel.probe = () => Promise.resolve(false);
    await foundBases(10);
    silence(6);
    await rig.pass(300_000);
    expect(count('True KubeletReady')).toBe(10);
    await rig.pass(60_000);
    expect(count('gone')).toBe(6);
  });

  it('are asked nothing while they are not judged', async () => {
    rig.tunnel.probe = () => Promise.resolve(false);
    await foundBases(10);
    silence(6);
    await rig.pass(40_000);
    rig.tunnel.take();
    await rig.pass(130_000);
    expect(rig.tunnel.take().filter((line) => line.endsWith(' b1'))).toEqual([]);
  });

  it('wait for a proof that is asked for again when none came for 5 s', async () => {
    let probes = 0;
    rig.tunnel.probe = (timeoutMs) => {
      probes++;
      return new Promise((resolve) => rig.clock.setTimer(() => resolve(false), timeoutMs));
    };
    await foundBases(10);
    silence(6);
    while (probes === 0) await rig.pass(1_000);
    await rig.pass(60_000);
    // Each second somebody looks whether it is time.
    expect(probes).toBeGreaterThanOrEqual(10);
    expect(probes).toBeLessThanOrEqual(13);
  });

  it('get no command while they are not judged', async () => {
    rig.tunnel.probe = () => Promise.resolve(false);
    await foundBases(10);
    silence(6);
    await rig.pass(40_000);
    rig.tunnel.take();
    rig.addPod({ name: 'new', node: 'vnode.b1', modules: ['new:1'] });
    rig.deletePod('p2');
    await rig.pass(20_000);
    expect(rig.tunnel.take().filter((line) => /install/.test(line))).toEqual([]);
  });
});

describe('our own link', () => {
  it.each([1, 10])('down for 75 s: none of %i bases is judged, and nothing is commanded', async (all) => {
    await foundBases(all);
    rig.linkDown();
    await rig.pass(75_000);
    expect(count('True KubeletReady')).toBe(all);
    expect(await frozen()).toBe(1);
    rig.linkUp();
    await rig.pass(60_000);
    expect(count('True KubeletReady')).toBe(all);
    expect(rig.api.take('delete')).toEqual([]);
    expect(rig.tunnel.take().filter((line) => /install/.test(line))).toEqual([]);
    expect(rig.events.filter((event) => event.includes('NotReady'))).toEqual([]);
    expect(await frozen()).toBe(0);
  });

  it('down: a base that was found to be silent before stays so, and is not judged further', async () => {
    await foundBases(5);
    silence(1);
    await rig.pass(40_000);
    rig.linkDown();
    await rig.pass(60_000);
    const values = (await rig.metrics.vnodes.get()).values.map(({ labels, value }) => [labels.state, value]);
    expect(Object.fromEntries(values)).toEqual({ Reachable: 0, Unreachable: 1, Dead: 0, Suspended: 4 });
    expect(rig.condition('vnode.b1', 'Ready')).toBe('False BaseUnreachable');
  });

  it('down for 75 s: a base that needs as long again to come back is not given up', async () => {
    await foundBases(1);
    rig.linkDown();
    await rig.pass(75_000);
    silence(1);
    rig.linkUp();
    await rig.pass(70_000);
    silence(1, false);
    await rig.pass(20_000);
    expect(count('True KubeletReady')).toBe(1);
    expect(rig.api.take('delete')).toEqual([]);
  });

  it('down for 75 s: a base that died meanwhile is given up in the end', async () => {
    await foundBases(2);
    rig.linkDown();
    silence(1);
    await rig.pass(75_000);
    rig.linkUp();
    await rig.pass(180_000);
    expect(readiness()).toEqual(['gone', 'True KubeletReady']);
  });

  it('down again before it was proven: the earlier proof does not count', async () => {
    const proofs: ((isProven: boolean) => void)[] = [];
    rig.tunnel.probe = () => new Promise((resolve) => proofs.push(resolve));
    await foundBases(1);
    rig.linkDown();
    await rig.pass(2_000);
    rig.linkUp();
    await rig.pass(2_000);
    rig.linkDown();
    for (const prove of proofs.splice(0)) prove(true);
    await rig.pass(2_000);
    rig.linkUp();
    silence(1);
    await rig.pass(120_000);
    expect(readiness()).toEqual(['True KubeletReady']);
  });
});

describe('a proof', () => {
  it('from before a further outage does not count', async () => {
    const proofs: ((isProven: boolean) => void)[] = [];
    rig.tunnel.probe = () => new Promise((resolve) => proofs.push(resolve));
    await foundBases(1);
    silence(1);
    rig.linkDown();
    await rig.pass(2_000);
    rig.linkUp();
    await rig.pass(2_000);
    for (const prove of proofs.splice(0)) prove(true);
    await rig.pass(0);
    rig.linkDown();
    await rig.pass(2_000);
    rig.linkUp();
    await rig.pass(250_000);
    expect(readiness()).toEqual(['True KubeletReady']);
  });
});

describe('a process that did not run for a minute', () => {
  it.each([1, 10])('judges none of %i bases: the silence was its own', async (all) => {
    await foundBases(all);
    rig.clock.skip(60_000);
    await rig.pass(30_000);
    expect(count('True KubeletReady')).toBe(all);
    expect(rig.api.take('delete')).toEqual([]);
    expect(rig.events.filter((event) => event.includes('NotReady'))).toEqual([]);
    expect(await frozen()).toBe(0);
  });

  it('gives up a base that stays silent when it is asked', async () => {
    await foundBases(2);
    silence(1);
    rig.clock.skip(60_000);
    await rig.pass(30_000);
    expect(readiness()).toEqual(['gone', 'True KubeletReady']);
  });
});

describe('the sweep', () => {
  it('asks a quiet base for list and health at most once a minute each', async () => {
    await foundBases(5);
    await rig.pass(65_000);
    rig.tunnel.take();
    await rig.pass(600_000);
    const asked = rig.tunnel.take();
    for (const question of ['list', 'health']) {
      const questions = asked.filter((line) => line === `${question} b1`);
      expect(questions.length).toBeLessThanOrEqual(10);
      expect(questions.length).toBeGreaterThanOrEqual(8);
    }
  });

  it('asks once for all operations that ended within a second', async () => {
    await foundBases(1);
    const modules = Array.from({ length: 20 }, (_, index) => `m${index}:1`);
    rig.addPod({ name: 'many', node: 'vnode.b1', modules });
    await rig.pass(3_000);
    expect(rig.podState('many')).toBe('Running True');
    expect(rig.tunnel.take('list').length).toBeLessThanOrEqual(2);
  });

  it('counts bases by what is known of them', async () => {
    await foundBases(3);
    silence(1);
    await rig.pass(30_000);
    const values = (await rig.metrics.vnodes.get()).values.map(({ labels, value }) => [labels.state, value]);
    expect(Object.fromEntries(values)).toMatchObject({ Reachable: 2, Unreachable: 1 });
  });

  it('counts modules that no Pod asks for, those of a Pod that was forced away too', async () => {
    await foundBases(1);
    const base = rig.bases.get('b1');
    if (base) base.answersCommands = false;
    rig.api.drop('pod', 'p1');
    await rig.pass(2_000);
    expect((await rig.metrics.unknownModules.get()).values).toMatchObject([{ value: 1 }]);
  });

  it('logs once that a base is silent, and once that it is dead, and for how long it was silent', async () => {
    const found: string[] = [];
    const write = (line: string): void => {
      const { msg, liveness = 'gone', silentSeconds } = JSON.parse(line);
      if (msg.startsWith('base is ')) found.push(`${liveness} ${silentSeconds}`);
    };
    await rig.stop();
    rig = new CoreRig({ logger: pino({ level: 'warn', base: null }, { write }) });
    await rig.start();
    await foundBases(1);
    silence(1);
    await rig.pass(75_000);
    expect(found).toEqual(['Unreachable 25', 'Dead 60', 'gone 60']);
  });

  it('logs that a base is reachable again when it was silent, and not after an outage of ours', async () => {
    const found: string[] = [];
    const write = (line: string): void => {
      const { msg } = JSON.parse(line);
      if (/^base is (silent|reachable)/.test(msg)) found.push(msg);
    };
    await rig.stop();
    rig = new CoreRig({ logger: pino({ base: null }, { write }) });
    await rig.start();
    await foundBases(1);
    silence(1);
    await rig.pass(36_000);
    silence(1, false);
    await rig.pass(12_000);
    expect(found).toEqual(['base is silent', 'base is reachable again']);
    rig.linkDown();
    await rig.pass(75_000);
    rig.linkUp();
    await rig.pass(30_000);
    expect(found).toHaveLength(2);
    expect(count('True KubeletReady')).toBe(1);
  });

  it('keeps one timer, however many bases there are', async () => {
    await foundBases(1);
    const one = rig.clock.pending;
    await foundBases(40);
    expect(rig.clock.pending).toBe(one);
  });
});

describe('many bases that an earlier process has left', () => {
  it('are asked one by one within 65 s, and not all at the start', async () => {
    await foundBases(40);
    const next = new CoreRig();
    for (const identity of rig.bases.keys()) {
      next.base(identity);
      next.api.put('node', rig.api.node(`vnode.${identity}`) as never);
    }
    await next.start();
    const counts: number[] = [];
    for (let second = 1; second <= 66; second++) {
      await next.pass(1_000);
      counts.push(next.tunnel.take('list').length);
    }
    await next.stop();
    expect(counts.reduce((sum, each) => sum + each)).toBe(40);
    expect(Math.max(...counts)).toBeLessThan(8);
  });
});

describe('many bases that came together', () => {
  it.each(['list', 'health'])('are asked for their %s one by one from then on', async (question) => {
    for (let index = 1; index <= 40; index++) rig.base(`together${index}`);
    for (const identity of rig.bases.keys()) rig.heartbeat(identity);
    await rig.pass(1_000);
    rig.tunnel.take();
    const timesOf = new Map<string, number>();
    let most = 0;
    for (let second = 2; second <= 141; second++) {
      await rig.pass(1_000);
      const asked = rig.tunnel.take(question);
      most = Math.max(most, asked.length);
      for (const line of asked) timesOf.set(line, (timesOf.get(line) ?? 0) + 1);
    }
    expect(timesOf.size).toBe(40);
    expect(Math.min(...timesOf.values())).toBe(2);
    expect(most).toBeLessThan(8);
  });
});

describe('a base in its ordinary life', () => {
  it.each(['list', 'health'])('is asked for its %s every 65 s', async (question) => {
    await foundBases(20);
    rig.tunnel.take();
    const askedAt = new Map<string, number[]>();
    for (let second = 1; second <= 260; second++) {
      await rig.pass(1_000);
      for (const line of rig.tunnel.take(question)) {
        const times = askedAt.get(line) ?? [];
        times.push(second);
        askedAt.set(line, times);
      }
    }
    for (const times of askedAt.values()) {
      expect(times.length).toBeGreaterThanOrEqual(2);
      const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
      for (const gap of gaps) expect(gap).toBe(65);
    }
    expect(askedAt.size).toBe(20);
  });

  it('is asked for its health when a heartbeat is 5 s late, once', async () => {
    await foundBases(1);
    silence(1);
    rig.tunnel.take();
    const heardAt = rig.store.get('vnode.b1')?.life.lastHeardAt ?? 0;
    await rig.pass(heardAt + 14_900 - rig.clock.now());
    expect(rig.tunnel.take('health')).toEqual([]);
    await rig.pass(1_200);
    expect(rig.tunnel.take('health')).toEqual(['health b1']);
    await rig.pass(5_000);
    expect(rig.tunnel.take('health')).toEqual([]);
  });
});

describe('a process that did not run', () => {
  it.each([
    [5_000, 0],
    [5_001, 1],
  ])('for %d ms beyond a sweep judges nobody before the link is proven: %d', async (ms, isFrozen) => {
    await foundBases(1);
    rig.tunnel.probe = () => new Promise(() => {});
    rig.clock.skip(ms - 1_000);
    await rig.pass(1_000);
    expect(await frozen()).toBe(isFrozen);
  });
});

describe('a base that was silent for 15 s when it was asked', () => {
  it('and gave no answer is judged, although our link is lost after that', async () => {
    await foundBases(1);
    silence(1);
    const heardAt = rig.store.get('vnode.b1')?.life.lastHeardAt ?? 0;
    expect(rig.clock.now()).toBe(heardAt);
    rig.clock.skip(13_000);
    await rig.pass(2_000);
    expect(rig.clock.now()).toBe(heardAt + 15_000);
    await rig.pass(6_000);
    rig.linkDown();
    await rig.pass(5_000);
    expect(rig.condition('vnode.b1', 'Ready')).toBe('False BaseUnreachable');
  });
});

describe('a base over HTTP that refuses connections after its heartbeat', () => {
  it('is asked each second until 5 s after the heartbeat: the agent binds its port late', async () => {
    const tunnel = 'http_tunnel_provider';
    const base = await rig.foundBase('b1', { tunnel, info: makeBase('b1', { port: 1238 }) });
    await rig.pass(13_000);
    rig.heartbeat('b1');
    await rig.pass(0);
    base.isSilent = true;
    rig.vnodes.onConnectionRefused(tunnel, base.info);
    rig.http.take();
    const askedAfter: number[] = [];
    for (let second = 1; second <= 10; second++) {
      await rig.pass(1_000);
      if (rig.http.take('list').length > 0) askedAfter.push(second);
    }
    expect(askedAfter).toEqual([1, 2, 3, 4]);
  });
});

describe('a base whose modules have changed', () => {
  const asked = (): number => rig.tunnel.take().filter((line) => line.includes('health')).length;

  it('is not asked at its routine moment besides, 84 s after it was met, while a burst puts the question off', async () => {
    await foundBases(1);
    await rig.pass(60_000);
    rig.traffic.isCalm = false;
    rig.addPod({ name: 'p2', node: 'vnode.b1', modules: ['biz2:1.0.0'] });
    await rig.pass(1_000);
    rig.tunnel.take();
    await rig.pass(50_000);
    expect(asked()).toBe(0);
    await rig.pass(15_000);
    expect(asked()).toBe(1);
  });

  it.each([
    [true, 4_000],
    [false, 60_000],
  ])(
    'is asked when it rests, and in a burst (calm: %s) together with what follows: after %i ms',
    async (isCalm, afterMs) => {
      await foundBases(1);
      await rig.pass(4_000);
      rig.tunnel.take();
      // Until the routine question: the next one is 65 s away.
      let routine = 0;
      for (let second = 0; second < 65 && routine === 0; second++) {
        await rig.pass(1_000);
        routine = asked();
      }
      expect(routine).toBe(1);
      rig.traffic.isCalm = isCalm;
      rig.addPod({ name: 'p2', node: 'vnode.b1', modules: ['biz2:1.0.0'] });
      await rig.pass(afterMs - 1_000);
      expect(asked()).toBe(0);
      await rig.pass(3_000);
      expect(asked()).toBe(1);
    },
  );
});
