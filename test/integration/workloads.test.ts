import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PodObject } from '../../src/kube/objects.ts';
import { eventually } from '../support/eventually.ts';
import { moduleWorkload } from '../support/manifests.ts';
import { ModuleRig } from '../support/module-rig.ts';
import {
  conditionOf,
  endpointsOf,
  eventsOf,
  findNode,
  findPod,
  isReady,
  pods,
  waitingReason,
} from '../support/observe.ts';
import { Spectator } from '../support/spectator.ts';

const run = promisify(execFile);

let rig: ModuleRig;
let kubeconfig: string;

beforeAll(async () => {
  rig = await ModuleRig.start({ count: 3 });
  kubeconfig = await rig.world.controlPlane.kubeconfig({ user: 'admin' });
});

afterAll(() => rig?.stop());

async function kubectl(...args: string[]): Promise<string> {
  return (await run('kubectl', ['--kubeconfig', kubeconfig, ...args])).stdout.trim();
}

function sample(file: string): string {
  return new URL(`../../samples/${file}`, import.meta.url).pathname;
}

function identityOf(pod: PodObject | undefined): string {
  return pod?.spec.nodeName?.slice('vnode.'.length) ?? '';
}

/** Until `count` Pods are Ready, and the API has no other of this selector. */
async function readyPods(selector: string, count: number): Promise<PodObject[]> {
  return eventually(async () => {
    const found = await pods(rig.admin, selector);
    expect(found.filter(isReady)).toHaveLength(count);
    expect(found).toHaveLength(count);
    return found;
  });
}

async function untilGone(selector: string): Promise<void> {
  await eventually(async () => expect(await pods(rig.admin, selector)).toEqual([]));
}

/** Modules of a name on all bases. */
function installed(name: string): string[] {
  return rig.fleet.bases.flatMap(({ identity }) => rig.modulesOf(identity, name).map((line) => `${identity} ${line}`));
}

describe('a Deployment, with kubectl', () => {
  it('A-004-2 install: rolls out over two bases, each Pod with the address of its base', async () => {
    await rig.world.controlPlane.apply(moduleWorkload('biz1', [{ name: 'biz1' }], { replicas: 2 }));
    await kubectl('rollout', 'status', 'deploy/biz1', '--timeout=60s');
    const table = (await kubectl('get', 'pods', '-l', 'app=biz1', '-o', 'wide', '--no-headers')).split('\n');
    expect(table).toHaveLength(2);
    const found = await pods(rig.admin, 'app=biz1');
    for (const pod of found) {
      const node = await findNode(rig.admin, identityOf(pod));
      expect(pod.status?.podIP).toBe(node?.status?.addresses?.find(({ type }) => type === 'InternalIP')?.address);
      expect(rig.modulesOf(identityOf(pod))).toContain('biz1:1.0.0 ACTIVATED');
      const row = table.find((line) => line.startsWith(pod.metadata.name)) ?? '';
      expect(row.split(/\s+/)).toMatchObject({ 1: '1/1', 2: 'Running', 5: pod.status?.podIP, 6: pod.spec.nodeName });
    }
    expect(new Set(found.map(identityOf)).size).toBe(2);
  });

  it('A-004-3 failure: is shown on the new Pod, the old Pods stay Ready, and rollout undo heals', async () => {
    const old = (await pods(rig.admin, 'app=biz1')).map(({ metadata }) => metadata.uid);
    const seen = await Spectator.watch(rig.admin, '/api/v1/namespaces/default/pods?labelSelector=app%3Dbiz1');
    await kubectl('set', 'image', 'deploy/biz1', 'biz1=https://jars.example.com/missing.jar');
    const failed = await eventually(async () => {
      const pod = (await pods(rig.admin, 'app=biz1')).find(
        ({ metadata, status }) => !old.includes(metadata.uid) && status?.containerStatuses !== undefined,
      );
      expect(waitingReason(pod)).toMatch(/^(ErrImagePull|ImagePullBackOff)$/);
      return pod as PodObject;
    });
    expect(isReady(failed)).toBe(false);
    await eventually(async () => {
      const events = await eventsOf(rig.admin, 'Pod', failed.metadata.name);
      expect(events.filter(({ type }) => type === 'Warning')).not.toHaveLength(0);
    });
    await kubectl('rollout', 'undo', 'deploy/biz1');
    await kubectl('rollout', 'status', 'deploy/biz1', '--timeout=60s');
    const left = await readyPods('app=biz1', 2);
    expect(left.map(({ metadata }) => metadata.uid).sort()).toEqual(old.sort());
    expect(seen.everNotReady()).toEqual([]);
    seen.stop();
  });

  it('A-004-11 service: kubectl expose has the addresses of Ready Pods only', async () => {
    await kubectl('expose', 'deploy/biz1', '--port=8080');
    const endpointOf = ({ metadata, status }: PodObject): string => `${metadata.name} ${status?.podIP}`;
    const both = await readyPods('app=biz1', 2);
    await eventually(async () => expect(await endpointsOf(rig.admin, 'biz1')).toEqual(both.map(endpointOf).sort()));

    const release = rig.fleet.setFault({ command: 'installBiz', bizName: 'biz1', failure: 'java.lang.Exception: no' });
    await kubectl('scale', 'deploy/biz1', '--replicas=3');
    await eventually(async () => {
      const third = (await pods(rig.admin, 'app=biz1')).find((pod) => !isReady(pod));
      expect(waitingReason(third)).toBeDefined();
      expect(third?.status?.podIP).toBe(rig.fleet.base(identityOf(third)).localIP);
    });
    expect(await endpointsOf(rig.admin, 'biz1')).toEqual(both.map(endpointOf).sort());

    release();
    const three = await readyPods('app=biz1', 3);
    await eventually(async () => expect(await endpointsOf(rig.admin, 'biz1')).toEqual(three.map(endpointOf).sort()));
  });

  it('that is deleted takes its modules along', async () => {
    await kubectl('delete', 'deploy,service', 'biz1');
    await untilGone('app=biz1');
    expect(installed('biz1')).toEqual([]);
  });
});

