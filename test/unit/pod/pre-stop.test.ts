import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PodMemory } from '../../../src/pod/pod-memory.ts';
import { sleepMsOf, sleptMs, withinGrace } from '../../../src/pod/pre-stop.ts';
import { projectPod, type VPod } from '../../../src/pod/vpod.ts';
import { makePod, makePodObject, makeResult, type PodOptions, runningStatus } from '../../support/builders.ts';
import { CoreRig } from '../../support/core-rig.ts';

const KEY = 'biz1:1.0.0';
const DELETED = '2026-01-01T01:00:00Z';
const RUNNING = { phase: 'Running', containerStatuses: [runningStatus(KEY)] };
const at = (text: string): Date => new Date(`2026-01-01T${text}Z`);

const preStopSleepMs = (pod: VPod, defaultSeconds: number): number => withinGrace(sleepMsOf(pod, defaultSeconds), pod);
const sleeper = (more: PodOptions = {}): VPod => makePod({ uid: 'u1', sleepSeconds: 20, status: RUNNING, ...more });
const deleted = (graceSeconds: number, more: PodOptions = {}): VPod =>
  sleeper({ deleting: true, graceSeconds, ...more });

describe('the sleep of a deleted Pod', () => {
  it.each([
    ['is as long as the manifest says', 30, 20_000],
    ['ends with the grace period', 5, 5_000],
    ['is none with grace 0', 0, 0],
  ])('%s', (_, graceSeconds, sleepMs) => {
    expect(preStopSleepMs(deleted(graceSeconds), 0)).toBe(sleepMs);
  });

  it('is none for a module that does not run: nobody is sent to it', () => {
    const status = { phase: 'Pending', containerStatuses: [runningStatus(KEY, { state: { waiting: {} } })] };
    expect(preStopSleepMs(deleted(30, { status }), 0)).toBe(0);
    expect(preStopSleepMs(deleted(30, { status: { phase: 'Pending' } }), 0)).toBe(0);
  });

  it('has any length inside the grace period', () => {
    const monthSeconds = 30 * 86_400;
    expect(preStopSleepMs(deleted(monthSeconds, { sleepSeconds: monthSeconds }), 0)).toBe(1000 * monthSeconds);
    expect(preStopSleepMs(deleted(30, { sleepSeconds: 2 ** 63 }), 0)).toBe(30_000);
    expect(preStopSleepMs(deleted(2 ** 63, { sleepSeconds: 20 }), 0)).toBe(20_000);
  });

  it.each([-1, -(2 ** 63), Number.NaN, Number.POSITIVE_INFINITY, '20', null, {}])(
    'is none where it or the grace period is no duration (%j)',
    (value) => {
      const wrong = value as number;
      expect(preStopSleepMs(deleted(30, { sleepSeconds: wrong }), 0)).toBe(0);
      expect(preStopSleepMs(deleted(wrong), 0)).toBe(0);
      const sleeps = new PodMemory(0);
      sleeps.observe(undefined, deleted(wrong, { sleepSeconds: wrong }), { now: 1_000, wallTime: at('00:30:00') });
      expect(sleeps.get('u1')).toBe(1_000);
    },
  );

  it('is none for a Pod that nobody deletes', () => {
    expect(preStopSleepMs(sleeper(), 0)).toBe(0);
  });

  it('is the longest of those of its modules that run', () => {
    const object = makePodObject({ modules: ['biz1:1', 'biz2:1', 'biz3:1'], deleting: true, graceSeconds: 60 });
    object.spec.containers.forEach((container, index) => {
      container.lifecycle = { preStop: { sleep: { seconds: 10 * (index + 1) } } };
    });
    const containerStatuses = [runningStatus('biz1:1'), runningStatus('biz2:1')];
    const pod = { ...object, status: { containerStatuses } };
    expect(preStopSleepMs(projectPod(pod), 0)).toBe(20_000);
  });
});

