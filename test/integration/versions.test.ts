import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { EventObject, LeaseObject } from '../../src/kube/objects.ts';
import { ANNOTATION } from '../../src/labels.ts';
import { eventually } from '../support/eventually.ts';
import { jarOf, modulePod, moduleWorkload, type PodOptions } from '../support/manifests.ts';
import { ModuleRig } from '../support/module-rig.ts';
import { eventsOf, findPod, isReady, pods, waitingReason } from '../support/observe.ts';
import { Spectator } from '../support/spectator.ts';
import { TRANSPORT } from '../support/transport.ts';
import { leasePath, podPath } from '../support/world.ts';

const PODS = '/api/v1/namespaces/default/pods';
/** Bases as they are without the JVM property: the second version of a module comes up DEACTIVATED. */
const OLD_STAYS_ACTIVE = { activateNewModule: false };

let rig: ModuleRig;

beforeAll(async () => {
  rig = await ModuleRig.start({ count: 3, ...OLD_STAYS_ACTIVE });
});

afterAll(() => rig?.stop());

/** A Pod on a base, named after module and version. */
async function create(module: string, version: string, base: string, options: PodOptions = {}): Promise<string> {
  const name = `${module}-${version}`;
  await rig.create(modulePod(name, [{ name: module, version }], { nodeName: `vnode.${base}`, ...options }));
  return name;
}

/** `command version outcome` of each command for a module, in order. */
function commandsFor(module: string): string[] {
  const records = rig.fleet.history.records({ bizName: module });
  return records.map(({ command, bizVersion, outcome }) => `${command} ${bizVersion} ${outcome}`);
}

describe.runIf(TRANSPORT === 'http')('a second version on a base that keeps the first one active, over HTTP', () => {
  it('is made the active one, the old Pod out before the new one in, and at no time is the base without', async () => {
    const old = await create('sw', '1', 'base-1');
    await rig.readyPod(old);
    const watch = await Spectator.watch(rig.admin, PODS);
    const gaps: string[] = [];
    const look = () => {
      const modules = rig.modulesOf('base-1', 'sw');
      if (!modules.some((line) => line.endsWith(' ACTIVATED'))) gaps.push(modules.join());
    };
    const unsubscribe = rig.fleet.history.subscribe(look);
    const young = await create('sw', '2', 'base-1');
    await rig.readyPod(young);
    expect(waitingReason(await findPod(rig.admin, old))).toBe('BizDeactivated');
    const first = (name: string, ready: string) =>
      watch.sightings.find((sighting) => sighting.name === name && sighting.ready === ready)?.resourceVersion ?? 0;
    expect(first(old, 'False')).toBeGreaterThan(0);
    expect(first(old, 'False')).toBeLessThan(first(young, 'True'));
    expect(commandsFor('sw')).toEqual(['installBiz 1 executed', 'installBiz 2 executed', 'switchBiz 2 executed']);

    // A rollback: the older one is made active again before the newer one goes.
    await rig.remove(young);
    await rig.readyPod(old);
    unsubscribe();
    watch.stop();
    expect(gaps).toEqual([]);
    expect(commandsFor('sw').slice(3)).toEqual(['switchBiz 1 executed', 'uninstallBiz 2 executed']);
    expect((await findPod(rig.admin, old))?.status?.containerStatuses?.[0]?.restartCount).toBe(0);
    await rig.remove(old);
  });

  it('and whose switch is refused says so on the Pod, and is tried again', async () => {
    await rig.readyPod(await create('stub', '1', 'base-1'));
    rig.fleet.setFault({ command: 'switchBiz', failure: 'java.lang.IllegalStateException: locked', times: 1 });
    const young = await create('stub', '2', 'base-1');
    await eventually(async () => {
      const pod = await findPod(rig.admin, young);
      expect(waitingReason(pod)).toBe('SwitchError');
      expect(pod?.status?.containerStatuses?.[0]?.state?.waiting?.message).toContain('locked');
    });
    expect(isReady(await findPod(rig.admin, 'stub-1'))).toBe(true);
    await rig.readyPod(young, 30_000);
    await Promise.all([rig.remove('stub-1'), rig.remove(young)]);
  });
});

describe.runIf(TRANSPORT !== 'http')('a second version on a base that keeps the first one active, over MQTT', () => {
  it('waits with BizDeactivated, which names the property, and runs when the first one goes', async () => {
    const old = await create('kept', '1', 'base-1');
    await rig.readyPod(old);
    const young = await create('kept', '2', 'base-1');
    await eventually(async () => {
      const pod = await findPod(rig.admin, young);
      expect(waitingReason(pod)).toBe('BizDeactivated');
      expect(pod?.status?.containerStatuses?.[0]?.state?.waiting?.message).toContain('-Dactivate.new.module=true');
    });
    expect(isReady(await findPod(rig.admin, old))).toBe(true);
    await rig.remove(old);
    await rig.readyPod(young);
    await rig.remove(young);
  });
});

