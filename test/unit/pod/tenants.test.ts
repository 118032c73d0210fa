import { afterEach, describe, expect, it, vi } from 'vitest';
import type { PodObject } from '../../../src/kube/objects.ts';
import { VNode } from '../../../src/vnode/vnode.ts';
import { LEDGER_OPTIONS, makeBase, makePod, type PodOptions, runningStatus } from '../../support/builders.ts';
import { CoreRig, type CoreRigOptions } from '../../support/core-rig.ts';
import type { RigBase } from '../../support/rig-base.ts';

const NODE = 'vnode.b1';
const OWNED = 'biz1:1.0.0';
const NEWER = 'biz1:2.0.0';
/** Created before the Pods of the owner, unless `more` says otherwise. */
const ATTACK: PodOptions = { name: 'attack', namespace: 'tenant', createdAt: '2025-01-01T00:00:00Z' };
/** The owner's next version. */
const NEXT: PodOptions = { name: 'p2', modules: ['biz1:1.1.0'], createdAt: '2026-02-01T00:00:00Z' };
let rig: CoreRig;

afterEach(() => rig.stop());

/** A base with a module of the Pod `ns/p1`. */
async function ownedModule(options: CoreRigOptions = {}): Promise<void> {
  rig = new CoreRig(options);
  rig.remember('b1');
  await rig.start();
  await rig.foundBase('b1');
  rig.addPod({ modules: [OWNED] });
  await rig.pass(5_000);
  rig.commands();
  rig.api.take();
}

/** Sees each module that the base comes to owe a removal of. */
function watchRemovals() {
  return vi.spyOn(rig.store.get(NODE)?.pendingRemovals ?? new Map(), 'set');
}

/** Nothing was done to the owner, and its Pod was not written. */
function expectUntouched(): void {
  expect(rig.commands()).toEqual([]);
  expect(rig.modulesOf('b1')).toEqual([`${OWNED} ACTIVATED`]);
  expect(rig.podState('p1')).toBe('Running True');
  expect(rig.api.take().filter((request) => request.includes('p1'))).toEqual([]);
}

