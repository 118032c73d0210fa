import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LEDGER_OPTIONS } from '../../support/builders.ts';
import { CoreRig } from '../../support/core-rig.ts';
import { settle } from '../../support/fake-clock.ts';
import type { RigBase } from '../../support/rig-base.ts';

const OLD = '2026-01-01T00:00:00Z';
const YOUNG = '2026-01-02T00:00:00Z';
const YOUNGEST = '2026-01-03T00:00:00Z';
let rig: CoreRig;
let base: RigBase;

beforeEach(async () => {
  rig = new CoreRig();
  await rig.start();
  base = await rig.foundBase('b1');
  rig.addPod({ name: 'v1', modules: ['biz1:1'], createdAt: OLD });
  await rig.pass(5_000);
  rig.commands();
  rig.api.take();
});

afterEach(() => rig.stop());

function addReplacer(version = '2', createdAt = YOUNG, more: Parameters<CoreRig['addPod']>[0] = {}): void {
  const modules = [`biz1:${version}`];
  rig.addPod({ name: `v${version}`, modules, createdAt, strategy: 'uninstallThenInstall', ...more });
}

describe('a Pod with uninstallThenInstall whose victim has a preStop.sleep', () => {
  async function replaced(more: Parameters<CoreRig['addPod']>[0] = {}): Promise<void> {
    rig.addPod({ name: 'slow', modules: ['biz2:1'], createdAt: OLD, sleepSeconds: 20, ...more });
    await rig.pass(5_000);
    rig.commands();
    rig.addPod({ name: 'next', modules: ['biz2:2'], createdAt: YOUNG, strategy: 'uninstallThenInstall' });
    await rig.pass(1_000);
  }

  it('installs when the other Pod has been not Ready for as long', async () => {
    await replaced();
    expect([rig.waiting('slow'), rig.commands()]).toEqual(['ModuleReplaced', []]);
    expect(rig.modulesOf('b1')).toContain('biz2:1 ACTIVATED');
    await rig.pass(18_500);
    expect(rig.commands()).toEqual([]);
    await rig.pass(1_000);
    expect(rig.commands()).toEqual(['install b1 biz2:2']);
    await rig.pass(5_000);
    expect(rig.podState('next')).toBe('Running True');
  });

  it('counts the sleep from the write of the status, however late that is', async () => {
    rig.addPod({ name: 'slow', modules: ['biz2:1'], createdAt: OLD, sleepSeconds: 20 });
    await rig.pass(5_000);
    const written = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request === 'patch pod/status ns/slow' ? written.promise : undefined);
    rig.addPod({ name: 'next', modules: ['biz2:2'], createdAt: YOUNG, strategy: 'uninstallThenInstall' });
    await rig.pass(25_000);
    rig.commands();
    written.resolve();
    await rig.pass(19_000);
    expect([rig.waiting('slow'), rig.commands()]).toEqual(['ModuleReplaced', []]);
    await rig.pass(2_000);
    expect(rig.commands()).toEqual(['install b1 biz2:2']);
  });

  it('leaves the other one alone when it goes before the status is written', async () => {
    rig.addPod({ name: 'slow', modules: ['biz2:1'], createdAt: OLD, sleepSeconds: 20 });
    await rig.pass(5_000);
    rig.api.fail('patch pod/status ns/slow', 500, 1_000);
    rig.addPod({ name: 'next', modules: ['biz2:2'], createdAt: YOUNG, strategy: 'uninstallThenInstall' });
    await rig.pass(1_000);
    rig.deletePod('next');
    await rig.pass(1_000);
    rig.api.heal();
    await rig.pass(100_000);
    expect(rig.podState('slow')).toBe('Running True');
    rig.commands();
    rig.deletePod('slow');
    await rig.pass(19_000);
    expect(rig.commands()).toEqual([]);
    await rig.pass(2_000);
    expect(rig.commands()).toEqual(['uninstall b1 biz2:1']);
    expect(rig.api.pod('slow')).toBeUndefined();
  });

  it('goes on when the other one is deleted meanwhile, and not before its sleep is over', async () => {
    await replaced();
    rig.deletePod('slow');
    await rig.pass(17_000);
    expect(rig.commands()).toEqual([]);
    await rig.pass(10_000);
    expect(rig.api.pod('slow')).toBeUndefined();
    expect(rig.podState('next')).toBe('Running True');
    expect(rig.modulesOf('b1')).toContain('biz2:2 ACTIVATED');
  });
});