describe('a Pod with install-strategy uninstallThenInstall', () => {
  it('has the other versions of its module taken off the base; their Pods say so, and run again when it goes', async () => {
    const old = await create('uti', '1', 'base-2');
    await rig.readyPod(old);
    const annotations = { [ANNOTATION.installStrategy]: 'uninstallThenInstall' };
    const young = await create('uti', '2', 'base-2', { annotations });
    await rig.readyPod(young);
    expect(rig.modulesOf('base-2', 'uti')).toEqual(['uti:2 ACTIVATED']);
    const replaced = await findPod(rig.admin, old);
    expect(waitingReason(replaced)).toBe('ModuleReplaced');
    expect(isReady(replaced)).toBe(false);
    await eventually(async () => {
      const events = await eventsOf(rig.admin, 'Pod', old);
      expect(events.find(({ reason }) => reason === 'ModuleReplaced')?.type).toBe('Normal');
    });
    await rig.remove(young);
    await rig.readyPod(old);
    expect(rig.modulesOf('base-2', 'uti')).toEqual(['uti:1 ACTIVATED']);
    expect(commandsFor('uti')).toEqual([
      'installBiz 1 executed',
      'installBiz 2 executed',
      'uninstallBiz 2 executed',
      'installBiz 1 executed',
    ]);
    await rig.remove(old);
  });

  it('and a strategy that arklet does not know is told and installs nothing', async () => {
    const name = await create('odd', '1', 'base-2', { annotations: { [ANNOTATION.installStrategy]: 'installTwice' } });
    await eventually(async () => {
      const pod = await findPod(rig.admin, name);
      expect(waitingReason(pod)).toBe('CreateContainerConfigError');
      expect(pod?.status?.containerStatuses?.[0]?.state?.waiting?.message).toContain(ANNOTATION.installStrategy);
    });
    expect(commandsFor('odd')).toEqual([]);
    await rig.remove(name);
  });
});

describe('a Deployment with uninstallThenInstall that may surge and go below its replicas by one', () => {
  const BASES = ['base-1', 'base-2', 'base-3'];

  async function deploy(version: string): Promise<void> {
    const annotations = { [ANNOTATION.installStrategy]: 'uninstallThenInstall' };
    const more = { annotations, replicas: BASES.length, rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } };
    await rig.world.controlPlane.apply(moduleWorkload('roll', [{ name: 'roll', version }], more));
    await eventually(async () => {
      const found = await pods(rig.admin, 'app=roll');
      expect(found.filter(isReady).map(({ metadata }) => metadata.labels?.version)).toEqual(BASES.map(() => version));
      expect(found).toHaveLength(BASES.length);
      // Creation times have whole seconds: of Pods of one second nobody knows which version is the newer one.
      const newest = Math.max(...found.map(({ metadata }) => Date.parse(metadata.creationTimestamp ?? '')));
      expect(Date.now()).toBeGreaterThanOrEqual(newest + 1_000);
    });
  }

  it('is updated again and again without a command that fails', async () => {
    for (const version of ['1', '2', '3', '4', '5']) {
      await deploy(version);
      for (const base of BASES) expect(rig.modulesOf(base, 'roll')).toEqual([`roll:${version} ACTIVATED`]);
    }
    const commands = commandsFor('roll');
    expect(commands.filter((line) => line.startsWith('installBiz') && line.endsWith(' executed'))).toHaveLength(15);
    expect(commands.filter((line) => !/ (executed|refused:NOT_FOUND_BIZ)$/.test(line))).toEqual([]);
    const events = (await rig.admin.list('/api/v1/namespaces/default/events')) as EventObject[];
    const warnings = events.filter(
      ({ type, involvedObject }) => type === 'Warning' && involvedObject.name?.startsWith('roll-'),
    );
    expect(warnings.map(({ reason }) => reason).filter((reason) => reason !== 'FailedScheduling')).toEqual([]);
    await rig.admin.delete('/apis/apps/v1/namespaces/default/deployments/roll');
    await eventually(async () => expect(await pods(rig.admin, 'app=roll')).toEqual([]));
  });
});