describe('a deletion that we did not see begin', () => {
  it.each([
    ['is 10 s old when it ends in 20 s of 30', '00:59:40', 10_000],
    ['is new when our clock is behind', '00:30:00', 0],
    ['is over when our clock is ahead', '02:00:00', 3_630_000],
  ])('%s', (_, wallTime, ms) => {
    expect(sleptMs(deleted(30), at(wallTime))).toBe(ms);
  });

  it('is as old as it says also with a grace period of centuries', () => {
    const seconds = 290 * 365 * 86_400;
    expect(sleptMs(deleted(seconds), at('00:59:40'))).toBe(1000 * (seconds - 20));
  });

  it('is new when its grace period is so long that the API server cannot say when it ends', () => {
    const forever = deleted(2 ** 63, { sleepSeconds: 2_592_000 });
    expect(preStopSleepMs(forever, 0)).toBe(2_592_000_000);
    expect(sleptMs(forever, at('01:00:00'))).toBe(0);
  });

  it('is as old as its time says without a grace period', () => {
    expect(sleptMs({ ...deleted(30), deletionGraceSeconds: undefined }, at('01:00:10'))).toBe(10_000);
  });

  it('is new when its time cannot be read', () => {
    expect(sleptMs({ ...deleted(30), deletionTime: 'soon' }, at('01:00:00'))).toBe(0);
  });
});

