import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { PodObject } from '../../../src/kube/objects.ts';
import { Departures, isStranded } from '../../../src/pod/departures.ts';
import { projectPod, type VPod } from '../../../src/pod/vpod.ts';
import { makePodObject, runningStatus } from '../../support/builders.ts';
import { CoreRig, type CoreRigOptions } from '../../support/core-rig.ts';

const KEY = 'biz1:1.0.0';

/** What kube-controller-manager leaves of a Pod that serves: not Ready, without a reason. */
function leftStatus(ready: Record<string, string> = { status: 'False' }): NonNullable<PodObject['status']> {
  const conditions = [
    { type: 'ContainersReady', status: 'True' },
    { type: 'Ready', ...ready },
  ];
  return { phase: 'Running', containerStatuses: [runningStatus(KEY)], conditions } as NonNullable<PodObject['status']>;
}

type Fate = 'stranded' | 'leaving' | 'ready' | 'starting';
const READY = { status: 'True' };
const FATES: Readonly<Record<Fate, { readonly deleting: boolean; readonly ready: Record<string, string> }>> = {
  stranded: { deleting: true, ready: { status: 'False' } },
  leaving: { deleting: true, ready: { status: 'False', reason: 'PodDeleted' } },
  ready: { deleting: false, ready: READY },
  starting: { deleting: false, ready: { status: 'False', reason: 'ContainersNotReady' } },
};

function podOf(uid: string, fate: Fate, more: { readonly namespace?: string; readonly node?: string } = {}): VPod {
  const { deleting, ready } = FATES[fate];
  return projectPod(makePodObject({ name: uid, uid, deleting, status: leftStatus(ready), ...more }));
}

function leaversOf(pods: readonly VPod[]): string[] {
  const departures = new Departures({ informer: { list: () => pods }, isReadyNode: (name) => name !== 'gone' });
  return pods.filter((pod) => departures.mayLeave(pod, 0)).map(({ uid }) => uid);
}

describe('Pods that were deleted while no controller wrote for their Node', () => {
  it('are those that serve, and are not Ready without a reason', () => {
    const fates = Object.keys(FATES) as Fate[];
    expect(fates.filter((fate) => isStranded(podOf('u1', fate)))).toEqual(['stranded']);
    const failed = makePodObject({ deleting: true, status: { ...leftStatus(), phase: 'Failed' } });
    expect(isStranded(projectPod(failed))).toBe(false);
    const stopped = leftStatus();
    const conditions = stopped.conditions?.map((entry) => ({ ...entry, status: 'False' as const }));
    expect(isStranded(projectPod(makePodObject({ deleting: true, status: { ...stopped, conditions } as never })))).toBe(
      false,
    );
  });

  it('leave by halves, in the order of their UIDs', () => {
    const all = ['u3', 'u1', 'u2', 'u4', 'u6', 'u5'].map((uid) => podOf(uid, 'stranded'));
    expect(leaversOf(all).sort()).toEqual(['u1', 'u2', 'u3']);
  });

  it('stay while as many of their kind are leaving', () => {
    const stranded = ['u4', 'u5', 'u6'].map((uid) => podOf(uid, 'stranded'));
    const leaving = ['u1', 'u2', 'u3'].map((uid) => podOf(uid, 'leaving'));
    expect(leaversOf([...stranded, ...leaving])).toEqual([]);
    expect(leaversOf([...stranded, ...leaving.slice(1)])).toEqual([]);
    expect(leaversOf(stranded)).toEqual(['u4']);
  });

  it('leave when another one is Ready, and not before', () => {
    expect(leaversOf([podOf('u1', 'stranded')])).toEqual([]);
    expect(leaversOf([podOf('u1', 'stranded'), podOf('u2', 'starting')])).toEqual([]);
    expect(leaversOf([podOf('u1', 'stranded'), podOf('u2', 'ready')])).toEqual(['u1']);
  });

  it('are compared with Pods of their namespace, with the same modules, on Nodes that are Ready', () => {
    const alone = podOf('u1', 'stranded');
    const other = projectPod(makePodObject({ uid: 'u2', modules: ['biz2:1'], status: leftStatus(READY) }));
    expect(leaversOf([alone, podOf('u2', 'ready', { namespace: 'other' })])).toEqual([]);
    expect(leaversOf([alone, podOf('u2', 'ready', { node: 'gone' })])).toEqual([]);
    expect(leaversOf([alone, other])).toEqual([]);
    const next = projectPod(makePodObject({ uid: 'u2', modules: ['biz1:2'], status: leftStatus(READY) }));
    expect(leaversOf([alone, next])).toEqual(['u1']);
  });

  it('never leave all at once without another one that is Ready', () => {
    const fates = fc.array(fc.constantFrom<Fate>('stranded', 'leaving', 'ready', 'starting'), { maxLength: 20 });
    fc.assert(
      fc.property(fates, (all) => {
        const pods = all.map((fate, index) => podOf(`u${index}`, fate));
        const serving = all.filter((fate) => fate === 'stranded' || fate === 'ready').length;
        const left = serving - leaversOf(pods).length;
        expect(left).toBeGreaterThanOrEqual(Math.ceil(serving / 2));
      }),
    );
  });
});

const podOn = (base: string): string => base.replace('b', 'p');