describe('lifecycle.preStop.sleep', () => {
  const sleeping = (seconds: number) => ({ lifecycle: { preStop: { sleep: { seconds } } } });

  it('lets the module serve between the deletion and the uninstall', async () => {
    const name = await create('calm', '1', 'base-3', { container: sleeping(4) });
    await rig.readyPod(name);
    const deletedAt = Date.now();
    await rig.admin.delete(podPath(name));
    const [uninstall] = await rig.fleet.history.waitFor({ command: 'uninstallBiz', bizName: 'calm' }, { count: 1 });
    // Two clocks of one process, hence the tenth of a second.
    expect((uninstall?.receivedAt ?? 0) - deletedAt).toBeGreaterThanOrEqual(3_900);
    await eventually(async () => expect(await findPod(rig.admin, name)).toBeUndefined());
  });

  it('ends with the grace period', async () => {
    const name = await create('brief', '1', 'base-3', { container: sleeping(29) });
    await rig.readyPod(name);
    const deletedAt = Date.now();
    await rig.admin.delete(podPath(name), { gracePeriodSeconds: 2 });
    const [uninstall] = await rig.fleet.history.waitFor({ command: 'uninstallBiz', bizName: 'brief' }, { count: 1 });
    expect((uninstall?.receivedAt ?? 0) - deletedAt).toBeLessThan(25_000);
    await eventually(async () => expect(await findPod(rig.admin, name)).toBeUndefined());
    expect(rig.modulesOf('base-3', 'brief')).toEqual([]);
  });
});

describe('a lifecycle.preStop.sleep of 30 days', () => {
  it('sets no timers in between, and a second deletion ends it', async () => {
    const seconds = 30 * 86_400;
    const name = await create('month', '1', 'base-3', {
      container: { lifecycle: { preStop: { sleep: { seconds } } } },
      spec: { terminationGracePeriodSeconds: seconds },
    });
    await rig.readyPod(name);
    await rig.admin.delete(podPath(name));
    // Time goes on: the Lease of the Node is renewed twice, every 10 s.
    const renewTime = async () => ((await rig.admin.get(leasePath('base-3'))) as LeaseObject).spec?.renewTime;
    for (let times = 0; times < 2; times++) {
      const before = await renewTime();
      await eventually(async () => expect(await renewTime()).not.toBe(before));
    }
    expect((await findPod(rig.admin, name))?.metadata.deletionGracePeriodSeconds).toBe(seconds);
    expect(commandsFor('month')).toEqual(['installBiz 1 executed']);
    await rig.admin.delete(podPath(name), { gracePeriodSeconds: 1 });
    await eventually(async () => expect(await findPod(rig.admin, name)).toBeUndefined());
    expect(commandsFor('month')).toEqual(['installBiz 1 executed', 'uninstallBiz 1 executed']);
    expect(rig.controller.lines.filter(({ msg }) => msg.includes('TimeoutOverflowWarning')).length).toBe(0);
  });
});

describe('the image of a live Pod', () => {
  it('when changed is uninstalled, confirmed, and installed anew, with restartCount + 1', async () => {
    const name = await create('img', '1', 'base-3');
    const first = await rig.readyPod(name);
    await rig.admin.mergePatch(podPath(name), {
      spec: { containers: [{ ...first.spec.containers[0], image: jarOf('img-new', '1') }] },
    });
    const pod = await eventually(async () => {
      const found = await findPod(rig.admin, name);
      expect(found?.status?.containerStatuses?.[0]).toMatchObject({ restartCount: 1, imageID: jarOf('img-new', '1') });
      expect(isReady(found)).toBe(true);
      return found;
    });
    expect(pod?.metadata.uid).toBe(first.metadata.uid);
    expect(commandsFor('img')).toEqual(['installBiz 1 executed', 'uninstallBiz 1 executed', 'installBiz 1 executed']);
    expect(rig.installs('img').map(({ bizUrl }) => bizUrl)).toEqual([jarOf('img', '1'), jarOf('img-new', '1')]);
    await rig.remove(name);
  });
});

describe('a module that no Pod asks for', () => {
  it('is told of on the Node and removed, when lists and a live read agree; one that a Pod wants stays', async () => {
    const name = await create('wanted', '1', 'base-1');
    await rig.readyPod(name);
    rig.fleet.base('base-1').placeModule({ bizName: 'stray', bizVersion: '7' });
    await eventually(() => expect(rig.modulesOf('base-1')).toEqual(['wanted:1 ACTIVATED']), 150_000);
    const events = await eventsOf(rig.admin, 'Node', 'vnode.base-1');
    expect(events.find(({ reason }) => reason === 'UnknownModule')?.message).toContain('stray:7');
    await eventually(async () => expect(await rig.controller.metric('module_controller_unknown_modules')).toBe(0));
    expect(await rig.controller.metric('module_controller_unknown_modules_removed_total')).toBe(1);
    await rig.remove(name);
  });
});