describe('a Pod with uninstallThenInstall', () => {
  it('has the base take the other versions off, and their Pods show who replaced them', async () => {
    addReplacer();
    await rig.pass(10_000);
    expect(rig.tunnel.specs.get('biz1:2')?.strategy).toBe('uninstallThenInstall');
    expect(rig.modulesOf('b1')).toEqual(['biz1:2 ACTIVATED']);
    expect([rig.waiting('v1'), rig.podState('v2')]).toEqual(['ModuleReplaced', 'Running True']);
    expect(rig.container('v1')?.state?.waiting?.message).toContain('version 2 of Pod ns/v2');
    expect(rig.events).toContain('Normal ModuleReplaced v1');
    rig.commands();
    await rig.pass(300_000);
    expect(rig.commands()).toEqual([]);
  });

  it('replaces nothing when it is too large to be installed', async () => {
    const env = [
      { name: 'BIZ_VERSION', value: '2' },
      { name: 'LARGE', value: 'x'.repeat(70_000) },
    ];
    const spec = { containers: [{ name: 'biz1', image: 'http://jars/biz1.jar', env }] };
    addReplacer('2', YOUNG, { modules: [], spec });
    await rig.pass(10_000);
    expect([rig.podState('v1'), rig.waiting('v2')]).toEqual(['Running True', 'CreateContainerConfigError']);
    expect(rig.commands()).toEqual([]);
  });

  it('sends its install when the other Pods are written as not ready, and not before', async () => {
    const written = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request === 'patch pod/status ns/v1' ? written.promise : undefined);
    addReplacer();
    await settle();
    expect(rig.commands()).toEqual([]);
    written.resolve();
    await rig.pass(5_000);
    expect(rig.commands()[0]).toBe('install b1 biz1:2');
  });

  it('sends no install as long as the other Pods cannot be written as not ready', async () => {
    rig.api.fail('patch pod/status ns/v1', 500, 50);
    addReplacer();
    await rig.pass(10_000);
    expect([rig.podState('v1'), rig.commands()]).toEqual(['Running True', []]);
    rig.api.heal();
    await rig.pass(30_000);
    expect([rig.waiting('v1'), rig.podState('v2')]).toEqual(['ModuleReplaced', 'Running True']);
  });

  it('tries that write again ever later, and not in a loop', async () => {
    rig.api.fail('patch pod/status ns/v1', 500, 50);
    addReplacer();
    await rig.pass(10_000);
    expect(rig.api.take('patch pod/status ns/v1').length).toBeLessThan(20);
  });

  it('whose jar is missing leaves the others waiting, and the base with what it kept', async () => {
    base.answersCommands = false;
    addReplacer();
    await rig.pass(1_000);
    for (let times = 0; times < 5; times++) {
      rig.fail('b1', 'install', 'biz1:2', 'FileNotFoundException');
      await rig.pass(100_000);
    }
    expect(new Set(rig.commands())).toEqual(new Set(['install b1 biz1:2']));
    expect(rig.waiting('v1')).toBe('ModuleReplaced');
    expect(rig.waiting('v2')).toBe('ImagePullBackOff');
    base.answersCommands = true;
    rig.deletePod('v2');
    await rig.pass(100_000);
    expect(rig.podState('v1')).toBe('Running True');
    expect(rig.api.pod('v2')).toBeUndefined();
  });

  it('gets the others uninstalled by us when the agent does not know the strategy', async () => {
    base.answersCommands = false;
    addReplacer();
    await rig.pass(1_000);
    base.modules.set('biz1:2', 'ACTIVATED').set('biz1:1', 'DEACTIVATED');
    base.answersCommands = true;
    rig.list('b1');
    await rig.pass(10_000);
    expect(rig.commands()).toEqual(['install b1 biz1:2', 'uninstall b1 biz1:1']);
    expect(rig.waiting('v1')).toBe('ModuleReplaced');
  });

  it('gets the others uninstalled by us when the agent keeps the old one active', async () => {
    base.answersCommands = false;
    addReplacer();
    await rig.pass(1_000);
    base.modules.set('biz1:2', 'DEACTIVATED');
    base.answersCommands = true;
    rig.list('b1');
    await rig.pass(120_000);
    expect(rig.modulesOf('b1')).toEqual(['biz1:2 ACTIVATED']);
    expect([rig.waiting('v1'), rig.podState('v2')]).toEqual(['ModuleReplaced', 'Running True']);
  });

  it('lets the other version run again when it goes, which counts as a restart', async () => {
    addReplacer();
    await rig.pass(10_000);
    rig.deletePod('v2');
    await rig.pass(60_000);
    expect(rig.modulesOf('b1')).toEqual(['biz1:1 ACTIVATED']);
    expect(rig.podState('v1')).toBe('Running True');
    expect(rig.container('v1')).toMatchObject({ restartCount: 1 });
    expect(rig.api.pod('v2')).toBeUndefined();
  });

  it('replaces nothing twice when the controller is started anew during its install', async () => {
    base.answersCommands = false;
    addReplacer();
    await rig.pass(5_000);
    const next = new CoreRig();
    next.base('b1', { answersCommands: false, modules: new Map([['biz1:2', 'RESOLVED']]) });
    for (const name of ['v1', 'v2']) next.api.put('pod', rig.api.pod(name) as never);
    await next.start();
    next.heartbeat('b1');
    await next.pass(20_000);
    expect(next.commands()).toEqual([]);
    expect(next.waiting('v1')).toBe('ModuleReplaced');
    next.bases.get('b1')?.modules.set('biz1:2', 'ACTIVATED');
    await next.pass(20_000);
    expect(next.commands()).toEqual([]);
    expect(next.podState('v2')).toBe('Running True');
    await next.stop();
  });

  it.each(['a', 'z'])('and one of the same second do not replace each other for ever (UID %s)', async (uid) => {
    addReplacer('2', YOUNG, { uid });
    addReplacer('3', YOUNG, { uid: 'm' });
    await rig.pass(30_000);
    rig.commands();
    await rig.pass(300_000);
    expect(rig.commands()).toEqual([]);
    expect(rig.modulesOf('b1')).toHaveLength(1);
  });

  it('that is installed again does not take off the version of a younger Pod', async () => {
    addReplacer();
    await rig.pass(5_000);
    rig.addPod({ name: 'v3', modules: ['biz1:3'], createdAt: YOUNGEST });
    await rig.pass(5_000);
    expect(rig.modulesOf('b1')).toContain('biz1:3 DEACTIVATED');
    base.modules.set('biz1:2', 'STOPPED').set('biz1:3', 'ACTIVATED');
    rig.list('b1');
    await rig.pass(60_000);
    expect(rig.modulesOf('b1')).toContain('biz1:3 ACTIVATED');
    expect(rig.container('v3')).toMatchObject({ restartCount: 0 });
    expect(rig.commands().filter((line) => line === 'install b1 biz1:3')).toHaveLength(1);
  });

  it('takes off nothing of a Pod in its preStop sleep before that is over', async () => {
    rig.addPod({ name: 'w1', modules: ['biz2:1'], createdAt: OLD, sleepSeconds: 20 });
    await rig.pass(5_000);
    rig.commands();
    rig.deletePod('w1');
    rig.addPod({ name: 'w2', modules: ['biz2:2'], createdAt: YOUNG, strategy: 'uninstallThenInstall' });
    await rig.pass(15_000);
    expect(rig.modulesOf('b1')).toContain('biz2:1 ACTIVATED');
    await rig.pass(15_000);
    expect(rig.podState('w2')).toBe('Running True');
    expect(rig.api.pod('w1')).toBeUndefined();
  });
});

