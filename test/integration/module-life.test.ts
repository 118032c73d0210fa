import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { jarOf, modulePod } from '../support/manifests.ts';
import { ModuleRig } from '../support/module-rig.ts';
import { eventsOf, findPod, isReady, waitingReason } from '../support/observe.ts';
import { TRANSPORT } from '../support/transport.ts';
import { podPath } from '../support/world.ts';

let rig: ModuleRig;

beforeAll(async () => {
  rig = await ModuleRig.start({ count: 3 });
});

afterAll(() => rig?.stop());

/** Each test has modules of its own, so they need not wait for each other. */
describe.concurrent('a vPod', () => {
  it('with two modules is Ready only when both are, and takes both along', async () => {
    rig.fleet.setFault({ command: 'installBiz', bizName: 'slow', installMs: 3_000, times: 1 });
    await rig.create(modulePod('two', [{ name: 'quick' }, { name: 'slow' }], { nodeName: 'vnode.base-1' }));
    const half = await eventually(async () => {
      const pod = await findPod(rig.admin, 'two');
      expect(pod?.status?.containerStatuses?.map(({ ready }) => ready)).toEqual([true, false]);
      return pod;
    });
    expect(half?.status?.phase).toBe('Pending');
    expect(waitingReason(half, 1)).toBe('ContainerCreating');
    const pod = await rig.readyPod('two');
    expect(pod.status?.containerStatuses?.map(({ containerID }) => containerID)).toEqual([
      'koupleless://base-1/quick:1.0.0',
      'koupleless://base-1/slow:1.0.0',
    ]);
    await rig.remove('two');
    expect([...rig.modulesOf('base-1', 'quick'), ...rig.modulesOf('base-1', 'slow')]).toEqual([]);
  });

  it('without a .jar stays Pending with one Warning, and goes at once when deleted', async () => {
    const pod = modulePod('nginx', [{ name: 'nginx', image: 'nginx:1.29' }], { nodeName: 'vnode.base-1' });
    await rig.create(pod);
    await eventually(async () => {
      const found = await findPod(rig.admin, 'nginx');
      expect(found?.status).toMatchObject({ phase: 'Pending', reason: 'UnsupportedWorkload' });
      const warnings = (await eventsOf(rig.admin, 'Pod', 'nginx')).filter(
        ({ reason }) => reason === 'UnsupportedWorkload',
      );
      expect(warnings.map(({ count, type }) => ({ count, type }))).toEqual([{ count: 1, type: 'Warning' }]);
    });
    await rig.remove('nginx');
  });

  it('without BIZ_VERSION says so and installs nothing', async () => {
    const pod = modulePod('noversion', [{ name: 'noversion' }], { nodeName: 'vnode.base-1' });
    pod.spec.containers[0]?.env.splice(0);
    await rig.create(pod);
    await eventually(async () => {
      const found = await findPod(rig.admin, 'noversion');
      expect(waitingReason(found)).toBe('CreateContainerConfigError');
      expect(found?.status?.containerStatuses?.[0]?.state?.waiting?.message).toContain('BIZ_VERSION');
    });
    expect(rig.installs('noversion')).toEqual([]);
    await rig.remove('noversion');
  });

  it('that is force-deleted is uninstalled from that event', async () => {
    await rig.create(modulePod('forced', [{ name: 'forced' }], { nodeName: 'vnode.base-1' }));
    await rig.readyPod('forced');
    await rig.admin.delete(podPath('forced'), { gracePeriodSeconds: 0 });
    await eventually(() => expect(rig.modulesOf('base-1', 'forced')).toEqual([]));
  });

  it('under the same name with a new UID is another Pod: the late end of the old one does not hurt it', async () => {
    const release = rig.fleet.setFault({ command: 'uninstallBiz', bizName: 'again', answers: 'never' });
    await rig.create(modulePod('again', [{ name: 'again' }], { nodeName: 'vnode.base-2' }));
    const first = await rig.readyPod('again');
    await rig.admin.delete(podPath('again'), { gracePeriodSeconds: 0 });
    await rig.create(modulePod('again', [{ name: 'again' }], { nodeName: 'vnode.base-2' }));
    release();
    const second = await rig.readyPod('again');
    expect(second.metadata.uid).not.toBe(first.metadata.uid);
    expect(rig.modulesOf('base-2', 'again')).toEqual(['again:1.0.0 ACTIVATED']);
    await rig.remove('again');
    expect(rig.modulesOf('base-2', 'again')).toEqual([]);
  });

  it('shares a module with another one that wants the very same, with a Warning; uninstalled with the last', async () => {
    for (const name of ['share-a', 'share-b']) {
      await rig.create(modulePod(name, [{ name: 'shared' }], { nodeName: 'vnode.base-3' }));
      await rig.readyPod(name);
    }
    expect(rig.installs('shared')).toHaveLength(1);
    await eventually(async () => {
      const reasons = (await eventsOf(rig.admin, 'Pod', 'share-b')).map(({ reason }) => reason);
      expect(reasons).toContain('ModuleShared');
    });
    await rig.remove('share-a');
    expect(rig.modulesOf('base-3', 'shared')).toEqual(['shared:1.0.0 ACTIVATED']);
    expect(isReady(await findPod(rig.admin, 'share-b'))).toBe(true);
    await rig.remove('share-b');
    expect(rig.modulesOf('base-3', 'shared')).toEqual([]);
  });

  it('waits with VersionInUse while another Pod has the version with another URL, and goes on when that is gone', async () => {
    await rig.create(modulePod('holder', [{ name: 'dup' }], { nodeName: 'vnode.base-3' }));
    await rig.readyPod('holder');
    const other = modulePod('waiter', [{ name: 'dup', image: jarOf('dup-other', '1.0.0') }], {
      nodeName: 'vnode.base-3',
    });
    await rig.create(other);
    await eventually(async () => {
      const waiter = await findPod(rig.admin, 'waiter');
      expect(waitingReason(waiter)).toBe('VersionInUse');
      const messages = (await eventsOf(rig.admin, 'Pod', 'waiter')).map(({ message }) => message);
      expect(messages.join('\n')).toContain('change BIZ_VERSION');
    });
    await rig.remove('holder');
    await rig.readyPod('waiter');
    expect(rig.installs('dup').map(({ bizUrl, outcome }) => `${bizUrl} ${outcome}`)).toEqual([
      `${jarOf('dup', '1.0.0')} executed`,
      `${jarOf('dup-other', '1.0.0')} executed`,
    ]);
    await rig.remove('waiter');
  });

  it('stays Terminating with the base’s words while the uninstall fails, and goes when it succeeds', async () => {
    await rig.create(modulePod('stuck', [{ name: 'stuck' }], { nodeName: 'vnode.base-1' }));
    await rig.readyPod('stuck');
    rig.fleet.setFault({
      command: 'uninstallBiz',
      bizName: 'stuck',
      failure: 'java.lang.IllegalStateException: still busy',
      times: 1,
    });
    await rig.admin.delete(podPath('stuck'));
    const pod = await eventually(async () => {
      const found = await findPod(rig.admin, 'stuck');
      expect(found?.status?.reason).toBe('FailedKillPod');
      return found;
    });
    expect(pod?.status?.message).toContain('still busy');
    await eventually(async () => {
      const reasons = (await eventsOf(rig.admin, 'Pod', 'stuck')).map(({ type, reason }) => `${type} ${reason}`);
      expect(reasons).toEqual(expect.arrayContaining(['Normal Killing', 'Warning FailedKillPod']));
    });
    await eventually(async () => expect(await findPod(rig.admin, 'stuck')).toBeUndefined());
    expect(rig.modulesOf('base-1', 'stuck')).toEqual([]);
  });

  it('becomes Ready although the answer to its install is lost', async () => {
    rig.fleet.setFault({ command: 'installBiz', bizName: 'mute', answers: 'never' });
    await rig.create(modulePod('mute', [{ name: 'mute' }], { nodeName: 'vnode.base-1' }));
    await rig.readyPod('mute');
    expect(rig.installs('mute').map(({ outcome }) => outcome)).toEqual(['executed']);
    await rig.remove('mute');
  });

  it('that stops by itself on a live base is installed again, with restartCount + 1', async () => {
    await rig.create(modulePod('crash', [{ name: 'crash' }], { nodeName: 'vnode.base-1' }));
    await rig.readyPod('crash');
    rig.fleet.base('base-1').crashModule('crash', '1.0.0', 'BROKEN');
    // Over HTTP a base tells its list only when it is asked, twice a minute at most.
    if (TRANSPORT !== 'http') rig.fleet.base('base-1').announceModules();
    const pod = await eventually(async () => {
      const found = await findPod(rig.admin, 'crash');
      expect(found?.status?.containerStatuses?.[0]?.restartCount).toBe(1);
      expect(isReady(found)).toBe(true);
      return found;
    }, 120_000);
    expect(pod?.status?.containerStatuses?.[0]?.lastState?.terminated).toMatchObject({
      reason: 'ModuleBroken',
      exitCode: 1,
    });
    await rig.remove('crash');
  });

  it('that a newer version replaced runs again when that one goes (a rollback)', async () => {
    const base = await rig.fleet.add({ identity: 'switching', activateNewModule: true });
    base.announce();
    await rig.create(modulePod('v1', [{ name: 'roll', version: '1' }], { nodeName: 'vnode.switching' }));
    await rig.readyPod('v1');
    await rig.create(modulePod('v2', [{ name: 'roll', version: '2' }], { nodeName: 'vnode.switching' }));
    await rig.readyPod('v2');
    await eventually(async () => expect(waitingReason(await findPod(rig.admin, 'v1'))).toBe('BizDeactivated'));
    await eventually(async () => {
      const events = await eventsOf(rig.admin, 'Pod', 'v1');
      expect(events.find(({ reason }) => reason === 'BizDeactivated')?.type).toBe('Normal');
    });
    await rig.remove('v2');
    await rig.readyPod('v1');
    expect(rig.modulesOf('switching')).toEqual(['roll:1 ACTIVATED']);
    await rig.remove('v1');
    await base.kill();
  });

  it('is not disturbed by answers that come twice', async () => {
    rig.fleet.setFault({ bizName: 'twice', answers: 'twice' });
    await rig.create(modulePod('twice', [{ name: 'twice' }], { nodeName: 'vnode.base-1' }));
    await rig.readyPod('twice');
    await rig.remove('twice');
    expect(rig.fleet.history.records({ bizName: 'twice' }).map(({ command }) => command)).toEqual([
      'installBiz',
      'uninstallBiz',
    ]);
  });
});

describe('the controller', () => {
  it('reads nothing that its watches bring, and has executed no install twice', async () => {
    expect(rig.fleet.history.installsWhileActiveOrInWork()).toEqual([]);
    const probes = await fetch(`http://127.0.0.1:${await rig.controller.port('probes')}/readyz`);
    expect(await probes.text()).toBe('[+]informers ok\n[+]tunnel ok\nreadyz check passed\n');
  });
});
