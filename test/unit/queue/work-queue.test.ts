import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { silentLogger } from '../../../src/logger.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { WorkQueue } from '../../../src/queue/work-queue.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';

/** A queue whose syncs last until the test ends them. */
class QueueRig {
  readonly clock = new FakeClock();
  readonly metrics = createMetrics();
  readonly started: string[] = [];
  readonly #ends = new Map<string, (error?: Error) => void>();
  readonly #abort = new AbortController();
  /** Besides those whose names say so. */
  readonly urgent = new Set<string>();
  readonly queue: WorkQueue;
  ended = Promise.resolve();

  constructor({ workers = 2, slackMs = 0, restMs = 0, isStarted = true } = {}) {
    const { clock, metrics } = this;
    const sync = (key: string): Promise<void> => {
      this.started.push(key);
      return new Promise((resolve, reject) => this.#ends.set(key, (error) => (error ? reject(error) : resolve())));
    };
    this.queue = new WorkQueue({
      name: 'test',
      workers,
      slackMs,
      restMs: (key) => (key.startsWith('large') ? restMs : 0),
      isUrgent: (key) => key.startsWith('urgent') || this.urgent.has(key),
      sync,
      clock,
      metrics,
      logger: silentLogger,
    });
    if (isStarted) this.start();
  }

  start(): void {
    this.ended = this.queue.run(this.#abort.signal);
  }

  async end(key: string, error?: Error): Promise<void> {
    await settle();
    this.#ends.get(key)?.(error);
    await settle();
  }

  stop(): void {
    this.#abort.abort();
  }

  async take(): Promise<string[]> {
    await settle();
    return this.started.splice(0);
  }
}

const broken = new Error('broken');

describe('a work queue', () => {
  it('runs a key once, however often it was added while it waited', async () => {
    const rig = new QueueRig({ workers: 1 });
    rig.queue.add('busy');
    for (let times = 0; times < 3; times++) rig.queue.add('a');
    await rig.end('busy');
    expect(await rig.take()).toEqual(['busy', 'a']);
    await rig.end('a');
    expect(await rig.take()).toEqual([]);
  });

  it('never runs a key twice at a time, and once more when it was added meanwhile', async () => {
    const rig = new QueueRig();
    rig.queue.add('a');
    expect(await rig.take()).toEqual(['a']);
    rig.queue.add('a');
    rig.queue.add('a');
    expect(await rig.take()).toEqual([]);
    await rig.end('a');
    expect(await rig.take()).toEqual(['a']);
    await rig.end('a');
    expect(await rig.take()).toEqual([]);
  });

  it('shows in its metrics how long keys wait and are worked on', async () => {
    const rig = new QueueRig({ workers: 1 });
    rig.queue.add('a');
    await settle();
    rig.queue.add('b');
    rig.clock.advance(3_000);
    await rig.end('a');
    rig.clock.advance(500);
    await rig.end('b');
    const sumOf = async (name: 'queueSeconds' | 'queueWorkSeconds'): Promise<number | undefined> =>
      (await rig.metrics[name].get()).values.find(({ metricName }) => metricName?.endsWith('_sum'))?.value;
    expect([await sumOf('queueSeconds'), await sumOf('queueWorkSeconds')]).toEqual([3, 3.5]);
  });

  it('works on as many keys at a time as it has workers, in order of arrival', async () => {
    const rig = new QueueRig({ workers: 2 });
    for (const key of ['a', 'b', 'c', 'd']) rig.queue.add(key);
    expect(await rig.take()).toEqual(['a', 'b']);
    await rig.end('b');
    expect(await rig.take()).toEqual(['c']);
    await rig.end('a');
    expect(await rig.take()).toEqual(['d']);
  });

  it('begins with the urgent keys, in order of arrival, and tells how long the oldest of them waits', async () => {
    const rig = new QueueRig({ workers: 1 });
    rig.queue.add('busy');
    await settle();
    expect(rig.queue.urgentWaitMs).toBe(0);
    for (const key of ['a', 'urgent 1', 'b', 'urgent 2', 'urgent 1']) {
      rig.queue.add(key);
      rig.clock.advance(100);
    }
    expect([rig.queue.depth, rig.queue.urgentWaitMs]).toEqual([4, 400]);
    for (const key of ['busy', 'urgent 1', 'urgent 2', 'a', 'b']) await rig.end(key);
    expect(await rig.take()).toEqual(['busy', 'urgent 1', 'urgent 2', 'a', 'b']);
    expect(rig.queue.urgentWaitMs).toBe(0);
  });

  it('moves a waiting key that has become urgent to those when it is added again, and counts all of its wait', async () => {
    const rig = new QueueRig({ workers: 1 });
    rig.queue.add('busy');
    await settle();
    rig.queue.add('a');
    rig.queue.add('b');
    rig.clock.advance(500);
    rig.urgent.add('b');
    expect([rig.queue.depth, rig.queue.urgentWaitMs]).toEqual([2, 0]);
    rig.queue.add('b');
    expect([rig.queue.depth, rig.queue.urgentWaitMs]).toEqual([2, 500]);
    rig.queue.add('urgent 1');
    for (const key of ['busy', 'b', 'urgent 1', 'a']) await rig.end(key);
    expect(await rig.take()).toEqual(['busy', 'b', 'urgent 1', 'a']);
  });

  it('counts no wait before it works', async () => {
    const rig = new QueueRig({ workers: 1, isStarted: false });
    rig.queue.add('urgent 1');
    rig.queue.add('urgent 2');
    rig.clock.advance(5_000);
    expect(rig.queue.urgentWaitMs).toBe(0);
    rig.start();
    await settle();
    rig.clock.advance(300);
    expect(rig.queue.urgentWaitMs).toBe(300);
  });

  it('shows whether a key has failed and waits for its next try', async () => {
    const rig = new QueueRig();
    rig.queue.add('a');
    expect(rig.queue.isRetrying('a')).toBe(false);
    await rig.end('a', broken);
    expect(rig.queue.isRetrying('a')).toBe(true);
    rig.queue.add('a');
    await rig.end('a');
    expect(rig.queue.isRetrying('a')).toBe(false);
  });

  it('forgets an urgent key', async () => {
    const rig = new QueueRig({ workers: 1 });
    rig.queue.add('busy');
    await settle();
    rig.queue.add('urgent 1');
    rig.queue.forget('urgent 1');
    expect([rig.queue.depth, rig.queue.urgentWaitMs]).toEqual([0, 0]);
    await rig.end('busy');
    expect(await rig.take()).toEqual(['busy']);
  });

  it('looks at a key when the last of its looks is due, and not before', async () => {
    const rig = new QueueRig({ workers: 1 });
    const now = rig.clock.now();
    for (const delayMs of [1_000, 3_000, 2_000]) rig.queue.lookAt('a', now + delayMs);
    rig.clock.advance(1_999);
    expect(await rig.take()).toEqual([]);
    rig.clock.advance(1);
    expect(await rig.take()).toEqual(['a']);
    await rig.end('a');
    rig.clock.advance(10_000);
    expect(await rig.take()).toEqual([]);
  });

  it('looks at a key no more after a look of infinity or when it is forgotten, and keeps its delays', async () => {
    const rig = new QueueRig({ workers: 3 });
    for (const key of ['a', 'b', 'c']) rig.queue.lookAt(key, rig.clock.now() + 1_000);
    rig.queue.addAfter('a', 2_000);
    rig.queue.lookAt('a', Number.POSITIVE_INFINITY);
    rig.queue.forget('b');
    rig.clock.advance(1_000);
    expect(await rig.take()).toEqual(['c']);
    rig.clock.advance(1_000);
    expect(await rig.take()).toEqual(['a']);
  });

  it('looks at a key soon when the time is past already', async () => {
    const rig = new QueueRig({ workers: 1 });
    rig.queue.lookAt('a', rig.clock.now() - 5);
    rig.clock.advance(0);
    expect(await rig.take()).toEqual(['a']);
  });

  it('keeps little of looks and delays that count no more, however far away they are', async () => {
    const rig = new QueueRig({ workers: 2 });
    const soon = rig.clock.now() + 1_000;
    for (let round = 0; round < 10_000; round++) rig.queue.lookAt('a', soon + (round % 2) * 1e9 + round);
    rig.queue.lookAt('a', soon);
    rig.queue.addAfter('b', 2_000);
    expect(rig.queue.delayedCount).toBeLessThan(200);
    rig.clock.advance(1_000);
    expect(await rig.take()).toEqual(['a']);
    rig.clock.advance(1_000);
    expect(await rig.take()).toEqual(['b']);
  });

  it('tells which keys it works on', async () => {
    const rig = new QueueRig({ workers: 1 });
    for (const key of ['a', 'b']) rig.queue.add(key);
    await rig.take();
    expect(['a', 'b'].map((key) => rig.queue.isWorkingOn(key))).toEqual([true, false]);
    await rig.end('a');
    expect(['a', 'b'].map((key) => rig.queue.isWorkingOn(key))).toEqual([false, true]);
    rig.stop();
  });

  it('gives a key that is added all the time no more turns than the others', async () => {
    const rig = new QueueRig({ workers: 1 });
    rig.queue.add('greedy');
    rig.queue.add('greedy');
    rig.queue.add('other');
    await rig.end('greedy');
    expect(await rig.take()).toEqual(['greedy', 'other']);
  });

  it('holds one timer for all delays', () => {
    const rig = new QueueRig();
    for (let index = 1; index <= 100; index++) rig.queue.addAfter(`key-${index}`, 1000 * index);
    expect(rig.clock.pending).toBe(1);
    rig.clock.advance(100_000);
    expect(rig.clock.pending).toBe(0);
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY])(
    'takes %d for no delay, and delays others as ever',
    async (delayMs) => {
      const rig = new QueueRig();
      rig.queue.addAfter('never', delayMs);
      expect(rig.clock.pending).toBe(0);
      rig.queue.addAfter('a', 1_000);
      rig.queue.addAfter('never', delayMs);
      await rig.clock.advanceAsync(1_000);
      expect(await rig.take()).toEqual(['a']);
      rig.queue.addAfter('never', 500);
      await rig.clock.advanceAsync(500);
      expect(await rig.take()).toEqual(['never']);
    },
  );

  it('with slack begins what is due soon after the first together with it, and nothing early', async () => {
    const rig = new QueueRig({ workers: 3, slackMs: 100 });
    rig.queue.addAfter('b', 1090);
    rig.queue.addAfter('a', 1000);
    rig.queue.addAfter('c', 1110);
    rig.clock.advance(1_099);
    expect(await rig.take()).toEqual([]);
    rig.clock.advance(1);
    expect(await rig.take()).toEqual(['a', 'b']);
    rig.clock.advance(110);
    expect(await rig.take()).toEqual(['c']);
  });

  it('counts the earliest of several delays of a key, and runs it once', async () => {
    const rig = new QueueRig();
    rig.queue.addAfter('a', 5000);
    rig.queue.addAfter('a', 1000);
    rig.queue.addAfter('a', 9000);
    rig.clock.advance(999);
    expect(await rig.take()).toEqual([]);
    rig.clock.advance(1);
    expect(await rig.take()).toEqual(['a']);
    await rig.end('a');
    rig.clock.advance(20_000);
    expect(await rig.take()).toEqual([]);
  });

  it('tries a failed key again with a doubling delay, and from the start again after a success', async () => {
    const rig = new QueueRig();
    const delays: (number | undefined)[] = [];
    rig.queue.add('a');
    for (const isBroken of [true, true, true, false, true]) {
      await rig.take();
      await rig.end('a', isBroken ? broken : undefined);
      delays.push(rig.clock.nextIn);
      if (isBroken) rig.clock.advance(rig.clock.nextIn ?? 0);
      else rig.queue.add('a');
    }
    expect(delays).toEqual([100, 200, 400, undefined, 100]);
  });

  it('waits at most 30 s between tries', async () => {
    const rig = new QueueRig();
    rig.queue.add('a');
    for (let times = 0; times < 20; times++) {
      await rig.end('a', broken);
      rig.clock.advance(rig.clock.nextIn ?? 0);
    }
    await rig.end('a', broken);
    expect(rig.clock.nextIn).toBe(30_000);
  });

  it('runs a key that is added during its back-off at once', async () => {
    const rig = new QueueRig();
    rig.queue.add('a');
    await rig.end('a', broken);
    await rig.take();
    rig.queue.add('a');
    expect(await rig.take()).toEqual(['a']);
  });

  it('forgets failures, delay and place of a key', async () => {
    const rig = new QueueRig({ workers: 1 });
    rig.queue.add('a');
    await rig.end('a', broken);
    rig.queue.forget('a');
    rig.clock.advance(60_000);
    expect(await rig.take()).toEqual(['a']);
    rig.queue.add('b');
    rig.queue.add('c');
    rig.queue.forget('c');
    await rig.end('b');
    expect(await rig.take()).toEqual(['b']);
  });

  it('takes keys before it runs, and works on them when it does', async () => {
    const rig = new QueueRig();
    const { clock, metrics } = rig;
    const seen: string[] = [];
    const sync = async (key: string): Promise<void> => void seen.push(key);
    const queue = new WorkQueue({ name: 'early', workers: 1, sync, clock, metrics, logger: silentLogger });
    queue.add('a');
    expect(seen).toEqual([]);
    const abort = new AbortController();
    const ended = queue.run(abort.signal);
    await settle();
    expect(seen).toEqual(['a']);
    abort.abort();
    await ended;
  });

  it('ends only when the syncs under way have ended, and starts none after the stop', async () => {
    const rig = new QueueRig({ workers: 2 });
    rig.queue.add('a');
    rig.queue.add('b');
    rig.queue.add('c');
    rig.queue.addAfter('d', 1000);
    let isEnded = false;
    void rig.ended.then(() => (isEnded = true));
    await settle();
    rig.stop();
    await rig.end('a');
    expect(isEnded).toBe(false);
    await rig.end('b', broken);
    expect(isEnded).toBe(true);
    rig.queue.add('e');
    rig.clock.advance(60_000);
    await settle();
    expect(await rig.take()).toEqual(['a', 'b']);
    expect(rig.clock.pending).toBe(0);
  });

  it('ends only when its last sync has ended', async () => {
    const rig = new QueueRig();
    rig.queue.add('a');
    let isEnded = false;
    void rig.ended.then(() => (isEnded = true));
    await settle();
    rig.stop();
    await settle();
    expect(isEnded).toBe(false);
    await rig.end('a');
    expect(isEnded).toBe(true);
  });

  it('counts what waits, what comes and what is tried again', async () => {
    const rig = new QueueRig({ workers: 1 });
    rig.queue.add('a');
    rig.queue.add('b');
    const read = async (metric: 'queueDepth' | 'queueAdds' | 'queueRetries') =>
      (await rig.metrics[metric].get()).values[0]?.value;
    await settle();
    expect(await read('queueDepth')).toBe(1);
    expect(await read('queueAdds')).toBe(2);
    await rig.end('a', broken);
    expect(await read('queueRetries')).toBe(1);
    expect(await read('queueDepth')).toBe(0);
  });
});

describe('a work queue on the system clock', () => {
  const DAY_MS = 86_400_000;
  /** The longest that one timeout of Node takes. */
  const LINK_MS = 2 ** 31 - 1;

  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] }));
  afterEach(() => void vi.useRealTimers());

  it('syncs a key that sleeps for 30 days at the end of them, and sets no timers in between', async () => {
    const until = systemClock.now() + 30 * DAY_MS;
    const syncedAt: number[] = [];
    const abort = new AbortController();
    const queue = new WorkQueue({
      name: 'test',
      workers: 1,
      // As a base with a Pod in its preStop.sleep: each plan says when to look again.
      sync: async (key) => {
        syncedAt.push(systemClock.now() - until);
        if (systemClock.now() < until) queue.addAfter(key, until - systemClock.now());
      },
      clock: systemClock,
      metrics: createMetrics(),
      logger: silentLogger,
    });
    const ended = queue.run(abort.signal);
    queue.add('vnode.b1');
    await settle();
    expect(syncedAt).toEqual([-30 * DAY_MS]);
    vi.advanceTimersToNextTimer();
    expect(until - systemClock.now()).toBe(30 * DAY_MS - LINK_MS);
    vi.advanceTimersToNextTimer();
    await settle();
    expect(syncedAt).toEqual([-30 * DAY_MS, 0]);
    expect(vi.getTimerCount()).toBe(0);
    abort.abort();
    await ended;
  });
});

