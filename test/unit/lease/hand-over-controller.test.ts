import { beforeEach, describe, expect, it } from 'vitest';
import { HandOverController } from '../../../src/lease/hand-over-controller.ts';
import type { Member } from '../../../src/lease/member.ts';
import { silentLogger } from '../../../src/logger.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const member = (id: string, more: Partial<Member> = {}): Member => ({
  id,
  nonce: `${id}#0`,
  address: undefined,
  tunnels: ['mqtt', 'http'],
  isLeaving: false,
  ...more,
});

/** Replica `a` in the middle of others that are told of, with leases that go where they are sent. */
class Rig {
  readonly clock = new FakeClock();
  readonly metrics = createMetrics();
  /** Holder by Node. */
  readonly leases = new Map<string, string>();
  readonly given: string[] = [];
  readonly busy = new Set<string>();
  readonly downSince = new Map<string, number>();
  readonly stopping = new AbortController();
  members = [member('a'), member('b'), member('c')];
  isCurrent = true;
  isValid = true;
  free = 0;
  /** Hand-overs are written when this ends. */
  writing: Promise<void> = Promise.resolve();
  canHandOver = true;
  /** What happened at the end, in order. */
  readonly end: string[] = [];
  ended: Promise<void> = Promise.resolve();

  start(isRebalancing = true): void {
    const controller = new HandOverController({
      membership: {
        isCurrent: () => this.isCurrent,
        isValid: () => this.isValid,
        members: () => this.members,
        announce: async ({ isLeaving } = {}) => {
          this.end.push(`announce ${isLeaving === true ? 'Leaving' : ''}`);
          this.members = this.members.map((one) => (one.id === 'a' ? { ...one, isLeaving: isLeaving === true } : one));
        },
      },
      leases: {
        heldNames: () => [...this.leases].filter(([, holder]) => holder === 'a').map(([name]) => name),
        counts: () => this.#counts(),
        size: () => ({ known: this.leases.size, free: this.free }),
        handOver: async (nodeName, to, reason) => {
          this.given.push(`${reason} ${nodeName} ${to}`);
          if (this.canHandOver) this.leases.set(nodeName, to);
          await this.writing;
        },
      },
      holder: 'a',
      maxLevel: 3,
      isRebalancing,
      tunnels: () => ['mqtt', 'http'].map((name) => ({ name, downSince: () => this.downSince.get(name) })),
      tunnelOf: (nodeName) => (nodeName.startsWith('vnode.m') ? 'mqtt' : 'http'),
      isBusy: (nodeName) => this.busy.has(nodeName),
      onLeaving: () => this.end.push('leaving'),
      clock: this.clock,
      logger: silentLogger,
      metrics: this.metrics,
    });
    this.ended = controller.run(this.stopping.signal);
  }

  lead(holder: string, count: number, prefix = 'm'): void {
    for (let index = 0; index < count; index++) this.leases.set(`vnode.${prefix}-${holder}-${index}`, holder);
  }

  #counts(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const holder of this.leases.values()) counts.set(holder, (counts.get(holder) ?? 0) + 1);
    return counts;
  }

  countOf(id: string): number {
    return this.#counts().get(id) ?? 0;
  }
}

let rig: Rig;

beforeEach(() => {
  rig = new Rig();
});

