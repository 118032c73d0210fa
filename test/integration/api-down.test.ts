import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { LeaseObject, NodeObject, PodObject } from '../../src/kube/objects.ts';
import { ApiFaultProxy, seededRandom } from '../support/api-fault-proxy.ts';
import { modulesOn, modulesWanted } from '../support/end-state.ts';
import { eventually } from '../support/eventually.ts';
import { modulePod, moduleWorkload } from '../support/manifests.ts';
import { conditionOf, findLease, findNode, findPod, isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { nodePath, type OwnWorld, podPath, startOwnWorld } from '../support/world.ts';

const BASES = 10;
const ALL = Array.from({ length: BASES }, (_, index) => index + 1);
/** Long enough to be in work when the lights go out. */
const IN_WORK_MS = 3_000;

let world: OwnWorld;
let fleet: Fleet;
let proxy: ApiFaultProxy;

beforeAll(async () => {
  // With more patience of the node lifecycle controller than the outage lasts, every Ready transition is our word.
  const extraArgs = { 'kube-controller-manager': ['--node-monitor-grace-period=180s'] };
  world = await startOwnWorld({ extraArgs });
  const { controlPlane } = world;
  const { server, certificateAuthority } = controlPlane;
  proxy = await ApiFaultProxy.start({ server, certificateAuthority, random: seededRandom(1) });
  const kubeconfig = await controlPlane.kubeconfig({ serviceAccount: 'koupleless-system/module-controller' });
  await world.startController({ KUBECONFIG: await proxy.kubeconfig(kubeconfig) });
  fleet = await world.startFleet({ count: BASES });
  fleet.setFault({ bizName: 'slow', installMs: IN_WORK_MS });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(BASES), 30_000);
  await create('kept', ALL);
  await settled(BASES, 30_000);
});

afterAll(async () => {
  await world?.stop();
  await proxy?.stop();
});

/** `name-N` with module `module` on base-N, for each of `numbers`. */
async function create(name: string, numbers: readonly number[], module = name): Promise<void> {
  for (const number of numbers) {
    const pod = modulePod(`${name}-${number}`, [{ name: module }], { nodeName: `vnode.base-${number}` });
    await world.admin.post('/api/v1/namespaces/default/pods', pod);
  }
}

async function remove(name: string, numbers: readonly number[], query = ''): Promise<void> {
  for (const number of numbers) await world.admin.delete(`${podPath(`${name}-${number}`)}${query}`);
}

/** All Pods are Ready but those in `except`, and the bases have what they ask for and nothing else. */
async function settled(count: number, timeoutMs: number): Promise<PodObject[]> {
  return eventually(async () => {
    const found = await pods(world.admin);
    expect([found.length, found.filter(isReady).length]).toEqual([count, count]);
    expect(modulesOn(fleet)).toEqual(modulesWanted(found));
    return found;
  }, timeoutMs);
}

/** The Pods with restarts, and no others: a status that could not be written is tried again each 30 s at least. */
async function restarted(names: (all: readonly PodObject[]) => string[]): Promise<void> {
  await eventually(async () => {
    const all = await pods(world.admin);
    const countOf = ({ status }: PodObject): number => status?.containerStatuses?.[0]?.restartCount ?? 0;
    const counted = all.filter((pod) => countOf(pod) > 0).map((pod) => `${pod.metadata.name} ${countOf(pod)}`);
    expect(counted.sort()).toEqual(names(all).sort());
  }, 45_000);
}

/** UID and last transition of the Ready condition: equal ones mean that the Node was Ready all the time. */
function readyMarks(all: readonly NodeObject[]): string[] {
  const markOf = (node: NodeObject): string => {
    const { status, lastTransitionTime } = conditionOf(node, 'Ready') ?? {};
    return [node.metadata.name, node.metadata.uid, status, lastTransitionTime].join(' ');
  };
  return all.map(markOf).sort();
}

function inWork(command: string, since: number): Promise<void> {
  return eventually(() => expect(fleet.history.records({ command, since, outcome: 'in work' })).not.toEqual([]));
}

