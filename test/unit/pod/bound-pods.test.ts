import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { NodeObject, PodObject } from '../../../src/kube/objects.ts';
import { MIB, makeHealth, makePodObject, runningStatus } from '../../support/builders.ts';
import { CoreRig } from '../../support/core-rig.ts';

const KEY = 'biz1:1.0.0';
const SCHEDULED = { conditions: [{ type: 'PodScheduled', status: 'True' as const }] };
let rig: CoreRig;

beforeEach(async () => {
  rig = new CoreRig();
  await rig.start();
});

afterEach(() => rig.stop());

/** Has 192 MiB left. */
const found = () => rig.foundBase('b1');

describe('a Pod that is bound by nodeName and does not fit', () => {
  it('waits with the reason, is never Failed, and nothing of it is sent to the base', async () => {
    await found();
    rig.addPod({ name: 'big', memory: '1Gi', restartPolicy: 'Never' });
    rig.addPod({ name: 'elsewhere', modules: ['biz2:1'], spec: { nodeSelector: { zone: 'x' } } });
    rig.addPod({ name: 'foreign', modules: ['biz3:1'], spec: { tolerations: [] } });
    rig.addPod({ name: 'honest', modules: ['biz4:1'], memory: '100Mi' });
    await rig.pass(600_000);
    expect(['big', 'elsewhere', 'foreign'].map((name) => rig.waiting(name))).toEqual([
      'OutOfmemory',
      'NodeAffinity',
      'TaintToleration',
    ]);
    expect(rig.podState('big')).toBe('Pending False ContainersNotReady');
    expect(rig.podState('honest')).toBe('Running True');
    expect(rig.commands()).toEqual(['install b1 biz4:1']);
    // Once each, however long they wait.
    expect(rig.events.filter((event) => event.endsWith(' big'))).toEqual(['Warning OutOfmemory big']);
    expect(rig.api.take('patch pod').filter((line) => line.includes('big'))).toHaveLength(1);
  });

  it('starts when another Pod has gone', async () => {
    await found();
    rig.addPod({ name: 'first', memory: '150Mi' });
    await rig.pass(5_000);
    rig.addPod({ name: 'second', modules: ['biz2:1'], memory: '150Mi', createdAt: '2026-01-02T00:00:00Z' });
    await rig.pass(5_000);
    expect(rig.waiting('second')).toBe('OutOfmemory');
    rig.api.drop('pod', 'first');
    await rig.pass(1_000);
    expect(rig.podState('second')).toBe('Running True');
  });

  it('starts when its Node has changed', async () => {
    const base = await found();
    rig.addPod({ name: 'big', memory: '1Gi' });
    rig.addPod({ name: 'labelled', modules: ['biz2:1'], spec: { nodeSelector: { zone: 'x' } } });
    await rig.pass(5_000);
    expect(rig.commands()).toEqual([]);
    const node = rig.api.node('vnode.b1') as NodeObject;
    rig.api.put('node', { ...node, metadata: { ...node.metadata, labels: { ...node.metadata.labels, zone: 'x' } } });
    await rig.pass(1_000);
    expect(rig.podState('labelled')).toBe('Running True');
    base.health = makeHealth({ metaspaceMaxBytes: 4096 * MIB });
    await rig.pass(120_000);
    expect(rig.podState('big')).toBe('Running True');
  });

  it('is looked at again after a back-off, also when nothing was heard of a change', async () => {
    await found();
    rig.addPod({ spec: { nodeSelector: { zone: 'x' } } });
    await rig.pass(5_000);
    Object.assign(rig.nodeInformer.get('vnode.b1')?.labels ?? {}, { zone: 'x' });
    await rig.pass(6_000);
    expect(rig.podState('p1')).toBe('Running True');
  });

  it('claims nothing: another Pod has the module, and keeps it when this one goes', async () => {
    await found();
    rig.addPod({ name: 'thief', memory: '1Gi', args: ['--other'] });
    rig.addPod({ name: 'honest', createdAt: '2026-01-02T00:00:00Z' });
    await rig.pass(5_000);
    expect(rig.podState('honest')).toBe('Running True');
    rig.deletePod('thief');
    await rig.pass(5_000);
    expect(rig.api.pod('thief')).toBeUndefined();
    expect(rig.commands()).toEqual([`install b1 ${KEY}`]);
  });

  it('leaves a module that nobody else asks for when it goes, also by force', async () => {
    rig.remember('b1', [KEY]);
    const base = await rig.foundBase('b1', { modules: new Map([[KEY, 'ACTIVATED']]) });
    for (const name of ['one', 'two']) rig.addPod({ name, memory: '1Gi' });
    await rig.pass(5_000);
    expect(rig.waiting('two')).toBe('OutOfmemory');
    rig.deletePod('one');
    rig.api.drop('pod', 'two');
    await rig.pass(30_000);
    expect(rig.api.pod('one')).toBeUndefined();
    expect(rig.commands()).toEqual([]);
    expect(base.modules.get(KEY)).toBe('ACTIVATED');
  });

  it('stays so in a controller that was started again, which says nothing twice', async () => {
    await found();
    rig.addPod({ memory: '1Gi' });
    await rig.pass(5_000);
    await rig.stop();
    const next = new CoreRig();
    next.base('b1');
    next.api.put('node', rig.api.node('vnode.b1') as NodeObject);
    next.api.put('pod', rig.api.pod('p1') as PodObject);
    await next.start();
    next.heartbeat('b1');
    await next.pass(60_000);
    expect(next.waiting('p1')).toBe('OutOfmemory');
    expect(next.commands()).toEqual([]);
    expect(next.events.filter((event) => event.endsWith(' p1'))).toEqual([]);
    await next.stop();
  });
});

