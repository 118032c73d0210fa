import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PodObject } from '../../src/kube/objects.ts';
import { eventually } from '../support/eventually.ts';
import { moduleWorkload } from '../support/manifests.ts';
import { ModuleRig } from '../support/module-rig.ts';
import { eventsOf, findNode, isReady, pods, waitingReason } from '../support/observe.ts';

const run = promisify(execFile);

let rig: ModuleRig;

beforeAll(async () => {
  rig = await ModuleRig.start({ count: 3 });
});

afterAll(() => rig?.stop());

describe('A-004-2 install, with kubectl', () => {
  it('rolls a standard Deployment out over two bases', async () => {
    const kubeconfig = await rig.world.controlPlane.kubeconfig({ user: 'admin' });
    const kubectl = async (...args: string[]) => (await run('kubectl', ['--kubeconfig', kubeconfig, ...args])).stdout;
    await rig.world.controlPlane.apply(moduleWorkload('biz1', [{ name: 'biz1' }], { replicas: 2 }));
    await kubectl('rollout', 'status', 'deploy/biz1', '--timeout=60s');
    const table = (await kubectl('get', 'pods', '-l', 'app=biz1', '-o', 'wide', '--no-headers')).trim().split('\n');
    expect(table).toHaveLength(2);
    for (const row of table)
      expect(row).toMatch(/1\/1\s+Running\s+0\s+\S+\s+(198\.51\.100|203\.0\.113)\.\d+\s+vnode\.base-\d/);
    for (const pod of await pods(rig.admin, 'app=biz1')) {
      const identity = pod.spec.nodeName?.slice('vnode.'.length) ?? '';
      const node = await findNode(rig.admin, identity);
      expect(pod.status?.podIP).toBe(node?.status?.addresses?.find(({ type }) => type === 'InternalIP')?.address);
      expect(rig.modulesOf(identity)).toContain('biz1:1.0.0 ACTIVATED');
    }
  });

  it('A-004-3: shows a failed install on the Pod, keeps the old Pods Ready, and heals by rollout undo', async () => {
    const kubeconfig = await rig.world.controlPlane.kubeconfig({ user: 'admin' });
    const kubectl = async (...args: string[]) => (await run('kubectl', ['--kubeconfig', kubeconfig, ...args])).stdout;
    const old = (await pods(rig.admin, 'app=biz1')).map(({ metadata }) => metadata.uid);
    await kubectl('set', 'image', 'deploy/biz1', `biz1=https://jars.example.com/missing.jar`);
    const failed = await eventually(async () => {
      const pod = (await pods(rig.admin, 'app=biz1')).find(({ metadata }) => !old.includes(metadata.uid));
      expect(waitingReason(pod)).toMatch(/^(ErrImagePull|ImagePullBackOff|VersionInUse)$/);
      return pod as PodObject;
    });
    expect(isReady(failed)).toBe(false);
    await eventually(async () => {
      const events = await eventsOf(rig.admin, 'Pod', failed.metadata.name);
      expect(events.filter(({ type }) => type === 'Warning')).not.toHaveLength(0);
    });
    const stillReady = (await pods(rig.admin, 'app=biz1')).filter(
      (pod) => old.includes(pod.metadata.uid) && isReady(pod),
    );
    expect(stillReady.length).toBeGreaterThanOrEqual(1);
    await kubectl('rollout', 'undo', 'deploy/biz1');
    await kubectl('rollout', 'status', 'deploy/biz1', '--timeout=60s');
    await kubectl('delete', 'deploy', 'biz1');
    await eventually(async () => expect(await pods(rig.admin, 'app=biz1')).toHaveLength(0));
    for (const identity of ['base-1', 'base-2', 'base-3']) expect(rig.modulesOf(identity).join()).not.toContain('biz1');
  });

  it('A-004-12: a DaemonSet has one module per base, also on a base that comes later', async () => {
    await rig.world.controlPlane.apply(moduleWorkload('daemon', [{ name: 'daemon' }], { kind: 'DaemonSet' }));
    const onBases = async (): Promise<string[]> =>
      (await pods(rig.admin, 'app=daemon')).filter(isReady).map(({ spec }) => spec.nodeName ?? '');
    await eventually(async () =>
      expect(await onBases()).toEqual(expect.arrayContaining(['vnode.base-1', 'vnode.base-2', 'vnode.base-3'])),
    );
    const late = await rig.fleet.add({ identity: 'late' });
    late.announce();
    await eventually(async () => expect(await onBases()).toContain('vnode.late'));
    await rig.admin.delete('/apis/apps/v1/namespaces/default/daemonsets/daemon');
    // The bases that other tests killed keep theirs until they are given up.
    await eventually(async () => {
      const left = (await pods(rig.admin, 'app=daemon')).map(({ spec }) => spec.nodeName);
      for (const identity of ['base-1', 'base-2', 'base-3', 'late']) expect(left).not.toContain(`vnode.${identity}`);
    });
    await late.kill();
  });
});
