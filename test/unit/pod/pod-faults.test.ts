import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeResult } from '../../support/builders.ts';
import { CoreRig } from '../../support/core-rig.ts';

const KEY = 'biz1:1.0.0';
let rig: CoreRig;

beforeEach(async () => {
  rig = new CoreRig();
  await rig.start();
  await rig.foundBase('b1');
});

afterEach(() => rig.stop());

async function runningPod(): Promise<void> {
  rig.addPod();
  await rig.pass(5_000);
  rig.tunnel.take();
  rig.api.take();
}

const commands = (): string[] => rig.tunnel.take().filter((line) => !/^(list|health)/.test(line));

describe('a module that ends by itself on a live base', () => {
  it.each(['STOPPED', 'BROKEN'] as const)(
    '(%s) is uninstalled and installed again, with one restart',
    async (state) => {
      await runningPod();
      rig.bases.get('b1')?.modules.set(KEY, state);
      rig.list('b1');
      await rig.pass(10_000);
      expect(commands()).toEqual([`uninstall b1 ${KEY}`, `install b1 ${KEY}`]);
      expect(rig.container('p1')).toMatchObject({
        restartCount: 1,
        lastState: { terminated: { exitCode: 1, reason: `Module${state === 'BROKEN' ? 'Broken' : 'Stopped'}` } },
      });
      expect(rig.podState('p1')).toBe('Running True');
    },
  );

  it('(vanished) is installed again after a second list, with one restart and without a new Pod', async () => {
    await runningPod();
    rig.bases.get('b1')?.modules.clear();
    rig.list('b1');
    await rig.pass(10_000);
    expect(commands()).toEqual([`install b1 ${KEY}`]);
    expect(rig.container('p1')?.restartCount).toBe(1);
    expect(rig.api.take('delete')).toEqual([]);
  });

  it('is not restarted for one list that lacked it by mistake', async () => {
    await runningPod();
    const modules = rig.bases.get('b1')?.modules;
    modules?.clear();
    rig.list('b1');
    modules?.set(KEY, 'ACTIVATED');
    await rig.pass(10_000);
    expect(commands()).toEqual([]);
    expect(rig.container('p1')?.restartCount).toBe(0);
    expect(rig.api.take('patch pod')).toEqual([]);
  });

  it('counts each restart once, however often it is looked at', async () => {
    await runningPod();
    for (const count of [1, 2, 3]) {
      rig.restart('b1');
      await rig.pass(70_000);
      rig.list('b1');
      await rig.pass(10_000);
      expect(rig.container('p1')?.restartCount).toBe(count);
    }
  });

  it('leaves a Pod that must not restart Failed, and is uninstalled', async () => {
    rig.addPod({ name: 'once', restartPolicy: 'Never', modules: ['once:1'] });
    await rig.pass(5_000);
    commands();
    rig.bases.get('b1')?.modules.set('once:1', 'BROKEN');
    rig.list('b1');
    await rig.pass(60_000);
    expect(rig.api.pod('once')?.status?.phase).toBe('Failed');
    expect(rig.container('once')?.state?.terminated?.reason).toBe('ModuleBroken');
    expect(commands()).toEqual(['uninstall b1 once:1']);
  });
});

describe('a base that was restarted', () => {
  it('gets its modules again: Pods not ready, restartCount + 1, none replaced', async () => {
    await runningPod();
    const base = rig.bases.get('b1');
    if (base) base.answersCommands = false;
    rig.restart('b1');
    await rig.pass(1_000);
    expect(rig.podState('p1')).toBe('Running False ContainersNotReady');
    expect(rig.events).toContain('Warning Rebooted vnode.b1');
    expect(rig.events).toContain('Warning BaseRestarted p1');
    base?.modules.set(KEY, 'ACTIVATED');
    rig.vnodes.onOperationResult(rig.envelope('b1'), makeResult('install', KEY));
    await rig.pass(5_000);
    expect(rig.container('p1')).toMatchObject({ restartCount: 1, ready: true });
    expect(commands()).toEqual([`install b1 ${KEY}`]);
    expect(rig.api.take('delete')).toEqual([]);
  });

  it('is seen by a run time that went back', async () => {
    await runningPod();
    const base = rig.bases.get('b1');
    base?.modules.clear();
    rig.vnodes.onHealth(rig.envelope('b1'), { ...rig.bases.get('b1')?.health, runTimeSeconds: 3 } as never);
    if (base) base.health = { ...base.health, runTimeSeconds: 3 };
    await rig.pass(5_000);
    expect(rig.container('p1')).toMatchObject({ restartCount: 1, ready: true });
    expect(rig.events.filter((event) => event.startsWith('Warning Rebooted'))).toHaveLength(1);
  });

  it('is asked again within seconds when it did not hear the first question', async () => {
    await runningPod();
    const base = rig.bases.get('b1');
    if (base) base.answersLists = false;
    rig.restart('b1');
    await rig.pass(100);
    if (base) base.answersLists = true;
    await rig.pass(10_000);
    expect(rig.container('p1')?.restartCount).toBe(1);
  });
});

