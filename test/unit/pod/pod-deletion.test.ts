import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeResult } from '../../support/builders.ts';
import { CoreRig } from '../../support/core-rig.ts';
import { settle } from '../../support/fake-clock.ts';

const KEY = 'biz1:1.0.0';
let rig: CoreRig;

beforeEach(async () => {
  rig = new CoreRig();
  await rig.start();
  await rig.foundBase('b1');
  rig.addPod({ uid: 'first' });
  await rig.pass(3_000);
  rig.tunnel.take();
  rig.api.take();
});

afterEach(() => rig.stop());

const commands = (): string[] => rig.tunnel.take().filter((line) => !/^(list|health)/.test(line));

describe('a deleted vPod', () => {
  it('goes when the base has confirmed the uninstall, and not before', async () => {
    const base = rig.bases.get('b1');
    if (base) base.answersCommands = false;
    rig.deletePod('p1');
    await rig.pass(1_000);
    expect(commands()).toEqual([`uninstall b1 ${KEY}`]);
    expect(rig.events).toContain('Normal Killing p1');
    expect(rig.api.pod('p1')).toBeDefined();
    base?.modules.delete(KEY);
    rig.vnodes.onOperationResult(rig.envelope('b1'), makeResult('uninstall', KEY));
    await rig.pass(0);
    expect(rig.api.pod('p1')).toBeUndefined();
    expect(rig.api.take('delete')).toEqual(['delete pod ns/p1']);
  });

  it('does not wait for another one of its base, nor for a status that is being written', async () => {
    rig.addPod({ name: 'p2', uid: 'second', modules: ['biz2:1.0.0'] });
    await rig.pass(3_000);
    const turn = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request.endsWith('/p1') ? turn.promise : undefined);
    rig.deletePod('p1');
    rig.deletePod('p2');
    await rig.pass(3_000);
    expect([rig.api.pod('p1') === undefined, rig.api.pod('p2') === undefined]).toEqual([false, true]);
    turn.resolve();
    await rig.pass(1_000);
    expect(rig.api.pod('p1')).toBeUndefined();
  });

  it('stays Terminating with the base’s words while its uninstall fails, and is tried again ever later', async () => {
    const base = rig.bases.get('b1');
    if (base) base.answersCommands = false;
    rig.deletePod('p1');
    for (const waitMs of [10_000, 20_000, 40_000]) {
      await rig.pass(100);
      expect(commands()).toEqual([`uninstall b1 ${KEY}`]);
      const failed = makeResult('uninstall', KEY, { outcome: 'failed', message: `in use` });
      rig.vnodes.onOperationResult(rig.envelope('b1'), failed);
      await rig.pass(waitMs - 200);
      expect(commands()).toEqual([]);
      expect(rig.api.pod('p1')?.status).toMatchObject({ reason: 'FailedKillPod', message: `module ${KEY}: in use` });
      await rig.pass(200);
    }
    // Once, however often it is tried.
    expect(rig.events.filter((event) => event === 'Warning FailedKillPod p1')).toHaveLength(1);
    if (base) base.answersCommands = true;
    await rig.pass(200_000);
    expect(rig.api.pod('p1')).toBeUndefined();
  });

  it('shows the newest words of the base, each once', async () => {
    const base = rig.bases.get('b1');
    if (base) base.answersCommands = false;
    rig.deletePod('p1');
    for (const words of ['in use', 'in use', 'locked']) {
      await rig.pass(60_000);
      rig.fail('b1', 'uninstall', KEY, words);
      await rig.pass(1_000);
      expect(rig.api.pod('p1')?.status?.message).toBe(`module ${KEY}: ${words}`);
    }
    expect(rig.events.filter((event) => event === 'Warning FailedKillPod p1')).toHaveLength(2);
  });

  it('goes at once when its module is not on the base any more', async () => {
    rig.bases.get('b1')?.modules.clear();
    rig.deletePod('p1');
    await rig.pass(5_000);
    expect(rig.api.pod('p1')).toBeUndefined();
  });

  it('that was forced away is uninstalled from the event that tells so', async () => {
    rig.api.drop('pod', 'p1');
    await rig.pass(5_000);
    expect(commands()).toEqual([`uninstall b1 ${KEY}`]);
    expect(rig.store.get('vnode.b1')?.pendingRemovals.size).toBe(0);
  });

  it('owes a base that lists nothing no more removals than it may have modules', async () => {
    await rig.foundBase('b2', { answersLists: false });
    const names = Array.from({ length: 20 }, (_, index) => `large${index}`);
    for (const name of names) {
      const modules = Array.from({ length: 250 }, (_, index) => `${name}-m${index}:1`);
      rig.addPod({ name, node: 'vnode.b2', modules });
    }
    await rig.pass(1_000);
    for (const name of names) rig.api.drop('pod', name);
    await rig.pass(1_000);
    expect(rig.store.get('vnode.b2')?.pendingRemovals.size).toBe(4_000);
  });

  it('that the cluster has forgotten leaves a module that no Pod asks for: nobody deleted it', async () => {
    rig.podInformer.isPaused = true;
    rig.api.drop('pod', 'p1');
    await rig.podInformer.goBackTo([]);
    await rig.pass(8_000);
    expect([commands(), rig.store.get('vnode.b1')?.pendingRemovals.size]).toEqual([[], 0]);
    expect([...(rig.store.get('vnode.b1')?.unknown.keys() ?? [])]).toEqual([KEY]);
  });

  it('leaves the module to a new Pod of the same name: a late delete never hurts it', async () => {
    rig.podInformer.isPaused = true;
    rig.deletePod('p1');
    rig.api.drop('pod', 'p1');
    rig.addPod({ uid: 'second' });
    rig.podInformer.resume();
    await rig.pass(30_000);
    expect(commands()).toEqual([]);
    expect(rig.podState('p1')).toBe('Running True');
    expect(rig.api.take('delete')).toEqual([]);
  });

  it('leaves the module to another Pod that asks for the same', async () => {
    rig.addPod({ name: 'p2' });
    await rig.pass(1_000);
    rig.deletePod('p1');
    await rig.pass(30_000);
    expect(commands()).toEqual([]);
    expect(rig.api.pod('p1')).toBeUndefined();
    expect(rig.podState('p2')).toBe('Running True');
    rig.deletePod('p2');
    await rig.pass(1_000);
    expect(commands()).toEqual([`uninstall b1 ${KEY}`]);
  });

  it('is deleted again when the API server failed', async () => {
    rig.api.fail('delete pod', 500, 2);
    rig.deletePod('p1');
    await rig.pass(5_000);
    expect(rig.api.take('delete')).toEqual(['delete pod ns/p1 = 500', 'delete pod ns/p1 = 500', 'delete pod ns/p1']);
    expect(commands()).toEqual([`uninstall b1 ${KEY}`]);
  });

  it('owes nothing when the answer to its deletion was lost', async () => {
    rig.api.loseAnswer('delete pod');
    rig.deletePod('p1');
    await rig.pass(30_000);
    expect(rig.api.pod('p1')).toBeUndefined();
    expect(commands()).toEqual([`uninstall b1 ${KEY}`]);
    expect(rig.store.get('vnode.b1')?.pendingRemovals.size).toBe(0);
  });

  it('is deleted once, although the watch shows it for a while', async () => {
    rig.deletePod('p1');
    rig.podInformer.isPaused = true;
    await rig.pass(30_000);
    expect(rig.api.take('delete')).toEqual(['delete pod ns/p1']);
    rig.podInformer.resume();
    await rig.pass(10_000);
    expect(rig.podInformer.list()).toEqual([]);
  });

  it('keeps its debt when it is forced away while the debt of an earlier one is being settled', async () => {
    rig.api.drop('pod', 'p1');
    rig.addPod({ name: 'p2' });
    const written = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request.startsWith('patch pod') ? written.promise : undefined);
    await settle();
    rig.api.drop('pod', 'p2');
    written.resolve();
    await rig.pass(10_000);
    expect(rig.bases.get('b1')?.modules.size).toBe(0);
  });
});