describe('a Pod with a module name of another namespace', () => {
  it.each<[string, PodOptions]>([
    ['the same version', { modules: [OWNED] }],
    ['the same version with other args', { modules: [OWNED], args: ['--x'] }],
    ['another version', { modules: [NEWER] }],
    ['a replacing strategy', { modules: [NEWER], strategy: 'uninstallThenInstall' }],
    ['a strategy that does not exist', { modules: [NEWER], strategy: 'x' }],
    ['a long sleep', { modules: [NEWER], sleepSeconds: 3_600 }],
  ])('(%s) waits, goes at once when it is deleted, and changes nothing', async (_, options) => {
    await ownedModule();
    rig.addPod({ ...ATTACK, ...options });
    await rig.pass(30_000);
    expect(rig.waiting('tenant/attack')).toBe('ModuleNameTaken');
    expect(rig.podState('tenant/attack')).toBe('Pending False ContainersNotReady');
    expect(rig.events).toContain('Warning ModuleNameTaken attack');
    expect(JSON.stringify(rig.api.pod('tenant/attack')?.status)).not.toMatch(/ns\/|p1/);
    expectUntouched();
    rig.deletePod('tenant/attack', 3_600);
    await rig.pass(100);
    expect(rig.api.pod('tenant/attack')).toBeUndefined();
    expectUntouched();
  });

  it.each([OWNED, NEWER])('that is forced away (%s) leaves nothing to be removed', async (module) => {
    await ownedModule();
    rig.addPod({ ...ATTACK, modules: [module] });
    await rig.pass(1_000);
    const owed = watchRemovals();
    rig.api.drop('pod', 'tenant/attack');
    await rig.pass(30_000);
    expect(owed).not.toHaveBeenCalled();
    expectUntouched();
  });

  it('that is forced away before any plan was made with it leaves nothing to be removed', async () => {
    await ownedModule();
    rig.addPod({ ...ATTACK, modules: [OWNED] });
    const owed = watchRemovals();
    rig.api.drop('pod', 'tenant/attack');
    await rig.pass(30_000);
    expect(owed).not.toHaveBeenCalled();
    expectUntouched();
  });

  it('goes while the base is not reachable: nothing of it is there', async () => {
    await ownedModule();
    rig.addPod({ ...ATTACK, modules: [NEWER] });
    await rig.pass(1_000);
    const base = rig.bases.get('b1');
    if (base) base.isSilent = true;
    rig.deletePod('tenant/attack', 3_600);
    await rig.pass(100);
    expect(rig.api.pod('tenant/attack')).toBeUndefined();
  });

  it.each([false, true])('does not take part in a rolling update of the owner (is there: %s)', async (isThere) => {
    await ownedModule();
    if (isThere) rig.addPod({ ...ATTACK, modules: [NEWER], strategy: 'uninstallThenInstall' });
    await rig.pass(1_000);
    rig.addPod({ ...NEXT, strategy: 'uninstallThenInstall' });
    await rig.pass(1_000);
    rig.deletePod('p1');
    await rig.pass(30_000);
    expect(rig.api.pod('p1')).toBeUndefined();
    expect(rig.podState('p2')).toBe('Running True');
    expect(rig.waiting('tenant/attack')).toBe(isThere ? 'ModuleNameTaken' : undefined);
    expect(rig.commands()).toEqual(['install b1 biz1:1.1.0', `uninstall b1 ${OWNED}`]);
  });

  it('has the name when the last Pod of the owner and its module are gone, and not before', async () => {
    await ownedModule();
    rig.addPod({ ...ATTACK, modules: [OWNED] });
    await rig.pass(1_000);
    const base = rig.bases.get('b1');
    if (base) base.answersCommands = false;
    rig.deletePod('p1');
    await rig.pass(1_000);
    expect(rig.commands()).toEqual([`uninstall b1 ${OWNED}`]);
    expect(rig.waiting('tenant/attack')).toBe('ModuleNameTaken');
    if (base) base.answersCommands = true;
    rig.answer('b1', 'uninstall', OWNED);
    await rig.pass(1_000);
    expect(rig.api.pod('p1')).toBeUndefined();
    expect(rig.commands()).toEqual([`install b1 ${OWNED}`]);
    expect(rig.podState('tenant/attack')).toBe('Running True');
  });

  it.each([30, 0])(
    'has it at once when finalizers of others keep the last Pod of the owner (grace: %i s), and its module is gone',
    async (graceSeconds) => {
      await ownedModule();
      const stored = rig.api.pod('p1') as PodObject;
      rig.api.put('pod', { ...stored, metadata: { ...stored.metadata, finalizers: ['example.com/counted'] } });
      rig.addPod({ ...ATTACK, modules: [OWNED] });
      await rig.pass(1_000);
      rig.deletePod('p1', graceSeconds);
      await rig.pass(1_000);
      expect(rig.api.pod('p1')?.metadata).toMatchObject({ deletionGracePeriodSeconds: 0 });
      expect(rig.podState('tenant/attack')).toBe('Running True');
    },
  );

  it('gets no module that was left by a Pod which was forced away', async () => {
    await ownedModule();
    rig.addPod({ ...ATTACK, modules: [OWNED] });
    await rig.pass(1_000);
    rig.api.drop('pod', 'p1');
    await rig.pass(30_000);
    expect(rig.commands()).toEqual([`uninstall b1 ${OWNED}`, `install b1 ${OWNED}`]);
    expect(rig.podState('tenant/attack')).toBe('Running True');
    expect(rig.store.get(NODE)?.pendingRemovals.size).toBe(0);
  });

  it('does not get the module of a Pod whose status could not be written before it was forced away', async () => {
    rig = new CoreRig();
    rig.remember('b1');
    await rig.start();
    await rig.foundBase('b1');
    rig.api.fail('patch pod/status ns/p1', 500, 1_000);
    rig.addPod({ modules: [OWNED] });
    await rig.pass(1_000);
    rig.addPod({ ...ATTACK, modules: [NEWER] });
    await rig.pass(1_000);
    expect(rig.waiting('tenant/attack')).toBe('ModuleNameTaken');
    const owed = watchRemovals();
    rig.api.drop('pod', 'p1');
    await rig.pass(1_000);
    expect(owed).toHaveBeenCalledOnce();
    expect(rig.commands()).toEqual([`install b1 ${OWNED}`, `uninstall b1 ${OWNED}`, `install b1 ${NEWER}`]);
  });

  it('keeps no module on the base that no Pod of the owner asks for', async () => {
    await ownedModule();
    rig.bases.get('b1')?.modules.set(NEWER, 'DEACTIVATED');
    rig.addPod({ ...ATTACK, modules: [NEWER] });
    rig.list('b1');
    await rig.pass(60_000);
    expect(rig.commands()).toEqual([`uninstall b1 ${NEWER}`]);
    expect(rig.podState('p1')).toBe('Running True');
  });

  it('whose status cannot be written holds back no command of the owner', async () => {
    await ownedModule();
    rig.api.fail('patch pod/status tenant/', 500, 1_000);
    rig.addPod({ ...ATTACK, modules: [NEWER] });
    await rig.pass(1_000);
    rig.addPod({ ...NEXT, strategy: 'uninstallThenInstall' });
    await rig.pass(10_000);
    expect(rig.commands()).toEqual(['install b1 biz1:1.1.0']);
    expect(rig.podState('p2')).toBe('Running True');
  });

  it('that the base does not admit, and whose status cannot be written, holds back no command of the owner', async () => {
    await ownedModule();
    rig.api.fail('patch pod/status tenant/', 500, 1_000);
    rig.addPod({ ...ATTACK, modules: [NEWER], spec: { nodeSelector: { zone: 'elsewhere' } } });
    await rig.pass(1_000);
    rig.addPod({ ...NEXT, strategy: 'uninstallThenInstall' });
    await rig.pass(10_000);
    expect(rig.commands()).toEqual(['install b1 biz1:1.1.0']);
    expect(rig.podState('p2')).toBe('Running True');
  });
});