describe('after a time without a controller', () => {
  const rigs: CoreRig[] = [];

  afterEach(async () => {
    await Promise.all(rigs.splice(0).map((rig) => rig.stop()));
  });

  let first: CoreRig;

  beforeEach(async () => {
    first = await started();
  });

  async function started(options: CoreRigOptions = {}): Promise<CoreRig> {
    const rig = new CoreRig({ preStopSleepSeconds: 2, ...options });
    rigs.push(rig);
    await rig.start();
    return rig;
  }

  /** A process that starts after the Pods of these bases, `p1` of `b1` and so on, were deleted. */
  async function startedAfter(bases: readonly string[], graceSeconds = 30): Promise<CoreRig> {
    for (const base of bases) {
      await first.foundBase(base);
      first.addPod({ name: podOn(base), uid: podOn(base), node: `vnode.${base}` });
    }
    await first.pass(5_000);
    await first.stop();
    for (const name of bases.map(podOn)) {
      first.deletePod(name, graceSeconds);
      const pod = first.api.pod(name);
      const conditions = pod?.status?.conditions?.map(({ reason: _, ...entry }) =>
        entry.type === 'Ready' ? { ...entry, status: 'False' as const } : entry,
      );
      first.api.put('pod', { ...pod, status: { ...pod?.status, conditions } } as never);
    }
    const next = new CoreRig({ preStopSleepSeconds: 2 });
    rigs.push(next);
    next.clock.advance(first.clock.wallTime().getTime() - next.clock.wallTime().getTime() + 100_000);
    for (const base of bases) {
      next.base(base).modules.set(KEY, 'ACTIVATED');
      const node = first.api.node(`vnode.${base}`);
      const conditions = node?.status?.conditions?.map((condition) => ({ ...condition, status: 'Unknown' }));
      next.api.put('node', { ...node, status: { ...node?.status, conditions } } as never);
      next.api.put('pod', first.api.pod(podOn(base)) as never);
    }
    await next.start();
    return next;
  }

  const isLeft = (rig: CoreRig, name: string): boolean => rig.podState(name) === 'Running False';

  it('the last Pod that serves stays until another one is Ready, and then serves for its sleep', async () => {
    const rig = await startedAfter(['b1']);
    rig.heartbeat('b1');
    await rig.pass(15_000);
    expect([rig.condition('vnode.b1', 'Ready'), isLeft(rig, 'p1'), rig.commands()]).toEqual([
      'True KubeletReady',
      true,
      [],
    ]);
    await rig.foundBase('b2');
    rig.addPod({ name: 'p2', node: 'vnode.b2' });
    await rig.pass(1_500);
    expect(rig.podState('p2')).toBe('Running True');
    expect(rig.podState('p1')).toBe('Running False PodDeleted');
    rig.commands();
    await rig.pass(400);
    expect(rig.commands()).toEqual([]);
    await rig.pass(2_000);
    expect(rig.commands()).toEqual([`uninstall b1 ${KEY}`]);
    expect(rig.api.pod('p1')).toBeUndefined();
  });

  it('it stays no longer than its grace period, and balancers learn of that before', async () => {
    const rig = await startedAfter(['b1'], 20);
    rig.heartbeat('b1');
    await rig.pass(17_000);
    expect([isLeft(rig, 'p1'), rig.commands()]).toEqual([true, []]);
    await rig.pass(2_000);
    expect([rig.podState('p1'), rig.commands()]).toEqual(['Running False PodDeleted', []]);
    await rig.pass(2_000);
    expect(rig.commands()).toEqual([`uninstall b1 ${KEY}`]);
  });

  it('a second deletion with a shorter grace period ends that', async () => {
    const rig = await startedAfter(['b1']);
    rig.heartbeat('b1');
    await rig.pass(5_000);
    rig.deletePod('p1', 1);
    await rig.pass(1_100);
    expect(rig.commands()).toEqual([`uninstall b1 ${KEY}`]);
  });

  it('of several Pods half go, and then one by one', async () => {
    const bases = ['b1', 'b2', 'b3', 'b4'];
    const rig = await startedAfter(bases);
    for (const base of bases) rig.heartbeat(base);
    await rig.pass(1_900);
    const left = (): string[] => bases.map(podOn).filter((name) => isLeft(rig, name));
    expect([left(), rig.commands()]).toEqual([['p3', 'p4'], []]);
    await rig.pass(8_000);
    expect([left(), rig.commands().sort()]).toEqual([
      ['p4'],
      ['b1', 'b2', 'b3'].map((base) => `uninstall ${base} ${KEY}`),
    ]);
    await rig.pass(15_000);
    expect([left(), rig.commands()]).toEqual([['p4'], []]);
  });

  it('a Pod whose module the base has lost leaves at once', async () => {
    const rig = await startedAfter(['b1']);
    rig.bases.get('b1')?.modules.clear();
    rig.heartbeat('b1');
    await rig.pass(12_000);
    expect(rig.api.pod('p1')).toBeUndefined();
  });

  it('a process that never saw the Node as Unknown keeps it too', async () => {
    const rig = await startedAfter(['b1']);
    const node = rig.api.node('vnode.b1');
    const conditions = node?.status?.conditions?.map((condition) => ({ ...condition, status: 'True' }));
    rig.api.put('node', { ...node, status: { ...node?.status, conditions } } as never);
    rig.heartbeat('b1');
    await rig.pass(15_000);
    expect([isLeft(rig, 'p1'), rig.commands()]).toEqual([true, []]);
  });
});
