import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { modulePod, type PodOptions } from '../support/manifests.ts';
import { ModuleRig } from '../support/module-rig.ts';
import { findPod, isReady } from '../support/observe.ts';
import { TRANSPORT } from '../support/transport.ts';
import { podPath } from '../support/world.ts';

const INSTALL_MS = 1_000;
/** How often a test looks at a base. */
const LOOK_MS = 5;

let rig: ModuleRig;

beforeAll(async () => {
  rig = await ModuleRig.start({ count: 3, activateNewModule: true, installMs: INSTALL_MS });
});

afterAll(() => rig?.stop());

async function create(module: string, version: string, base: string, options: PodOptions = {}): Promise<string> {
  const name = `${module}-${version}`;
  await rig.create(modulePod(name, [{ name: module, version }], { nodeName: `vnode.${base}`, ...options }));
  return name;
}

function commandsFor(module: string): string[] {
  const records = rig.fleet.history.records({ bizName: module });
  return records.map(({ command, bizVersion, outcome }) => `${command} ${bizVersion} ${outcome}`);
}

/** Looks at a base all the time: how long no version of a module was active, as the base has it. */
function watchGaps(module: string, base: string): () => number {
  let lostMs = 0;
  let lookedAt = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    if (!rig.modulesOf(base, module).some((line) => line.endsWith(' ACTIVATED'))) lostMs += now - lookedAt;
    lookedAt = now;
  }, LOOK_MS);
  return () => {
    clearInterval(timer);
    return lostMs;
  };
}

describe('going back while the new version is installed', () => {
  it.each([0, 500, 1_100])('(%i ms after the base began) leaves no moment without an active version', async (ms) => {
    const module = `back${ms}`;
    const old = await create(module, '1', 'base-1');
    await rig.readyPod(old);
    const stop = watchGaps(module, 'base-1');
    const young = await create(module, '2', 'base-1');
    await eventually(async () => expect(rig.modulesOf('base-1', module)).toContain(`${module}:2 RESOLVED`));
    await pause(ms);
    await rig.admin.delete(podPath(young));
    await eventually(async () => expect(await findPod(rig.admin, young)).toBeUndefined());
    await rig.readyPod(old);
    expect(stop()).toBe(0);
    expect(rig.modulesOf('base-1', module)).toEqual([`${module}:1 ACTIVATED`]);
    const handover =
      TRANSPORT === 'http' ? ['switchBiz 1 executed'] : ['uninstallBiz 1 executed', 'installBiz 1 executed'];
    expect(commandsFor(module)).toEqual([
      'installBiz 1 executed',
      'installBiz 2 executed',
      ...handover,
      'uninstallBiz 2 executed',
    ]);
    await rig.remove(old);
  });
});

describe('20 versions in two seconds', () => {
  it('end with the last one active, and leave no moment without an active version', async () => {
    const old = await create('fast', '1', 'base-2');
    await rig.readyPod(old);
    const stop = watchGaps('fast', 'base-2');
    let last = '';
    for (let version = 2; version <= 20; version++) {
      const name = await create('fast', String(version), 'base-2');
      if (last !== '') await rig.admin.delete(podPath(last));
      last = name;
      await pause(80);
    }
    await rig.readyPod(last, 60_000);
    expect(isReady(await findPod(rig.admin, old))).toBe(false);
    await rig.remove(old);
    expect(stop()).toBe(0);
    await eventually(async () => expect(rig.modulesOf('base-2', 'fast')).toEqual(['fast:20 ACTIVATED']));
    await rig.remove(last);
  });
});