describe('until when the modules of a Pod stay', () => {
  const time = (now: number, wall = '00:59:30') => ({ now, wallTime: at(wall) });

  it('counts from the moment at which the watch showed its deletion, whatever the clocks say', () => {
    const sleeps = new PodMemory(0);
    sleeps.observe(sleeper(), deleted(30), time(1_000, '23:00:00'));
    expect(sleeps.get('u1')).toBe(21_000);
  });

  it('counts from the deletion itself for one that was deleted before we looked', () => {
    const sleeps = new PodMemory(0);
    sleeps.observe(undefined, deleted(30), time(1_000, '00:59:45'));
    expect(sleeps.get('u1')).toBe(1_000 + 20_000 - 15_000);
  });

  it('ends with the grace period of a second deletion also for one that was deleted before we looked', () => {
    const sleeps = new PodMemory(0);
    const month = { sleepSeconds: 30 * 86_400 };
    sleeps.observe(undefined, deleted(30, month), time(1_000, '00:59:45'));
    expect(sleeps.get('u1')).toBe(16_000);
    // The API server counts the shorter period from the same beginning.
    sleeps.observe(deleted(30, month), deleted(20, month), time(2_000, '00:59:46'));
    expect(sleeps.get('u1')).toBe(6_000);
    sleeps.observe(deleted(20, month), deleted(0, month), time(3_000, '00:59:47'));
    expect(sleeps.get('u1')).toBeLessThan(3_000);
  });

  it('begins again where etcd was restored to a state before the deletion, and the Pod counts again', () => {
    const memory = new PodMemory(0);
    memory.observe(sleeper(), deleted(30), time(1_000));
    memory.noteDeletion(deleted(30));
    memory.observe(deleted(30), sleeper(), time(500_000));
    expect([memory.get('u1'), memory.isDeleted(sleeper())]).toEqual([undefined, false]);
    memory.observe(sleeper(), deleted(30), time(600_000));
    expect(memory.get('u1')).toBe(620_000);
  });

  it('is not moved by later news of the Pod', () => {
    const sleeps = new PodMemory(0);
    sleeps.observe(sleeper(), deleted(30), time(1_000));
    sleeps.observe(deleted(30), deleted(30), time(9_000));
    sleeps.observe(undefined, deleted(30), time(12_000, '00:59:31'));
    expect(sleeps.get('u1')).toBe(21_000);
  });

  it('is brought forward by a second deletion, and never put off', () => {
    const sleeps = new PodMemory(0);
    sleeps.observe(sleeper(), deleted(30), time(1_000));
    sleeps.observe(deleted(30), deleted(5), time(3_000));
    expect(sleeps.get('u1')).toBe(6_000);
    sleeps.observe(deleted(5), deleted(300), time(4_000));
    expect(sleeps.get('u1')).toBe(6_000);
  });

  describe('where a status that shows the module as replaced is on its way', () => {
    const containerStatuses = [runningStatus(KEY, { state: { waiting: { reason: 'ModuleReplaced' } } })];
    const status = { phase: 'Running', containerStatuses };

    it('counts from a deletion that comes with that status', () => {
      const sleeps = new PodMemory(0);
      sleeps.noteReplaced([sleeper()], [sleeper()]);
      sleeps.observe(sleeper(), deleted(30, { status }), time(1_000));
      expect(sleeps.get('u1')).toBe(21_000);
      sleeps.noteReplaced([], [deleted(30, { status })]);
      sleeps.observe(deleted(30, { status }), deleted(5, { status }), time(2_000));
      expect(sleeps.get('u1')).toBe(6_000);
    });

    it('counts from a deletion that comes before that status', () => {
      const sleeps = new PodMemory(0);
      sleeps.noteReplaced([sleeper()], [sleeper()]);
      sleeps.observe(sleeper(), deleted(30), time(1_000));
      sleeps.observe(deleted(30), deleted(30, { status }), time(2_000));
      expect(sleeps.get('u1')).toBe(21_000);
    });

    it('counts from that status, where the deletion comes later', () => {
      const sleeps = new PodMemory(0);
      sleeps.noteReplaced([sleeper()], [sleeper()]);
      sleeps.noteWritten([sleeper({ status })], new Set(), 1_000);
      sleeps.observe(sleeper({ status }), deleted(30, { status }), time(2_000));
      expect(sleeps.get('u1')).toBe(21_000);
    });
  });

  it('is forgotten with the Pod, and nothing is kept of one that lives', () => {
    const sleeps = new PodMemory(0);
    sleeps.observe(sleeper(), deleted(30), time(1_000));
    sleeps.forget(deleted(30));
    expect(sleeps.get('u1')).toBeUndefined();
    sleeps.observe(undefined, sleeper({ uid: 'u2' }), time(1_000));
    expect(sleeps.get('u2')).toBeUndefined();
  });

  it('is never longer than the grace period after we first saw the deletion', () => {
    const news = fc.record({
      grace: fc.nat(100),
      afterMs: fc.nat(50_000),
      wallSeconds: fc.integer({ min: -9e4, max: 9e4 }),
    });
    fc.assert(
      fc.property(fc.array(news, { minLength: 1 }), fc.boolean(), (all, sawBegin) => {
        const sleeps = new PodMemory(0);
        let now = 0;
        let before = sawBegin ? sleeper({ sleepSeconds: 3_600 }) : undefined;
        for (const { grace, afterMs, wallSeconds } of all) {
          const pod = deleted(grace, { sleepSeconds: 3_600 });
          sleeps.observe(before, pod, { now, wallTime: new Date(Date.parse(DELETED) + 1000 * wallSeconds) });
          before = pod;
          now += afterMs;
        }
        expect(sleeps.get('u1')).toBeLessThanOrEqual(1000 * Math.min(...all.map(({ grace }) => grace)));
      }),
    );
  });
});

