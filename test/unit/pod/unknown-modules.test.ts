import pino from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { makeHealth, makePodObject } from '../../support/builders.ts';
import { CoreRig, type CoreRigOptions } from '../../support/core-rig.ts';
import { settle } from '../../support/fake-clock.ts';
import type { RigBase } from '../../support/rig-base.ts';

const NODE = 'vnode.b1';
const STRANGE = 'strange:1';
let rig: CoreRig;

afterEach(() => rig.stop());

/** A base that was met before and has a module of nobody, whose list and record were just read. */
async function strangeBase(options: CoreRigOptions = {}, more: Partial<RigBase> = {}): Promise<RigBase> {
  rig = new CoreRig(options);
  rig.remember('b1');
  await rig.start();
  const base = await rig.foundBase('b1', { modules: new Map([[STRANGE, 'ACTIVATED']]), ...more });
  rig.api.take();
  return base;
}

const reads = (): string[] => rig.api.take('list pods');
const gauge = async (): Promise<number | undefined> =>
  (await rig.metrics.unknownModules.get()).values.find(() => true)?.value;

describe('a module that no Pod asks for', () => {
  it('is told of once, and removed when a second list has it and a live read shows no Pod', async () => {
    await strangeBase();
    expect(rig.events.filter((event) => event === `Warning UnknownModule ${NODE}`)).toHaveLength(1);
    expect(rig.eventTexts.join()).toContain(STRANGE);
    await rig.pass(8_000);
    expect([rig.commands(), reads()]).toEqual([[], []]);
    await rig.pass(4_000);
    expect(reads()).toEqual(['list pods ']);
    expect(rig.commands()).toEqual([`uninstall b1 ${STRANGE}`]);
    expect((await rig.metrics.unknownModulesRemoved.get()).values[0]?.value).toBe(1);
    await rig.pass(120_000);
    expect(rig.events.filter((event) => event === `Warning UnknownModule ${NODE}`)).toHaveLength(1);
    expect([rig.commands(), reads(), await gauge()]).toEqual([[], [], 0]);
    expect(rig.store.get(NODE)?.pendingRemovals.size).toBe(0);
  });

  it.each(['RESOLVED', 'BROKEN', 'STOPPED', 'DEACTIVATED'] as const)(
    'is removed in whatever state (%s)',
    async (state) => {
      await strangeBase({}, { modules: new Map([[STRANGE, state]]) });
      await rig.pass(15_000);
      expect(rig.commands()).toEqual([`uninstall b1 ${STRANGE}`]);
    },
  );

  it('stays with the policy keep, and is counted', async () => {
    await strangeBase({ unknownModulePolicy: 'keep' });
    await rig.pass(300_000);
    expect([rig.commands(), reads(), await gauge()]).toEqual([[], [], 1]);
    expect(rig.events.filter((event) => event === `Warning UnknownModule ${NODE}`)).toHaveLength(1);
  });

  it('is named in plain text, whatever its name is', async () => {
    const name = `<b>\u001b[2J\u202e${'x'.repeat(4_000)}`;
    await strangeBase({}, { modules: new Map([[`${name}:1`, 'ACTIVATED']]) });
    const text = rig.eventTexts.join();
    expect(text).toMatch(/no Pod asks for b 2J x+…: they will be removed/);
    expect(text.length).toBeLessThan(300);
    await rig.pass(15_000);
    expect(rig.commands()).toEqual([`uninstall b1 ${name}:1`]);
  });

  it('stays while the second list does not come: the first one counts once', async () => {
    const base = await strangeBase();
    base.answersLists = false;
    await rig.pass(60_000);
    expect([rig.commands(), reads()]).toEqual([[], []]);
    base.answersLists = true;
    await rig.pass(10_000);
    expect(rig.commands()).toEqual([`uninstall b1 ${STRANGE}`]);
  });

  it('stays when its Pod is seen by the live read alone: our cache lags behind', async () => {
    const told: string[] = [];
    const write = (line: string): void => void told.push(JSON.parse(line).msg);
    await strangeBase({ logger: pino({ base: null }, { write }) });
    rig.podInformer.isPaused = true;
    rig.addPod({ name: 'late', modules: [STRANGE] });
    await rig.pass(100_000);
    expect(rig.commands()).toEqual([]);
    expect(told).not.toContain('modules that no Pod asks for are removed');
    rig.podInformer.resume();
    await rig.pass(1_000);
    expect(rig.podState('late')).toBe('Running True');
    expect(rig.commands()).toEqual([]);
  });

  it('stays when a Pod on another Node asks for the like, but goes all the same here', async () => {
    await strangeBase();
    rig.addPod({ name: 'elsewhere', node: 'vnode.b2', modules: [STRANGE] });
    await rig.pass(15_000);
    expect(rig.commands()).toEqual([`uninstall b1 ${STRANGE}`]);
  });

  it('is given to a Pod that comes during the read, without an install', async () => {
    await strangeBase();
    const answered = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request.startsWith('list pods') ? answered.promise : undefined);
    await rig.pass(12_000);
    rig.addPod({ name: 'new', modules: [STRANGE] });
    answered.resolve();
    await rig.pass(30_000);
    expect(rig.commands()).toEqual([]);
    expect(rig.podState('new')).toBe('Running True');
    expect(rig.store.get(NODE)?.pendingRemovals.size).toBe(0);
  });

  it('is given to a Pod that comes between the read and the uninstall', async () => {
    await strangeBase();
    await rig.pass(8_000);
    const { api } = rig;
    const list = api.listPods;
    api.listPods = async (selector, project) => {
      const pods = await list(selector, project);
      rig.addPod({ name: 'new', modules: [STRANGE] });
      return pods;
    };
    await rig.pass(30_000);
    expect(rig.commands()).toEqual([]);
    expect(rig.podState('new')).toBe('Running True');
  });

  it('stays while the API server cannot be read, which is tried again each 10 s', async () => {
    await strangeBase();
    rig.api.fail('list pods', 500, 3);
    await rig.pass(28_000);
    expect(rig.commands()).toEqual([]);
    expect(reads().length).toBeLessThanOrEqual(3);
    await rig.pass(25_000);
    expect(rig.commands()).toEqual([`uninstall b1 ${STRANGE}`]);
  });

  it('stays while the base has not told its own name', async () => {
    const base = await strangeBase({}, { answersHealth: false });
    await rig.pass(60_000);
    expect(rig.commands()).toEqual([]);
    base.answersHealth = true;
    await rig.pass(140_000);
    expect(rig.commands()).toEqual([`uninstall b1 ${STRANGE}`]);
  });

  it('that is the base itself is none', async () => {
    const masterName = 'the-base';
    await strangeBase({}, { modules: new Map([['the-base:1.0.0', 'ACTIVATED']]), health: makeHealth({ masterName }) });
    await rig.pass(120_000);
    expect([rig.commands(), reads(), await gauge()]).toEqual([[], [], 0]);
  });

  it('is tried again when its uninstall fails', async () => {
    const base = await strangeBase();
    base.answersCommands = false;
    await rig.pass(13_000);
    rig.fail('b1', 'uninstall', STRANGE, 'in use');
    base.answersCommands = true;
    await rig.pass(15_000);
    expect(rig.modulesOf('b1')).toEqual([]);
    expect(rig.store.get(NODE)?.pendingRemovals.size).toBe(0);
  });

  it('that goes by itself meanwhile is forgotten', async () => {
    const base = await strangeBase();
    base.modules.clear();
    await rig.pass(120_000);
    expect([rig.commands(), reads(), await gauge()]).toEqual([[], [], 0]);
    expect([...(rig.store.get(NODE)?.ledger.records() ?? [])]).toEqual([]);
  });

  it('left by a Pod that was forced away while no controller ran is removed by the next one', async () => {
    rig = new CoreRig();
    rig.remember('b1');
    rig.base('b1', {
      modules: new Map([
        [STRANGE, 'ACTIVATED'],
        ['biz1:1.0.0', 'ACTIVATED'],
      ]),
    });
    rig.api.put('pod', makePodObject());
    await rig.start();
    rig.heartbeat('b1');
    await rig.pass(20_000);
    expect(rig.commands()).toEqual([`uninstall b1 ${STRANGE}`]);
    expect(rig.podState('p1')).toBe('Running True');
  });
});

describe('many bases with modules that no Pod asks for', () => {
  it('share one read of the API server, and the next begins 10 s later', async () => {
    rig = new CoreRig();
    for (const identity of ['b1', 'b2', 'b3']) rig.remember(identity);
    await rig.start();
    for (const identity of ['b1', 'b2', 'b3']) rig.base(identity, { modules: new Map([[STRANGE, 'ACTIVATED']]) });
    for (const identity of ['b1', 'b2', 'b3']) rig.heartbeat(identity);
    const waiting = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request.startsWith('list pods') ? waiting.promise : undefined);
    await rig.pass(20_000);
    expect(reads().length).toBeLessThanOrEqual(1);
    waiting.resolve();
    await settle();
    await rig.pass(12_000);
    expect(rig.commands().sort()).toEqual(['b1', 'b2', 'b3'].map((identity) => `uninstall ${identity} ${STRANGE}`));
    expect(reads().length).toBeLessThanOrEqual(1);
  });
});