describe('an API server that only we cannot reach for 35 s, while the cluster goes on', () => {
  it('is caught up with: what came is installed, what went is uninstalled, what stayed is not touched', async () => {
    await create('forced', [1, 2, 3]);
    await create('same', [4, 5]);
    await create('leaving', [6, 7]);
    await settled(17, 30_000);
    const before = readyMarks(await nodes(world.admin));
    const mark = fleet.history.mark();
    await proxy.down();
    const downAt = performance.now();
    await create('new', [1, 2, 3]);
    await remove('forced', [1, 2, 3], '?gracePeriodSeconds=0');
    // The same name and module under another UID: in the end it has to be there.
    await remove('same', [4, 5], '?gracePeriodSeconds=0');
    await create('same', [4, 5]);
    await remove('leaving', [6, 7]);
    await fleet.base('base-8').restart();
    await delay(35_000 - (performance.now() - downAt));
    await proxy.up();
    await settled(15, 40_000);
    await restarted(() => ['kept-8 1']);
    expect(readyMarks(await nodes(world.admin))).toEqual(before);
    const commands = fleet.history
      .records({ since: mark })
      .filter(({ command }) => command === 'installBiz' || command === 'uninstallBiz')
      .map(({ base, command, bizName, outcome }) => `${bizName} ${command} ${base} ${outcome}`)
      .sort();
    // Whether the module was taken over or installed anew depends on how close both events came to each other.
    const isOfSame = (text: string): boolean => text.startsWith('same ');
    const ofSame = [4, 5].flatMap((n) => ['install', 'uninstall'].map((what) => `same ${what}Biz base-${n} executed`));
    expect(ofSame).toEqual(expect.arrayContaining(commands.filter(isOfSame)));
    expect(commands.filter((text) => !isOfSame(text))).toEqual([
      ...[1, 2, 3].map((n) => `forced uninstallBiz base-${n} executed`),
      'kept installBiz base-8 executed',
      ...[6, 7].map((n) => `leaving uninstallBiz base-${n} executed`),
      ...[1, 2, 3].map((n) => `new installBiz base-${n} executed`),
    ]);
    await remove('same', [4, 5]);
    await remove('new', [1, 2, 3]);
    await remove('kept', [8]);
    await settled(BASES - 1, 40_000);
    await create('kept', [8]);
  });
});

describe('an API server that is down for 60 s, with installs and uninstalls under way', () => {
  it('makes nobody judged and nothing done twice; what happened meanwhile is told, and the dead are given up', async () => {
    const { admin, controlPlane } = world;
    const dead = 'base-3';
    // A scheduler whose own watch is still broken would bind the replacement to the Node that is gone.
    await admin.mergePatch(nodePath(dead), { spec: { unschedulable: true } });
    await controlPlane.apply(moduleWorkload('spread', [{ name: 'spread' }], { replicas: 5 }));
    await create('leaving', [1, 2], 'slow');
    await settled(BASES + 7, 30_000);
    const mark = fleet.history.mark();
    const before = readyMarks((await nodes(admin)).filter(({ metadata }) => metadata.name !== `vnode.${dead}`));
    // Of the two uninstalls one is answered before the outage, so that only its Pod is left to be deleted.
    fleet.setFault({ command: 'uninstallBiz', bizName: 'slow', answerDelayMs: IN_WORK_MS, times: 1 });
    await create('coming', [4, 5, 6], 'slow');
    await inWork('installBiz', mark);
    await remove('leaving', [1, 2]);
    await eventually(() =>
      expect(fleet.history.records({ command: 'uninstallBiz', outcome: 'executed', since: mark })).not.toEqual([]),
    );
    const apiServer = controlPlane.component('kube-apiserver');
    await apiServer.stopProcess('SIGKILL');
    const downAt = performance.now();

    await fleet.base(dead).kill();
    await fleet.base('base-8').restart();
    fleet.base('base-9').crashModule('kept', '1.0.0');
    fleet.base('base-9').announceModules();
    await delay(60_000 - (performance.now() - downAt));
    await apiServer.start();
    const upAt = Date.now();

    // By the name of the Node: kube-scheduler binds nothing before its own watches are back, up to a minute later.
    await create('early', [1]);
    await eventually(async () => {
      expect(isReady(await findPod(admin, 'early-1'))).toBe(true);
      const living = (await nodes(admin)).filter(({ metadata }) => metadata.name !== `vnode.${dead}`);
      expect(living.filter(isSchedulable)).toHaveLength(BASES - 1);
    }, 10_000);
    await eventually(async () => {
      for (const number of ALL.filter((other) => `base-${other}` !== dead)) {
        const lease = (await findLease(admin, `base-${number}`)) as LeaseObject | undefined;
        expect(Date.parse(lease?.spec?.renewTime ?? '')).toBeGreaterThan(upAt - 5_000);
      }
    }, 15_000);
    await eventually(async () => expect(await findNode(admin, dead)).toBeUndefined(), 40_000);
    const found = await settled(BASES - 1 + 5 + 3 + 1, 60_000);
    expect(found.filter(({ spec }) => spec.nodeName === `vnode.${dead}`)).toEqual([]);
    expect(readyMarks(await nodes(admin))).toEqual(before);
    await restarted((all) => [
      ...all.filter(({ spec }) => spec.nodeName === 'vnode.base-8').map(({ metadata }) => `${metadata.name} 1`),
      'kept-9 1',
    ]);
    expect(fleet.history.installsWhileActiveOrInWork()).toEqual([]);
    const executed = fleet.history.installsExecuted({ since: mark }).map(({ base, bizName }) => `${base} ${bizName}`);
    expect(executed.filter((text) => text.endsWith(' kept')).sort()).toEqual(['base-8 kept', 'base-9 kept']);
    expect(executed.filter((text) => text.endsWith(' slow')).sort()).toEqual([4, 5, 6].map((n) => `base-${n} slow`));
  }, 240_000);
});