describe('an install with uninstallThenInstall, on a base that takes its time', () => {
  beforeEach(() => {
    base.answersCommands = false;
  });

  it('follows the uninstall of the Pod that it replaces, and does not leave beside it', async () => {
    rig.deletePod('v1');
    addReplacer();
    await rig.pass(5_000);
    expect(rig.commands()).toEqual(['uninstall b1 biz1:1']);
    rig.answer('b1', 'uninstall', 'biz1:1');
    await settle();
    expect(rig.commands()).toEqual(['install b1 biz1:2']);
  });

  it('holds back the uninstall of a Pod that is deleted meanwhile, until it has ended', async () => {
    addReplacer();
    await rig.pass(1_000);
    expect(rig.commands()).toEqual(['install b1 biz1:2']);
    base.modules.set('biz1:1', 'DEACTIVATED').set('biz1:2', 'RESOLVED');
    rig.deletePod('v1');
    await rig.pass(100_000);
    expect(rig.commands()).toEqual([]);
    rig.answer('b1', 'install', 'biz1:2');
    base.answersCommands = true;
    await rig.pass(5_000);
    expect(rig.api.pod('v1')).toBeUndefined();
    expect(rig.podState('v2')).toBe('Running True');
    expect(rig.events.filter((event) => event.includes('FailedKillPod'))).toEqual([]);
  });

  it('waits for an uninstall that hangs until its deadline and no longer', async () => {
    rig.deletePod('v1');
    addReplacer();
    base.modules.set('biz1:1', 'DEACTIVATED');
    await rig.pass(LEDGER_OPTIONS.uninstallDeadlineMs - 1_000);
    expect(rig.commands()).toEqual(['uninstall b1 biz1:1']);
    await rig.pass(2_000);
    expect(rig.commands()).toEqual(['install b1 biz1:2']);
  });

  describe('behind an uninstall that failed', () => {
    async function failUninstall(): Promise<void> {
      rig.deletePod('v1');
      await rig.pass(1_000);
      rig.fail('b1', 'uninstall', 'biz1:1', 'no');
      await settle();
      rig.commands();
    }

    it('leaves although the status of a Pod with other modules cannot be written', async () => {
      rig.addPod({ name: 'poison', modules: ['poison:1'] });
      await rig.pass(1_000);
      rig.api.fail('patch pod/status ns/poison', 500, 1_000);
      rig.answer('b1', 'install', 'poison:1');
      await failUninstall();
      addReplacer();
      await rig.pass(1_000);
      expect(rig.commands()).toEqual(['install b1 biz1:2']);
    });

    it('lets it go first when the status of the Pod that goes cannot be written, and follows', async () => {
      rig.api.fail('patch pod/status ns/v1', 500, 1_000);
      await failUninstall();
      addReplacer();
      await rig.pass(15_000);
      expect(rig.commands()).toEqual(['uninstall b1 biz1:1']);
      rig.answer('b1', 'uninstall', 'biz1:1');
      await rig.pass(10_000);
      expect(rig.api.pod('v1')).toBeUndefined();
      expect(rig.commands()).toEqual(['install b1 biz1:2']);
    });

    it('leaves as soon as that status is written', async () => {
      rig.api.fail('patch pod/status ns/v1', 500, 1_000);
      await failUninstall();
      addReplacer();
      await rig.pass(5_000);
      expect(rig.commands()).toEqual([]);
      rig.api.heal();
      await rig.pass(4_000);
      expect(rig.commands()).toEqual(['install b1 biz1:2']);
    });
  });

  it('lets other modules of the base come and go', async () => {
    addReplacer();
    rig.addPod({ name: 'w1', modules: ['biz2:1'] });
    await rig.pass(1_000);
    expect(rig.commands().sort()).toEqual(['install b1 biz1:2', 'install b1 biz2:1']);
  });
});

