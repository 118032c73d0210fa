import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { projectPod } from '../../../src/pod/vpod.ts';
import { MIB, makePodObject, type PodOptions, runningStatus } from '../../support/builders.ts';
import { CoreRig } from '../../support/core-rig.ts';

const KEY = 'biz1:1.0.0';
const KIB = 1024;
const LARGE = 'x'.repeat(1.3 * MIB);
const RUNNING = { phase: 'Running', containerStatuses: [runningStatus(KEY)] };
const ONE_CONTAINER = { name: 'biz1', image: 'a.jar', env: [{ name: 'BIZ_VERSION', value: '1.0.0' }] };
const containers = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ ...ONE_CONTAINER, name: `c${index}` }));

const keptBytes = (options: PodOptions): number => JSON.stringify(projectPod(makePodObject(options))).length;

describe('of a Pod of more than a megabyte a replica keeps a few kilobytes', () => {
  it.each<[string, PodOptions]>([
    ['args', { args: [LARGE] }],
    ['args of no text', { args: Array(300_000).fill('') }],
    ['value of a variable', { env: [{ name: 'A', value: LARGE }] }],
    ['name of a variable', { env: [{ name: LARGE, value: 'a' }] }],
    ['BIZ_VERSION', { modules: [`biz1:${LARGE}`] }],
    ['image', { url: `https://jars.example/${LARGE}.jar` }],
    ['readiness gates', { spec: { readinessGates: Array(20_000).fill({ conditionType: 'example.com/gate' }) } }],
    ['node selector', { spec: { nodeSelector: { [LARGE]: 'a' } } }],
    ['tolerations', { spec: { tolerations: Array(20_000).fill({ key: 'a', operator: 'Exists' }) } }],
    ['install strategy', { strategy: LARGE }],
    ['owner', {}],
  ])('(%s)', (field, options) => {
    const pod = makePodObject(options);
    if (field === 'owner') {
      const reference = { apiVersion: 'v1', kind: 'A', name: 'a', uid: LARGE, controller: true };
      pod.metadata.ownerReferences = [reference];
      for (const container of pod.spec.containers) container.command = ['java'];
    }
    expect(JSON.stringify(projectPod(pod)).length).toBeLessThan(3 * KIB);
  });

  it('(containers): the first 300', () => {
    expect(keptBytes({ spec: { containers: containers(10_000) } })).toBeLessThan(110 * KIB);
  });
});

describe('a Pod that is too large', () => {
  let rig: CoreRig;

  beforeEach(async () => {
    rig = new CoreRig();
    await rig.start();
  });

  afterEach(() => rig.stop());

  const messageOf = (name: string): string | undefined => rig.container(name)?.state?.waiting?.message;

  it.each<[string, string, PodOptions]>([
    ['args', '1363297 bytes, most of them args: at most 65536', { args: [LARGE], env: [{ name: 'A', value: 'a' }] }],
    ['env', 'most of them env', { env: [{ name: 'A', value: LARGE }] }],
    ['BIZ_VERSION', 'most of them env', { modules: [`biz1:${LARGE}`] }],
    ['image', 'most of them image', { url: `https://jars.example/${LARGE}.jar` }],
    ['containers', '301 containers, at most 300', { spec: { containers: containers(301) } }],
  ])('(%s) waits, says what is too large, and nothing of it is installed', async (_, words, options) => {
    await rig.foundBase('b1');
    rig.addPod(options);
    await rig.pass(60_000);
    expect(rig.waiting('p1')).toBe('CreateContainerConfigError');
    expect(messageOf('p1')).toContain(words);
    expect(rig.podState('p1')).toBe('Pending False ContainersNotReady');
    expect(rig.events.filter((event) => event.endsWith(' p1'))[0]).toBe('Warning Failed p1');
    expect(rig.commands()).toEqual([]);
  });

  it('is one above 64 KiB, not one of 64 KiB', async () => {
    await rig.foundBase('b1');
    rig.addPod({ args: ['x'.repeat(63 * KIB)] });
    rig.addPod({ name: 'p2', modules: ['biz2:1'], args: ['x'.repeat(64 * KIB)] });
    await rig.pass(5_000);
    expect(rig.commands()).toEqual([`install b1 ${KEY}`]);
    expect([rig.podState('p1'), rig.waiting('p2')]).toEqual(['Running True', 'CreateContainerConfigError']);
  });

  it('keeps a module that runs already, as an earlier version installed it', async () => {
    const base = await rig.foundBase('b1');
    base.modules.set(KEY, 'ACTIVATED');
    rig.list('b1');
    rig.addPod({ args: [LARGE], status: RUNNING });
    await rig.pass(60_000);
    expect(rig.podState('p1')).toBe('Running True');
    base.modules.clear();
    rig.list('b1');
    await rig.pass(20_000);
    rig.list('b1');
    await rig.pass(20_000);
    expect(rig.waiting('p1')).toBe('CreateContainerConfigError');
    expect(rig.commands()).toEqual([]);
  });

  it('does not hold up the Pod that replaces it with less', async () => {
    await rig.foundBase('b1');
    rig.addPod({ args: [LARGE] });
    await rig.pass(5_000);
    rig.addPod({ name: 'p2', createdAt: '2026-01-02T00:00:00Z' });
    await rig.pass(5_000);
    expect(rig.commands()).toEqual([`install b1 ${KEY}`]);
    expect([rig.podState('p2'), rig.waiting('p1')]).toEqual(['Running True', 'CreateContainerConfigError']);
  });

  it('is on no Node past its taints, where its tolerations are not kept', async () => {
    await rig.foundBase('b1');
    const { spec } = makePodObject();
    const tolerations = [...(spec.tolerations ?? []), { key: LARGE, operator: 'Exists' }];
    rig.addPod({ spec: { tolerations } });
    await rig.pass(5_000);
    expect(rig.waiting('p1')).toBe('NodeAffinity');
    expect(messageOf('p1')).toBe('nodeSelector, node affinity and tolerations of the Pod have more than 65536 bytes');
    expect(rig.commands()).toEqual([]);
  });
});