describe('rebalancing', () => {
  it('begins when the members are the same for 10 s, and moves 5 leases a second until shares are even', async () => {
    rig.lead('a', 30);
    rig.start();
    await rig.clock.advanceAsync(10_900);
    expect(rig.given).toEqual([]);
    await rig.clock.advanceAsync(1_000);
    expect(rig.given).toHaveLength(5);
    await rig.clock.advanceAsync(10_000);
    expect(rig.given).toHaveLength(20);
    expect([rig.countOf('a'), rig.countOf('b'), rig.countOf('c')]).toEqual([10, 10, 10]);
    await rig.clock.advanceAsync(60_000);
    expect(rig.given).toHaveLength(20);
    expect(rig.given.every((line) => line.startsWith('Rebalancing'))).toBe(true);
  });

  it('waits again when somebody comes, goes, or says something new', async () => {
    rig.lead('a', 30);
    rig.start();
    for (let times = 0; times < 5; times++) {
      await rig.clock.advanceAsync(9_000);
      rig.members = rig.members.map((one) =>
        one.id === 'b' ? { ...one, tunnels: times % 2 === 0 ? ['mqtt'] : ['mqtt', 'http'] } : one,
      );
    }
    expect(rig.given).toEqual([]);
  });

  it('waits again when a member is another process of the same name', async () => {
    rig.lead('a', 30);
    rig.start();
    for (let times = 0; times < 5; times++) {
      await rig.clock.advanceAsync(9_000);
      rig.members = rig.members.map((one) => (one.id === 'b' ? { ...one, nonce: `b#${times + 1}` } : one));
    }
    expect(rig.given).toEqual([]);
  });

  it('waits while leases are free, or nothing is known for sure', async () => {
    rig.lead('a', 30);
    rig.free = 1;
    rig.start();
    await rig.clock.advanceAsync(30_000);
    rig.free = 0;
    rig.isCurrent = false;
    await rig.clock.advanceAsync(30_000);
    expect(rig.given).toEqual([]);
    rig.isCurrent = true;
    await rig.clock.advanceAsync(9_000);
    expect(rig.given).toEqual([]);
    await rig.clock.advanceAsync(3_000);
    expect(rig.given).not.toEqual([]);
  });

  it('gives nothing to those that leave or have a tunnel down', async () => {
    rig.lead('a', 30);
    rig.members = [member('a'), member('b', { isLeaving: true }), member('c', { tunnels: ['mqtt'] })];
    rig.start();
    await rig.clock.advanceAsync(60_000);
    expect(rig.given).toEqual([]);
  });

  it('leaves alone where a command is under way', async () => {
    rig.lead('a', 3);
    rig.members = [member('a'), member('b')];
    rig.busy.add('vnode.m-a-0').add('vnode.m-a-1');
    rig.start();
    await rig.clock.advanceAsync(30_000);
    expect(rig.given).toEqual(['Rebalancing vnode.m-a-2 b']);
  });

  it('moves nothing while shares are close enough', async () => {
    rig.lead('a', 102);
    rig.lead('b', 100);
    rig.lead('c', 98);
    rig.start();
    await rig.clock.advanceAsync(30_000);
    expect(rig.given).toEqual([]);
  });

  it('moves no more leases while the last ones are being written', async () => {
    rig.lead('a', 30);
    const written = Promise.withResolvers<void>();
    rig.writing = written.promise;
    rig.start();
    await rig.clock.advanceAsync(30_000);
    expect(rig.given).toHaveLength(5);
    written.resolve();
    await rig.clock.advanceAsync(1_000);
    expect(rig.given).toHaveLength(10);
  });

  it('waits for its turn in a second in which bases of a broken tunnel are given away', async () => {
    rig.lead('a', 1, 'm');
    rig.lead('a', 30, 'h');
    rig.start();
    rig.downSince.set('mqtt', 1_000);
    await rig.clock.advanceAsync(11_000);
    expect(rig.given).toEqual([expect.stringMatching(/^TunnelDown vnode.m/)]);
    await rig.clock.advanceAsync(1_000);
    expect(rig.given).toHaveLength(1 + 5);
  });

  it('waits for that turn also where a single other one takes those bases', async () => {
    rig.members = [member('a'), member('b'), member('c', { tunnels: ['http'] })];
    rig.lead('a', 1, 'm');
    rig.lead('a', 30, 'h');
    rig.start();
    rig.downSince.set('mqtt', 1_000);
    await rig.clock.advanceAsync(11_000);
    expect(rig.given).toEqual([expect.stringMatching(/^TunnelDown vnode.m.* b$/)]);
  });

  it('can be switched off', async () => {
    rig.lead('a', 30);
    rig.start(false);
    await rig.clock.advanceAsync(60_000);
    expect(rig.given).toEqual([]);
  });
});

