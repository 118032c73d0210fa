import { describe, expect, it } from 'vitest';
import { NodeWrites } from '../../../src/vnode/node-writes.ts';
import { VNode } from '../../../src/vnode/vnode.ts';
import { LEDGER_OPTIONS, makeBase } from '../../support/builders.ts';

const NOW = 1_000_000;

function memories(isCalm = true, vnodes = 3): NodeWrites {
  return new NodeWrites(NOW, { traffic: { isCalm }, vnodeCount: () => vnodes });
}

function vnode(identity = 'b1'): VNode {
  return new VNode({ base: makeBase(identity), tunnel: 'mqtt_tunnel_provider', now: NOW, ledger: LEDGER_OPTIONS });
}

const written = (status: Record<string, unknown>, writesMetaspace: boolean) => ({
  metadata: undefined,
  status: { status },
  writesMetaspace,
  wakeAt: NOW,
});

describe('the memory of a Node', () => {
  it('is written at once the first time, however much else there is to write', () => {
    for (const isCalm of [true, false]) {
      const all = memories(isCalm);
      expect(all.turnOf(all.of(vnode()), NOW)).toBe(NOW);
    }
  });

  it('is written again 10 s after the last time at the earliest, and at once after that', () => {
    const all = memories();
    const memory = all.of(vnode());
    all.noteWrite(memory, written({}, true), NOW);
    expect(all.turnOf(memory, NOW + 1)).toBe(NOW + 10_000);
    all.noteWrite(memory, written({}, true), NOW + 10_000);
    expect(all.turnOf(memory, NOW + 20_001)).toBe(NOW + 20_001);
  });

  it('asks again every 30 s while there is much else to write, and is written 2 min after the last time', () => {
    const all = memories(false);
    const memory = all.of(vnode());
    all.noteWrite(memory, written({}, true), NOW);
    expect(all.turnOf(memory, NOW + 15_000)).toBe(NOW + 45_000);
    expect(all.turnOf(memory, NOW + 119_999)).toBe(NOW + 149_999);
    expect(all.turnOf(memory, NOW + 120_000)).toBe(NOW + 120_000);
  });

  it('has an earlier turn the first time: 20 at once, then one every 200 ms, however many VNodes there are', () => {
    const all = memories(true, 500);
    const turns = Array.from({ length: 23 }, (_, index) => all.turnOf(all.of(vnode(`b${index}`)), NOW) - NOW);
    expect(turns.slice(19)).toEqual([0, 200, 400, 600]);
  });

  it('is not written the first time where another process has written it', () => {
    const all = memories(false, 500);
    expect(all.turnOf(all.of(vnode(), true), NOW + 15_000)).toBe(NOW + 45_000);
    expect(all.turnOf(all.of(vnode('b2'), false), NOW + 15_000)).toBe(NOW + 15_000);
  });

  it('takes no turn of others while it waits for the end of a burst', () => {
    const traffic = { isCalm: false };
    const all = new NodeWrites(NOW, { traffic, vnodeCount: () => 3 });
    const memory = all.of(vnode());
    all.noteWrite(memory, written({}, true), NOW);
    for (let times = 0; times < 30; times++) all.turnOf(memory, NOW + 15_000);
    traffic.isCalm = true;
    expect(all.turnOf(memory, NOW + 15_000)).toBe(NOW + 15_000);
  });

  it.each([
    [3, 600],
    [500, 600],
    [1_000, 300],
    [5_000, 60],
  ])(
    'has a turn among others: 20 at once, then the rest one by one; of %i VNodes one every %i ms',
    (vnodes, eachMs) => {
      const all = memories(true, vnodes);
      const writes = Array.from({ length: 23 }, (_, index) => all.of(vnode(`b${index}`)));
      for (const write of writes) all.noteWrite(write, written({}, true), NOW - 60_000);
      const turns = writes.map((write) => all.turnOf(write, NOW) - NOW);
      expect(turns.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => 0));
      expect(turns.slice(20)).toEqual([eachMs, 2 * eachMs, 3 * eachMs]);
    },
  );

  it('keeps its turn until it is written', () => {
    const all = memories();
    const memory = all.of(vnode());
    expect([all.turnOf(memory, NOW), all.turnOf(memory, NOW + 5_000)]).toEqual([NOW, NOW]);
    all.noteWrite(memory, written({ conditions: [] }, false), NOW + 6_000);
    expect(all.turnOf(memory, NOW + 7_000)).toBe(NOW);
    all.noteWrite(memory, written({ capacity: {} }, false), NOW + 8_000);
    expect(all.turnOf(memory, NOW + 9_000)).toBe(NOW + 18_000);
  });

  it('is not the status: the periodic report is due by conditions, the memory by the amounts', () => {
    const all = memories();
    const memory = all.of(vnode());
    const before = memory.statusWrittenAt;
    all.noteWrite(memory, written({ capacity: {} }, true), NOW + 1);
    expect([memory.statusWrittenAt, memory.metaspaceWrittenAt]).toEqual([before, NOW + 1]);
    all.noteWrite(memory, written({ conditions: [] }, false), NOW + 2);
    expect([memory.statusWrittenAt, memory.metaspaceWrittenAt]).toEqual([NOW + 2, NOW + 1]);
  });
});

describe('what is known of the writes of a Node', () => {
  it('stays until the Node is forgotten', () => {
    const all = memories();
    const memory = all.of(vnode());
    expect(all.of(vnode())).toBe(memory);
    all.forget('vnode.b1');
    expect(all.of(vnode())).not.toBe(memory);
  });

  it('lets Nodes that come together report at moments of their own within five minutes', () => {
    const all = memories();
    const dueInMs = Array.from({ length: 100 }, (_, index) => {
      return all.of(vnode(`b${index}`)).statusWrittenAt + 300_000 - NOW;
    });
    expect(new Set(dueInMs).size).toBe(100);
    expect(Math.min(...dueInMs)).toBeGreaterThan(0);
    expect(Math.min(...dueInMs)).toBeLessThan(60_000);
    expect(Math.max(...dueInMs)).toBeGreaterThan(240_000);
    expect(Math.max(...dueInMs)).toBeLessThanOrEqual(300_000);
  });
});