describe('a module that an earlier leader left in work for good', () => {
  it('is uninstalled as soon as its Pod is deleted', async () => {
    base.modules.set('biz1:1', 'RESOLVED');
    rig.list('b1');
    await rig.pass(1_000);
    rig.deletePod('v1');
    await rig.pass(10_000);
    expect(rig.commands()).toEqual(['uninstall b1 biz1:1']);
    expect(rig.api.pod('v1')).toBeUndefined();
  });
});

describe('a Pod whose annotation has a value that is none', () => {
  it('asks for nothing, and is told which there are', async () => {
    rig.addPod({ name: 'odd', modules: ['biz2:1'], strategy: 'replace' });
    await rig.pass(5_000);
    expect(rig.waiting('odd')).toBe('CreateContainerConfigError');
    expect(rig.container('odd')?.state?.waiting?.message).toContain('installOnly, uninstallThenInstall');
    expect(rig.commands()).toEqual([]);
  });

  it('keeps its module when that runs already: an annotation can be changed at any time', async () => {
    const pod = rig.api.pod('v1');
    if (pod === undefined) throw new Error('no pod');
    const annotations = { 'virtual-kubelet.koupleless.io/install-strategy': 'typo' };
    rig.api.put('pod', { ...pod, metadata: { ...pod.metadata, annotations } });
    await rig.pass(120_000);
    expect(rig.modulesOf('b1')).toEqual(['biz1:1 ACTIVATED']);
    expect(rig.commands()).toEqual([]);
  });
});