describe('a tunnel that is down', () => {
  beforeEach(() => {
    rig.lead('a', 4, 'm');
    rig.lead('a', 3, 'h');
    rig.start(false);
    rig.downSince.set('mqtt', 0);
  });

  it('has its bases given after 10 s to those who have it up, and no others', async () => {
    await rig.clock.advanceAsync(9_900);
    expect(rig.given).toEqual([]);
    await rig.clock.advanceAsync(1_000);
    expect(rig.given).toHaveLength(4);
    expect(rig.given.every((line) => line.startsWith('TunnelDown vnode.m'))).toBe(true);
    expect([rig.countOf('a'), rig.countOf('b'), rig.countOf('c')]).toEqual([3, 2, 2]);
  });

  it('is no reason while nobody else has it up', async () => {
    rig.members = [member('a'), member('b', { tunnels: ['http'] }), member('c', { isLeaving: true })];
    await rig.clock.advanceAsync(60_000);
    expect(rig.given).toEqual([]);
    rig.members = [member('a'), member('b')];
    await rig.clock.advanceAsync(1_000);
    expect(rig.given).toHaveLength(4);
  });

  it('is no reason when it comes up in time', async () => {
    await rig.clock.advanceAsync(8_000);
    rig.downSince.delete('mqtt');
    await rig.clock.advanceAsync(60_000);
    expect(rig.given).toEqual([]);
  });
});

describe('a replica that ends', () => {
  it('says so, begins nothing new, and gives all to those who have the fewest', async () => {
    rig.lead('a', 6);
    rig.lead('b', 2);
    rig.start();
    await rig.clock.advanceAsync(1_500);
    rig.stopping.abort();
    await rig.clock.advanceAsync(500);
    await rig.ended;
    expect(rig.end).toContain('leaving');
    expect(rig.end).toContain('announce Leaving');
    expect([rig.countOf('a'), rig.countOf('b'), rig.countOf('c')]).toEqual([0, 4, 4]);
    expect(rig.given.every((line) => line.startsWith('Leaving'))).toBe(true);
  });

  it('waits up to a second where commands are under way', async () => {
    rig.lead('a', 3);
    rig.busy.add('vnode.m-a-0').add('vnode.m-a-1');
    rig.start();
    rig.stopping.abort();
    await rig.clock.advanceAsync(300);
    expect(rig.given).toHaveLength(1);
    rig.busy.delete('vnode.m-a-0');
    await rig.clock.advanceAsync(200);
    expect(rig.given).toHaveLength(2);
    await rig.clock.advanceAsync(499);
    expect(rig.given).toHaveLength(2);
    await rig.clock.advanceAsync(1);
    await rig.ended;
    expect(rig.given).toHaveLength(3);
  });

  it('waits no longer than that, although nobody takes what it gives', async () => {
    rig.lead('a', 1);
    rig.canHandOver = false;
    rig.start();
    rig.stopping.abort();
    await rig.clock.advanceAsync(1_000);
    await rig.ended;
    expect(rig.countOf('a')).toBe(1);
  });

  it('gives a single lease, too', async () => {
    rig.lead('a', 1);
    rig.start();
    rig.stopping.abort();
    await rig.clock.advanceAsync(100);
    await rig.ended;
    expect(rig.countOf('a')).toBe(0);
  });

  it('makes them anybody’s when it is the last one', async () => {
    rig.lead('a', 2);
    rig.members = [member('a'), member('b', { isLeaving: true })];
    rig.start();
    rig.stopping.abort();
    await rig.clock.advanceAsync(500);
    await rig.ended;
    expect(rig.given).toEqual(['Leaving vnode.m-a-0 ', 'Leaving vnode.m-a-1 ']);
  });

  it('gives nothing when it is fenced: others take it', async () => {
    rig.lead('a', 2);
    rig.isValid = false;
    rig.start();
    rig.stopping.abort();
    await rig.ended;
    expect(rig.given).toEqual([]);
  });
});

it('tells what it leads, what there is, and its level', async () => {
  rig.lead('a', 10);
  rig.lead('b', 20);
  rig.start(false);
  await rig.clock.advanceAsync(1_000);
  const value = async (metric: { get(): Promise<{ values: { value: number }[] }> }) =>
    (await metric.get()).values[0]?.value;
  expect(await value(rig.metrics.leasesHeld)).toBe(10);
  expect(await value(rig.metrics.leasesKnown)).toBe(30);
  expect(await value(rig.metrics.workloadLevel)).toBe(1);
});

it('tells level 0 while it leads nothing', async () => {
  rig.lead('b', 3);
  rig.start(false);
  await rig.clock.advanceAsync(1_000);
  expect((await rig.metrics.workloadLevel.get()).values[0]?.value).toBe(0);
});