describe('on a base', () => {
  let rig: CoreRig;

  beforeEach(async () => {
    rig = new CoreRig();
    await rig.start();
    await rig.foundBase('b1');
    rig.addPod({ uid: 'first', sleepSeconds: 20 });
    await rig.pass(5_000);
    rig.commands();
  });

  afterEach(() => rig.stop());

  it('a deleted Pod’s module serves on until the sleep is over, and then goes without further news', async () => {
    rig.deletePod('p1');
    await rig.pass(19_900);
    expect(rig.commands()).toEqual([]);
    expect(rig.api.pod('p1')).toBeDefined();
    await rig.pass(200);
    expect(rig.commands()).toEqual([`uninstall b1 ${KEY}`]);
    expect(rig.api.pod('p1')).toBeUndefined();
  });

  it.each([
    [0, 100],
    [5, 5_100],
  ])('a grace period of %i s ends the sleep', async (graceSeconds, withinMs) => {
    rig.deletePod('p1', graceSeconds);
    await rig.pass(withinMs);
    expect(rig.commands()).toEqual([`uninstall b1 ${KEY}`]);
  });

  it('a second deletion with a shorter grace period ends the sleep', async () => {
    rig.deletePod('p1');
    await rig.pass(3_000);
    rig.deletePod('p1', 1);
    await rig.pass(100);
    expect(rig.commands()).toEqual([`uninstall b1 ${KEY}`]);
  });

  it('a Pod that is forced away during its sleep is uninstalled at once, and nothing of it is kept', async () => {
    rig.deletePod('p1');
    await rig.pass(3_000);
    rig.api.drop('pod', 'p1');
    await rig.pass(100);
    expect(rig.commands()).toEqual([`uninstall b1 ${KEY}`]);
    expect(rig.store.get('vnode.b1')?.pendingRemovals.size).toBe(0);
  });

  it('a new Pod that wants the same has the module without an install, during the sleep and after it', async () => {
    rig.deletePod('p1');
    rig.addPod({ name: 'p2' });
    await rig.pass(3_000);
    expect(rig.podState('p2')).toBe('Running True');
    await rig.pass(60_000);
    expect(rig.commands()).toEqual([]);
    expect(rig.api.pod('p1')).toBeUndefined();
    expect(rig.podState('p2')).toBe('Running True');
  });

  it('a new Pod that wants it in another form waits for the end of the sleep', async () => {
    rig.deletePod('p1');
    rig.addPod({ name: 'p2', args: ['--other'] });
    await rig.pass(15_000);
    expect(rig.commands()).toEqual([]);
    await rig.pass(10_000);
    expect(rig.commands()).toEqual([`uninstall b1 ${KEY}`, `install b1 ${KEY}`]);
    expect(rig.podState('p2')).toBe('Running True');
  });

  it('a sleep of 30 days lasts 30 days, and causes no syncs', async () => {
    const daySeconds = 86_400;
    rig.addPod({ name: 'month', modules: ['biz2:1'], sleepSeconds: 30 * daySeconds });
    await rig.pass(5_000);
    rig.deletePod('month', 40 * daySeconds);
    await rig.pass(5_000);
    const before = await rig.podAdds();
    await rig.pass(60_000);
    expect(before).toBeGreaterThan(0);
    expect((await rig.podAdds()) - before).toBeLessThan(5);
    expect(rig.api.pod('month')).toBeDefined();
  });

  it('a module in its sleep is nobody’s unknown one, however long that takes', async () => {
    rig.addPod({ name: 'long', modules: ['biz2:1'], sleepSeconds: 600 });
    await rig.pass(5_000);
    rig.deletePod('long', 900);
    await rig.pass(500_000);
    expect(rig.modulesOf('b1')).toContain('biz2:1 ACTIVATED');
    expect(rig.events).not.toContain('Warning UnknownModule vnode.b1');
    await rig.pass(110_000);
    expect(rig.api.pod('long')).toBeUndefined();
  });

  it('a controller that is started anew sleeps only what is left', async () => {
    rig.deletePod('p1');
    await rig.pass(12_000);
    const next = new CoreRig();
    next.clock.advance(rig.clock.wallTime().getTime() - next.clock.wallTime().getTime());
    next.base('b1').modules.set(KEY, 'ACTIVATED');
    next.api.put('pod', rig.api.pod('p1') as never);
    await next.start();
    next.heartbeat('b1');
    await next.pass(7_000);
    expect(next.commands()).toEqual([]);
    await next.pass(2_000);
    expect(next.commands()).toEqual([`uninstall b1 ${KEY}`]);
    await next.stop();
  });

  it('a Pod that is deleted while no controller runs sleeps from the moment at which its Node is Ready again', async () => {
    rig.deletePod('p1');
    const node = rig.api.node('vnode.b1');
    if (node === undefined) throw new Error('no Node');
    const conditions = node.status?.conditions?.map((condition) => ({ ...condition, status: 'Unknown' }));
    const next = new CoreRig();
    next.clock.advance(rig.clock.wallTime().getTime() - next.clock.wallTime().getTime() + 100_000);
    next.base('b1').modules.set(KEY, 'ACTIVATED');
    next.api.put('node', { ...node, status: { ...node.status, conditions } } as never);
    next.api.put('pod', rig.api.pod('p1') as never);
    await next.start();
    await next.pass(5_000);
    next.heartbeat('b1');
    await next.pass(19_900);
    expect(next.commands()).toEqual([]);
    await next.pass(1_000);
    expect(next.commands()).toEqual([`uninstall b1 ${KEY}`]);
    await next.stop();
  });

  it('an uninstall that fails after the sleep is told as ever', async () => {
    const base = rig.bases.get('b1');
    if (base) base.answersCommands = false;
    rig.deletePod('p1');
    await rig.pass(20_100);
    rig.vnodes.onOperationResult(
      rig.envelope('b1'),
      makeResult('uninstall', KEY, { outcome: 'failed', message: 'no' }),
    );
    await rig.pass(100);
    expect(rig.api.pod('p1')?.status).toMatchObject({ reason: 'FailedKillPod' });
  });
});