describe('a Pod that is being deleted when it is seen first', () => {
  const kept = () => rig.foundBase('b1', { modules: new Map([[KEY, 'ACTIVATED']]) });

  it.each([
    ['bound by nodeName', { phase: 'Pending' }],
    ['bound by the scheduler', { phase: 'Pending', ...SCHEDULED }],
  ])('removes nothing where nothing was done for it: %s', async (_how, status) => {
    rig.remember('b1', [KEY]);
    const base = await kept();
    rig.addPod({ name: 'one', deleting: true, status });
    rig.addPod({ name: 'two', modules: ['biz1:2.0.0'], deleting: true, status });
    rig.api.drop('pod', 'two');
    await rig.pass(60_000);
    expect(rig.api.pod('one')).toBeUndefined();
    expect(rig.commands()).toEqual([]);
    expect(base.modules.get(KEY)).toBe('ACTIVATED');
  });

  it.each([
    ['was started', runningStatus(KEY)],
    ['is being installed', runningStatus(KEY, { ready: false, state: { waiting: { reason: 'ContainerCreating' } } })],
  ])('is uninstalled where its status says that its module %s', async (_, containerStatus) => {
    rig.remember('b1', [KEY]);
    await kept();
    rig.addPod({ deleting: true, status: { phase: 'Pending', containerStatuses: [containerStatus] } });
    await rig.pass(5_000);
    expect(rig.api.pod('p1')).toBeUndefined();
    expect(rig.commands()).toEqual([`uninstall b1 ${KEY}`]);
  });

  it('is uninstalled when another replica writes that its module was started', async () => {
    rig.remember('b1', [KEY]);
    await kept();
    const pod = makePodObject({ deleting: true });
    rig.api.put('pod', pod);
    pod.status = { phase: 'Running', containerStatuses: [runningStatus(KEY)] };
    rig.api.put('pod', pod);
    await rig.pass(5_000);
    expect(rig.commands()).toEqual([`uninstall b1 ${KEY}`]);
  });
});

describe('a Pod that is not judged', () => {
  it('was bound by the scheduler, whose view of the Node may be older', async () => {
    await found();
    rig.addPod({ memory: '1Gi', status: { phase: 'Pending', ...SCHEDULED } });
    await rig.pass(5_000);
    expect(rig.podState('p1')).toBe('Running True');
  });

  it('was admitted: what it takes itself, and what changes later, does not hold it', async () => {
    const base = await found();
    rig.addPod({ memory: '150Mi' });
    await rig.pass(5_000);
    base.health = makeHealth({ metaspaceCommittedBytes: 250 * MIB });
    await rig.pass(120_000);
    rig.restart('b1');
    await rig.pass(60_000);
    expect(rig.podState('p1')).toBe('Running True');
  });
});