/** As they are in the repository. */
describe.concurrent('the samples, with kubectl', () => {
  it('A-004-12 daemonset: has one module per base, also on a base that comes later', async () => {
    await kubectl('apply', '-f', sample('module-daemonset.yaml'));
    await readyPods('app=audit', 3);
    await rig.fleet.add({ identity: 'base-4' });
    const all = await readyPods('app=audit', 4);
    expect(all.map(identityOf).sort()).toEqual(['base-1', 'base-2', 'base-3', 'base-4']);
    expect(installed('audit')).toEqual(all.map((pod) => `${identityOf(pod)} audit:1.0.0 ACTIVATED`).sort());
    await kubectl('delete', '-f', sample('module-daemonset.yaml'));
    await untilGone('app=audit');
    expect(installed('audit')).toEqual([]);
  });

  it('a StatefulSet brings ledger-0 before ledger-1, updates the last first, and keeps the names', async () => {
    const seen = await Spectator.watch(rig.admin, '/api/v1/namespaces/default/pods?labelSelector=app%3Dledger');
    await kubectl('apply', '-f', sample('module-statefulset.yaml'));
    await kubectl('rollout', 'status', 'statefulset/ledger', '--timeout=120s');
    const first = await readyPods('app=ledger', 2);
    expect(first.map(({ metadata }) => metadata.name).sort()).toEqual(['ledger-0', 'ledger-1']);
    const readyAt = (name: string): number => seen.sightings.findIndex((s) => s.name === name && s.ready === 'True');
    expect(readyAt('ledger-0')).toBeLessThan(seen.sightings.findIndex(({ name }) => name === 'ledger-1'));
    seen.stop();

    const mark = rig.fleet.history.mark();
    await kubectl('set', 'env', 'statefulset/ledger', 'BIZ_VERSION=2.0.0');
    await kubectl('rollout', 'status', 'statefulset/ledger', '--timeout=120s');
    const second = await readyPods('app=ledger', 2);
    expect(second.map(({ metadata }) => metadata.name).sort()).toEqual(['ledger-0', 'ledger-1']);
    expect(installed('ledger')).toEqual(second.map((pod) => `${identityOf(pod)} ledger:2.0.0 ACTIVATED`).sort());
    const gone = rig.fleet.history.records({ command: 'uninstallBiz', bizName: 'ledger', since: mark });
    const baseOf = (name: string): string => identityOf(first.find(({ metadata }) => metadata.name === name));
    expect(gone.map(({ base }) => base)).toEqual([baseOf('ledger-1'), baseOf('ledger-0')]);
    await kubectl('delete', '-f', sample('module-statefulset.yaml'));
    await untilGone('app=ledger');
    expect(installed('ledger')).toEqual([]);
  });

  it('a bare Pod is scheduled to one base, and uninstalled with it', async () => {
    await kubectl('apply', '-f', sample('module-pod.yaml'));
    await kubectl('wait', '--for=condition=Ready', 'pod/hello', '--timeout=60s');
    const pod = await findPod(rig.admin, 'hello');
    expect(installed('hello')).toEqual([`${identityOf(pod)} hello:1.0.0 ACTIVATED`]);
    await kubectl('delete', '-f', sample('module-pod.yaml'));
    expect(installed('hello')).toEqual([]);
  });

  it('two modules in one Pod come to the same base, and the Pod is Ready with both', async () => {
    await kubectl('apply', '-f', sample('two-modules.yaml'));
    await kubectl('wait', '--for=condition=Ready', 'pod/cart-and-coupon', '--timeout=60s');
    const pod = await findPod(rig.admin, 'cart-and-coupon');
    expect(conditionOf(pod, 'ContainersReady')?.status).toBe('True');
    expect(pod?.status?.containerStatuses?.map(({ name, ready }) => `${name} ${ready}`)).toEqual([
      'cart true',
      'coupon true',
    ]);
    expect(installed('cart')).toEqual([`${identityOf(pod)} cart:1.0.0 ACTIVATED`]);
    expect(installed('coupon')).toEqual([`${identityOf(pod)} coupon:1.0.0 ACTIVATED`]);
    await kubectl('delete', '-f', sample('two-modules.yaml'));
    expect([...installed('cart'), ...installed('coupon')]).toEqual([]);
  });
});