describe('two vPods with one module on one base', () => {
  it('share it when they ask for the same, and the second is warned', async () => {
    rig.addPod({ name: 'p2', createdAt: '2026-01-02T00:00:00Z' });
    await rig.pass(3_000);
    expect(commands()).toEqual([]);
    expect(rig.podState('p2')).toBe('Running True');
    expect(rig.events).toContain('Warning ModuleShared p2');
    expect(rig.events).not.toContain('Warning ModuleShared p1');
  });

  it('with different args: the second waits and is told to change BIZ_VERSION, and gets its turn', async () => {
    rig.addPod({ name: 'p2', args: ['--other'], createdAt: '2026-01-02T00:00:00Z' });
    await rig.pass(60_000);
    expect(commands()).toEqual([]);
    expect(rig.container('p2')?.state?.waiting?.reason).toBe('VersionInUse');
    expect(rig.events).toContain('Warning VersionInUse p2');
    expect(rig.eventTexts.join()).toContain('change BIZ_VERSION');
    expect(rig.podState('p1')).toBe('Running True');
    rig.deletePod('p1');
    await rig.pass(5_000);
    expect(commands()).toEqual([`uninstall b1 ${KEY}`, `install b1 ${KEY}`]);
    expect(rig.tunnel.specs.get(KEY)?.args).toEqual(['--other']);
    expect(rig.podState('p2')).toBe('Running True');
    expect(rig.container('p2')?.restartCount).toBe(0);
  });

  it('with different args: the one that waits goes at once when deleted, and hurts nobody', async () => {
    rig.addPod({ name: 'p2', args: ['--other'], createdAt: '2025-01-01T00:00:00Z' });
    await rig.pass(3_000);
    rig.deletePod('p2');
    await rig.pass(1_000);
    expect(rig.api.pod('p2')).toBeUndefined();
    expect(commands()).toEqual([]);
    expect(rig.podState('p1')).toBe('Running True');
  });

  it('keep their order after a restart of the base: the one that waits does not take over', async () => {
    rig.addPod({ name: 'p2', args: ['--other'], createdAt: '2025-01-01T00:00:00Z' });
    await rig.pass(3_000);
    for (let times = 0; times < 3; times++) {
      rig.restart('b1');
      await rig.pass(60_000);
    }
    expect(rig.podState('p1')).toBe('Running True');
    expect(rig.container('p2')?.state?.waiting?.reason).toBe('VersionInUse');
  });
});