describe('a key that rests after its sync', () => {
  it('runs once when its rest is over, for all that was added during the sync and the rest', async () => {
    const rig = new QueueRig({ restMs: 80 });
    rig.queue.add('large');
    await settle();
    rig.queue.add('large');
    await rig.end('large');
    rig.queue.add('large');
    rig.clock.advance(79);
    rig.queue.add('large');
    expect(await rig.take()).toEqual(['large']);
    rig.clock.advance(1);
    expect(await rig.take()).toEqual(['large']);
    await rig.end('large');
    rig.clock.advance(1_000);
    expect(await rig.take()).toEqual([]);
    rig.queue.add('large');
    expect(await rig.take()).toEqual(['large']);
    rig.stop();
  });

  it('may rest for 1 ms', async () => {
    const rig = new QueueRig({ restMs: 1 });
    rig.queue.add('large');
    await rig.end('large');
    rig.queue.add('large');
    expect(await rig.take()).toEqual(['large']);
    rig.clock.advance(1);
    expect(await rig.take()).toEqual(['large']);
    rig.stop();
  });

  it('keeps no other key waiting', async () => {
    const rig = new QueueRig({ workers: 1, restMs: 80 });
    rig.queue.add('large');
    await settle();
    for (const key of ['large', 'small']) rig.queue.add(key);
    await rig.end('large');
    expect(await rig.take()).toEqual(['large', 'small']);
    await rig.end('small');
    rig.queue.add('small');
    expect(await rig.take()).toEqual(['small']);
    rig.stop();
  });
});