describe('a Pod without a sleep of its own', () => {
  let rig: CoreRig;

  beforeEach(async () => {
    rig = new CoreRig({ preStopSleepSeconds: 2 });
    await rig.start();
    await rig.foundBase('b1');
  });

  afterEach(() => rig.stop());

  it('serves on for the default', async () => {
    rig.addPod();
    await rig.pass(5_000);
    rig.commands();
    rig.deletePod('p1');
    await rig.pass(1_900);
    expect(rig.commands()).toEqual([]);
    await rig.pass(200);
    expect(rig.commands()).toEqual([`uninstall b1 ${KEY}`]);
  });

  it.each([
    ['a grace period of 1 s ends the default', 1, undefined, 1_100],
    ['a sleep of 0 is one of its own', 30, 0, 100],
  ])('%s', async (_, graceSeconds, sleepSeconds, withinMs) => {
    rig.addPod(sleepSeconds === undefined ? {} : { sleepSeconds });
    await rig.pass(5_000);
    rig.commands();
    rig.deletePod('p1', graceSeconds);
    await rig.pass(withinMs);
    expect(rig.commands()).toEqual([`uninstall b1 ${KEY}`]);
  });

  it('that never ran goes at once', async () => {
    const base = rig.bases.get('b1');
    if (base) base.answersCommands = false;
    rig.addPod();
    await rig.pass(1_000);
    rig.fail('b1', 'install', KEY, 'FileNotFoundException');
    await rig.pass(1_000);
    rig.deletePod('p1');
    await rig.pass(100);
    expect(rig.api.pod('p1')).toBeUndefined();
  });

  it('whose module another one replaces is not Ready for the default before the install', async () => {
    rig.addPod({ modules: ['biz1:1'] });
    await rig.pass(5_000);
    rig.commands();
    rig.addPod({
      name: 'p2',
      modules: ['biz1:2'],
      createdAt: '2026-01-02T00:00:00Z',
      strategy: 'uninstallThenInstall',
    });
    await rig.pass(1_800);
    expect([rig.waiting('p1'), rig.commands()]).toEqual(['ModuleReplaced', []]);
    await rig.pass(400);
    expect(rig.commands()).toEqual(['install b1 biz1:2']);
  });
});