it('two namespaces that an earlier version let have one name: the older Pod that runs keeps it, for good', async () => {
  rig = new CoreRig({ sharedNamespaces: [['ns', 'tenant']] });
  rig.remember('b1');
  await rig.start();
  await rig.foundBase('b1', { activatesNew: true });
  rig.addPod({ modules: [OWNED] });
  rig.addPod({ ...ATTACK, modules: [OWNED], createdAt: '2026-02-01T00:00:00Z' });
  await rig.pass(5_000);
  expect([rig.podState('p1'), rig.podState('tenant/attack')]).toEqual(['Running True', 'Running True']);
  const pods = ['p1', 'tenant/attack'].map((name) => rig.api.pod(name));
  await rig.stop();
  rig = new CoreRig();
  rig.remember('b1');
  for (const pod of pods) if (pod) rig.api.put('pod', pod);
  await rig.start();
  await rig.foundBase('b1', { modules: new Map([[OWNED, 'ACTIVATED']]) });
  await rig.pass(60_000);
  expect([rig.podState('p1'), rig.waiting('tenant/attack')]).toEqual(['Running True', 'ModuleNameTaken']);
  rig.addPod({ name: 'p2', modules: [OWNED], createdAt: '2026-03-01T00:00:00Z' });
  await rig.pass(1_000);
  rig.deletePod('p1');
  await rig.pass(60_000);
  expect([rig.podState('p2'), rig.waiting('tenant/attack')]).toEqual(['Running True', 'ModuleNameTaken']);
  expect(rig.commands()).toEqual([]);
});

it('the version that the other one had installed is removed, also at first contact', async () => {
  rig = new CoreRig();
  const status = (key: string) => ({ phase: 'Running', containerStatuses: [runningStatus(key)] });
  rig.addPod({ modules: [OWNED], status: status(OWNED) });
  rig.addPod({ ...ATTACK, modules: [NEWER], createdAt: '2026-02-01T00:00:00Z', status: status(NEWER) });
  await rig.start();
  const modules = new Map(
    [OWNED, NEWER, 'biz1:0.9.0'].map((key) => [key, key === OWNED ? 'ACTIVATED' : 'DEACTIVATED']),
  );
  await rig.foundBase('b1', { modules } as Partial<RigBase>);
  await rig.pass(60_000);
  expect(rig.commands()).toEqual([`uninstall b1 ${NEWER}`]);
  expect(rig.modulesOf('b1')).toEqual(['biz1:0.9.0 DEACTIVATED', `${OWNED} ACTIVATED`]);
  expect(rig.waiting('tenant/attack')).toBe('ModuleNameTaken');
  // What it ran has ended.
  expect(rig.container('tenant/attack')).toMatchObject({
    started: false,
    lastState: { terminated: { reason: 'ModuleNameTaken' } },
  });
});

it('namespaces that an admin lets share modules are one owner', async () => {
  await ownedModule({ sharedNamespaces: [['ns', 'tenant']] });
  rig.addPod({ ...ATTACK, modules: [OWNED] });
  await rig.pass(1_000);
  expect(rig.podState('tenant/attack')).toBe('Running True');
  expect(rig.events).toContain('Warning ModuleShared attack');
});

it('a module from before the first contact is not claimed by a Pod that does not own its name', async () => {
  rig = new CoreRig();
  await rig.start();
  await rig.foundBase('b1', {
    modules: new Map([
      ['biz1:0.9.0', 'DEACTIVATED'],
      [OWNED, 'ACTIVATED'],
    ]),
  });
  rig.addPod({ modules: [OWNED] });
  await rig.pass(5_000);
  rig.addPod({ ...ATTACK, modules: ['biz1:0.9.0'] });
  await rig.pass(5_000);
  rig.deletePod('tenant/attack');
  await rig.pass(60_000);
  expect(rig.modulesOf('b1')).toEqual(['biz1:0.9.0 DEACTIVATED', `${OWNED} ACTIVATED`]);
});

it('a replica that comes to lead a base owes nothing for Pods that went before', () => {
  const vnode = new VNode({ base: makeBase('b1'), tunnel: 'mqtt_tunnel_provider', now: 0, ledger: LEDGER_OPTIONS });
  vnode.vanishedPods.add(makePod());
  vnode.changeLeader(1, { wasReady: true, mayBeSilentSince: 0 });
  expect(vnode.vanishedPods.size).toBe(0);
});