describe('a command that cannot be handed over', () => {
  it('is sent again once the list was looked at, and is no failure', async () => {
    rig.tunnel.refuses = 'install';
    rig.addPod();
    await rig.pass(1_500);
    rig.tunnel.refuses = undefined;
    await rig.pass(10_000);
    expect(rig.podState('p1')).toBe('Running True');
    expect(rig.events.filter((event) => event.startsWith('Warning'))).toEqual([]);
  });

  it('is not sent while the link is down, and is once it is up', async () => {
    rig.linkDown();
    rig.addPod();
    await rig.pass(20_000);
    expect(commands()).toEqual([]);
    rig.linkUp();
    await rig.pass(2_000);
    expect(commands()).toEqual([`install b1 ${KEY}`]);
  });

  it('is refused as busy: the base is looked at, and nothing counts as failed', async () => {
    const base = rig.bases.get('b1');
    if (base) base.answersCommands = false;
    rig.addPod();
    await rig.pass(100);
    rig.vnodes.onOperationResult(rig.envelope('b1'), makeResult('install', KEY, { outcome: 'busy' }));
    base?.modules.set(KEY, 'RESOLVED');
    await rig.pass(30_000);
    expect(commands()).toEqual([`install b1 ${KEY}`]);
    base?.modules.set(KEY, 'ACTIVATED');
    await rig.pass(10_000);
    expect(rig.podState('p1')).toBe('Running True');
    expect(rig.events.filter((event) => event.startsWith('Warning'))).toEqual([]);
  });
});

describe('an API server that fails', () => {
  it.each([500, 503, 429, 409])('with %i: the status is written again, the module installed once', async (status) => {
    rig.api.fail('patch pod', status, 3);
    rig.addPod();
    await rig.pass(10_000);
    expect(rig.podState('p1')).toBe('Running True');
    expect(commands()).toEqual([`install b1 ${KEY}`]);
  });

  it('with 404 or 422: the Pod is gone or another one, and nothing is tried again', async () => {
    await runningPod();
    // The look at the base after an install, and the routine question 19 s after it was met.
    await rig.pass(20_000);
    rig.podInformer.isPaused = true;
    rig.api.drop('pod', 'p1');
    rig.addPod({ uid: 'another' });
    rig.bases.get('b1')?.modules.set(KEY, 'DEACTIVATED');
    rig.bases.get('b1')?.modules.set('biz1:other', 'ACTIVATED');
    Object.assign(rig.bases.get('b1') ?? {}, { answersCommands: false });
    rig.list('b1');
    await rig.pass(1_000);
    expect(rig.api.take('patch pod')).toEqual(['patch pod/status ns/p1 = 422']);
    expect(rig.api.pod('p1')?.status).toEqual({ phase: 'Pending' });
  });

  it('for one Pod does not keep the others of its base from their status, their modules and their end', async () => {
    rig.addPod({ name: 'gone', modules: ['gone:1'], createdAt: '2025-01-03T00:00:00Z' });
    await rig.pass(5_000);
    rig.api.fail('patch pod/status ns/poison', 403, 1_000);
    rig.addPod({ name: 'poison', modules: ['poison:1'], createdAt: '2025-01-01T00:00:00Z' });
    rig.addPod({ name: 'other', modules: ['other:1'], createdAt: '2025-01-02T00:00:00Z' });
    rig.deletePod('gone');
    await rig.pass(10_000);
    expect(rig.podState('other')).toBe('Running True');
    expect(rig.api.pod('gone')).toBeUndefined();
  });

  it('loses an answer: the status is as it should be, and is written at most once more', async () => {
    rig.api.loseAnswer('patch pod');
    rig.addPod();
    await rig.pass(60_000);
    expect(rig.podState('p1')).toBe('Running True');
    expect(rig.api.take('patch pod').length).toBeLessThanOrEqual(2);
  });
});

describe('two versions of a module on one base', () => {
  it('the old Pod is told first that it is not active, then the new one is ready', async () => {
    await runningPod();
    const base = rig.bases.get('b1');
    if (base) base.answersCommands = false;
    rig.addPod({ name: 'p2', modules: ['biz1:2.0.0'], createdAt: '2026-02-01T00:00:00Z' });
    await rig.pass(100);
    rig.api.take();
    base?.modules.set(KEY, 'DEACTIVATED').set('biz1:2.0.0', 'ACTIVATED');
    rig.vnodes.onOperationResult(rig.envelope('b1'), makeResult('install', 'biz1:2.0.0'));
    await rig.pass(5_000);
    expect(rig.api.take('patch pod')).toEqual(['patch pod/status ns/p1', 'patch pod/status ns/p2']);
    expect(rig.container('p1')).toMatchObject({ ready: false, state: { waiting: { reason: 'BizDeactivated' } } });
    expect(rig.podState('p2')).toBe('Running True');
    expect(rig.container('p1')?.restartCount).toBe(0);
  });
});
