import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { PodObject } from '../../src/kube/objects.ts';
import { eventually } from '../support/eventually.ts';
import { jarOf, modulePod, moduleWorkload } from '../support/manifests.ts';
import { eventsOf, findNode, findPod, isReady, isSchedulable, nodes, pods, waitingReason } from '../support/observe.ts';
import { type ControllerProcess, podPath, startWorld, type World } from '../support/world.ts';

const run = promisify(execFile);

let world: World;
let fleet: Fleet;
let controller: ControllerProcess;

beforeAll(async () => {
  world = await startWorld();
  controller = await world.startController();
  fleet = await world.startFleet({ count: 3 });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(3));
});

afterAll(() => world?.stop());

function modulesOf(identity: string): string[] {
  return fleet
    .base(identity)
    .modules()
    .map(({ bizName, bizVersion, state }) => `${bizName}:${bizVersion} ${state}`);
}

function readyPod(name: string, timeoutMs?: number): Promise<PodObject> {
  return eventually(async () => {
    const pod = await findPod(world.admin, name);
    expect(pod?.status).toSatisfy(() => isReady(pod));
    return pod as PodObject;
  }, timeoutMs);
}

function installs(name: string, base?: string) {
  return fleet.history.records({ command: 'installBiz', bizName: name, ...(base ? { base } : {}) });
}

async function gone(name: string): Promise<void> {
  await eventually(async () => expect(await findPod(world.admin, name)).toBeUndefined());
}

async function remove(name: string): Promise<void> {
  await world.admin.delete(podPath(name));
  await gone(name);
}

describe('A-004-1 discovery', () => {
  it('turns a base that starts into a Node within 5 s, with labels, taints and addresses of the design', async () => {
    const base = await fleet.add({
      identity: 'b4',
      name: 'shop',
      version: '7.0.0',
      clusterName: 'east',
      localHostName: 'host-4',
    });
    base.announce();
    const node = await eventually(async () => {
      const found = await findNode(world.admin, 'b4');
      expect(found && isReady(found)).toBe(true);
      return found;
    }, 5_000);
    expect(node?.metadata.labels).toMatchObject({
      'base.koupleless.io/stack': 'java',
      'virtual-kubelet.koupleless.io/component': 'vnode',
      'virtual-kubelet.koupleless.io/env': 'dev',
      'vnode.koupleless.io/name': 'shop',
      'vnode.koupleless.io/version': '7.0.0',
      'vnode.koupleless.io/tunnel': 'mqtt_tunnel_provider',
      'base.koupleless.io/name': 'shop',
      'base.koupleless.io/version': '7.0.0',
      'base.koupleless.io/cluster-name': 'east',
      'base.koupleless.io/host-name': 'host-4',
      'kubernetes.io/hostname': 'vnode.b4',
    });
    expect(node?.spec?.taints).toEqual(
      expect.arrayContaining([
        { key: 'schedule.koupleless.io/virtual-node', value: 'True', effect: 'NoExecute' },
        { key: 'schedule.koupleless.io/node-env', value: 'dev', effect: 'NoExecute' },
      ]),
    );
    expect(node?.status?.addresses).toEqual([
      { type: 'InternalIP', address: base.localIP },
      { type: 'Hostname', address: 'host-4' },
    ]);
    expect(node?.spec?.providerID).toBe('koupleless://dev/b4');
    await base.kill();
  });

  it('refuses identities that cannot be node names, and messages in another name, and nobody else notices', async () => {
    const before = await controller.metric('tunnel_invalid_messages_total', 'Arklet.InvalidIdentity');
    const bad = await fleet.add({ identity: 'Not_A_Name' });
    bad.announce();
    fleet.base('base-2').setPayloadIdentity('base-3');
    fleet.base('base-2').beat();
    await eventually(async () => {
      expect(await controller.metric('tunnel_invalid_messages_total', 'Arklet.InvalidIdentity')).toBeGreaterThan(
        before,
      );
      expect(await controller.metric('tunnel_invalid_messages_total', 'Arklet.IdentityMismatch')).toBeGreaterThan(0);
    });
    fleet.base('base-2').setPayloadIdentity(undefined);
    fleet.base('base-1').publishRaw('health', '{"data": {{{ not json');
    fleet.base('base-1').publishRaw('simpleBiz', '{"data":[{"name":42}]}');
    await eventually(async () =>
      expect(await controller.metric('tunnel_invalid_messages_total', 'Arklet.InvalidMessage')).toBeGreaterThanOrEqual(
        2,
      ),
    );
    expect((await nodes(world.admin)).map(({ metadata }) => metadata.name)).not.toContain('vnode.Not_A_Name');
    expect(isReady(await findNode(world.admin, 'base-1'))).toBe(true);
    await bad.kill();
  });

  it('serves a base with a loopback address without breaking Services: no podIP, a Warning and a counter', async () => {
    const base = await fleet.add({ identity: 'loop', localIP: '127.0.0.1' });
    base.announce();
    await world.admin.post(
      '/api/v1/namespaces/default/pods',
      modulePod('on-loop', [{ name: 'looped' }], { nodeName: 'vnode.loop' }),
    );
    const pod = await readyPod('on-loop');
    expect(pod.status?.podIP).toBeUndefined();
    expect(await controller.metric('module_controller_unroutable_base_addresses_total')).toBe(1);
    const reasons = await eventually(async () => {
      const found = (await eventsOf(world.admin, 'Node', 'vnode.loop')).map(({ type, reason }) => `${type} ${reason}`);
      expect(found).toContain('Warning UnroutableAddress');
      return found;
    });
    expect(reasons).toContain('Warning UnroutableAddress');
    await remove('on-loop');
    await base.kill();
  });

  it('treats a base whose clock is an hour off as an ordinary base', async () => {
    const base = await fleet.add({ identity: 'skewed', clockSkewMs: -3_600_000 });
    base.announce();
    await world.admin.post(
      '/api/v1/namespaces/default/pods',
      modulePod('on-skewed', [{ name: 'biz' }], { nodeName: 'vnode.skewed' }),
    );
    await readyPod('on-skewed');
    await remove('on-skewed');
    await base.kill();
  });
});

describe('A-004-2 install, with kubectl', () => {
  it('rolls a standard Deployment out over two bases', async () => {
    const kubeconfig = await world.controlPlane.kubeconfig({ user: 'admin' });
    const kubectl = async (...args: string[]) => (await run('kubectl', ['--kubeconfig', kubeconfig, ...args])).stdout;
    await world.controlPlane.apply(moduleWorkload('biz1', [{ name: 'biz1' }], { replicas: 2 }));
    await kubectl('rollout', 'status', 'deploy/biz1', '--timeout=60s');
    const table = (await kubectl('get', 'pods', '-l', 'app=biz1', '-o', 'wide', '--no-headers')).trim().split('\n');
    expect(table).toHaveLength(2);
    for (const row of table)
      expect(row).toMatch(/1\/1\s+Running\s+0\s+\S+\s+(198\.51\.100|203\.0\.113)\.\d+\s+vnode\.base-\d/);
    for (const pod of await pods(world.admin, 'app=biz1')) {
      const identity = pod.spec.nodeName?.slice('vnode.'.length) ?? '';
      const node = await findNode(world.admin, identity);
      expect(pod.status?.podIP).toBe(node?.status?.addresses?.find(({ type }) => type === 'InternalIP')?.address);
      expect(modulesOf(identity)).toContain('biz1:1.0.0 ACTIVATED');
    }
  });

  it('A-004-3: shows a failed install on the Pod, keeps the old Pods Ready, and heals by rollout undo', async () => {
    const kubeconfig = await world.controlPlane.kubeconfig({ user: 'admin' });
    const kubectl = async (...args: string[]) => (await run('kubectl', ['--kubeconfig', kubeconfig, ...args])).stdout;
    const old = (await pods(world.admin, 'app=biz1')).map(({ metadata }) => metadata.uid);
    await kubectl('set', 'image', 'deploy/biz1', `biz1=https://jars.example.com/missing.jar`);
    const failed = await eventually(async () => {
      const pod = (await pods(world.admin, 'app=biz1')).find(({ metadata }) => !old.includes(metadata.uid));
      expect(waitingReason(pod)).toMatch(/^(ErrImagePull|ImagePullBackOff|VersionInUse)$/);
      return pod as PodObject;
    });
    expect(isReady(failed)).toBe(false);
    await eventually(async () => {
      const events = await eventsOf(world.admin, 'Pod', failed.metadata.name);
      expect(events.filter(({ type }) => type === 'Warning')).not.toHaveLength(0);
    });
    const stillReady = (await pods(world.admin, 'app=biz1')).filter(
      (pod) => old.includes(pod.metadata.uid) && isReady(pod),
    );
    expect(stillReady.length).toBeGreaterThanOrEqual(1);
    await kubectl('rollout', 'undo', 'deploy/biz1');
    await kubectl('rollout', 'status', 'deploy/biz1', '--timeout=60s');
    await kubectl('delete', 'deploy', 'biz1');
    await eventually(async () => expect(await pods(world.admin, 'app=biz1')).toHaveLength(0));
    for (const identity of ['base-1', 'base-2', 'base-3']) expect(modulesOf(identity).join()).not.toContain('biz1');
  });

  it('A-004-12: a DaemonSet has one module per base, also on a base that comes later', async () => {
    await world.controlPlane.apply(moduleWorkload('daemon', [{ name: 'daemon' }], { kind: 'DaemonSet' }));
    const onBases = async (): Promise<string[]> =>
      (await pods(world.admin, 'app=daemon')).filter(isReady).map(({ spec }) => spec.nodeName ?? '');
    await eventually(async () =>
      expect(await onBases()).toEqual(expect.arrayContaining(['vnode.base-1', 'vnode.base-2', 'vnode.base-3'])),
    );
    const late = await fleet.add({ identity: 'late' });
    late.announce();
    await eventually(async () => expect(await onBases()).toContain('vnode.late'));
    await world.admin.delete('/apis/apps/v1/namespaces/default/daemonsets/daemon');
    // The bases that other tests killed keep theirs until they are given up.
    await eventually(async () => {
      const left = (await pods(world.admin, 'app=daemon')).map(({ spec }) => spec.nodeName);
      for (const identity of ['base-1', 'base-2', 'base-3', 'late']) expect(left).not.toContain(`vnode.${identity}`);
    });
    await late.kill();
  });
});

describe('a vPod', () => {
  it('with two modules is Ready only when both are, and takes both along', async () => {
    fleet.setFault({ command: 'installBiz', bizName: 'slow', installMs: 3_000, times: 1 });
    await world.admin.post(
      '/api/v1/namespaces/default/pods',
      modulePod('two', [{ name: 'quick' }, { name: 'slow' }], { nodeName: 'vnode.base-1' }),
    );
    const half = await eventually(async () => {
      const pod = await findPod(world.admin, 'two');
      expect(pod?.status?.containerStatuses?.map(({ ready }) => ready)).toEqual([true, false]);
      return pod;
    });
    expect(half?.status?.phase).toBe('Pending');
    expect(waitingReason(half, 1)).toBe('ContainerCreating');
    const pod = await readyPod('two');
    expect(pod.status?.containerStatuses?.map(({ containerID }) => containerID)).toEqual([
      'koupleless://base-1/quick:1.0.0',
      'koupleless://base-1/slow:1.0.0',
    ]);
    await remove('two');
    expect(modulesOf('base-1')).toEqual([]);
  });

  it('hands args and env over to the base', async () => {
    const pod = modulePod('args', [{ name: 'args', args: ['--a=1', 'b'] }], { nodeName: 'vnode.base-1' });
    pod.spec.containers[0]?.env.push({ name: 'COLOUR', value: 'blue' });
    await world.admin.post('/api/v1/namespaces/default/pods', pod);
    await readyPod('args');
    const sent = world.broker.recorder.records({ topic: 'koupleless_dev/base-1/installBiz' }).at(-1);
    expect(JSON.parse(String(sent?.payload))).toMatchObject({ args: ['--a=1', 'b'], envs: { COLOUR: 'blue' } });
    expect(sent?.retain).toBe(false);
    await remove('args');
  });

  it('without a .jar stays Pending with one Warning, and goes at once when deleted', async () => {
    const pod = modulePod('nginx', [{ name: 'nginx', image: 'nginx:1.29' }], { nodeName: 'vnode.base-1' });
    await world.admin.post('/api/v1/namespaces/default/pods', pod);
    await eventually(async () => {
      const found = await findPod(world.admin, 'nginx');
      expect(found?.status).toMatchObject({ phase: 'Pending', reason: 'UnsupportedWorkload' });
      const warnings = (await eventsOf(world.admin, 'Pod', 'nginx')).filter(
        ({ reason }) => reason === 'UnsupportedWorkload',
      );
      expect(warnings.map(({ count, type }) => ({ count, type }))).toEqual([{ count: 1, type: 'Warning' }]);
    });
    await remove('nginx');
  });

  it('without BIZ_VERSION says so and installs nothing', async () => {
    const pod = modulePod('noversion', [{ name: 'noversion' }], { nodeName: 'vnode.base-1' });
    pod.spec.containers[0]?.env.splice(0);
    await world.admin.post('/api/v1/namespaces/default/pods', pod);
    await eventually(async () => {
      const found = await findPod(world.admin, 'noversion');
      expect(waitingReason(found)).toBe('CreateContainerConfigError');
      expect(found?.status?.containerStatuses?.[0]?.state?.waiting?.message).toContain('BIZ_VERSION');
    });
    expect(installs('noversion')).toEqual([]);
    await remove('noversion');
  });

  it('that is force-deleted is uninstalled from that event', async () => {
    await world.admin.post(
      '/api/v1/namespaces/default/pods',
      modulePod('forced', [{ name: 'forced' }], { nodeName: 'vnode.base-1' }),
    );
    await readyPod('forced');
    await world.admin.delete(podPath('forced'), { gracePeriodSeconds: 0 });
    await eventually(() => expect(modulesOf('base-1')).toEqual([]));
  });

  it('under the same name with a new UID is another Pod: the late end of the old one does not hurt it', async () => {
    const release = fleet.setFault({ command: 'uninstallBiz', bizName: 'again', answers: 'never' });
    await world.admin.post(
      '/api/v1/namespaces/default/pods',
      modulePod('again', [{ name: 'again' }], { nodeName: 'vnode.base-2' }),
    );
    const first = await readyPod('again');
    await world.admin.delete(podPath('again'), { gracePeriodSeconds: 0 });
    await world.admin.post(
      '/api/v1/namespaces/default/pods',
      modulePod('again', [{ name: 'again' }], { nodeName: 'vnode.base-2' }),
    );
    release();
    const second = await readyPod('again', 60_000);
    expect(second.metadata.uid).not.toBe(first.metadata.uid);
    expect(modulesOf('base-2')).toEqual(['again:1.0.0 ACTIVATED']);
    await remove('again');
    expect(modulesOf('base-2')).toEqual([]);
  });

  it('shares a module with another one that wants the very same, with a Warning; uninstalled with the last', async () => {
    for (const name of ['share-a', 'share-b']) {
      await world.admin.post(
        '/api/v1/namespaces/default/pods',
        modulePod(name, [{ name: 'shared' }], { nodeName: 'vnode.base-3' }),
      );
      await readyPod(name);
    }
    expect(installs('shared')).toHaveLength(1);
    await eventually(async () => {
      const reasons = (await eventsOf(world.admin, 'Pod', 'share-b')).map(({ reason }) => reason);
      expect(reasons).toContain('ModuleShared');
    });
    await remove('share-a');
    expect(modulesOf('base-3')).toEqual(['shared:1.0.0 ACTIVATED']);
    expect(isReady(await findPod(world.admin, 'share-b'))).toBe(true);
    await remove('share-b');
    expect(modulesOf('base-3')).toEqual([]);
  });

  it('waits with VersionInUse while another Pod has the version with another URL, and goes on when that is gone', async () => {
    await world.admin.post(
      '/api/v1/namespaces/default/pods',
      modulePod('holder', [{ name: 'dup' }], { nodeName: 'vnode.base-3' }),
    );
    await readyPod('holder');
    const other = modulePod('waiter', [{ name: 'dup', image: jarOf('dup-other', '1.0.0') }], {
      nodeName: 'vnode.base-3',
    });
    await world.admin.post('/api/v1/namespaces/default/pods', other);
    await eventually(async () => {
      const waiter = await findPod(world.admin, 'waiter');
      expect(waitingReason(waiter)).toBe('VersionInUse');
      const messages = (await eventsOf(world.admin, 'Pod', 'waiter')).map(({ message }) => message);
      expect(messages.join('\n')).toContain('change BIZ_VERSION');
    });
    await remove('holder');
    await readyPod('waiter');
    expect(installs('dup').map(({ bizUrl, outcome }) => `${bizUrl} ${outcome}`)).toEqual([
      `${jarOf('dup', '1.0.0')} executed`,
      `${jarOf('dup-other', '1.0.0')} executed`,
    ]);
    await remove('waiter');
  });

  it('stays Terminating with the base’s words while the uninstall fails, and goes when it succeeds', async () => {
    await world.admin.post(
      '/api/v1/namespaces/default/pods',
      modulePod('stuck', [{ name: 'stuck' }], { nodeName: 'vnode.base-1' }),
    );
    await readyPod('stuck');
    fleet.setFault({
      command: 'uninstallBiz',
      bizName: 'stuck',
      failure: 'java.lang.IllegalStateException: still busy',
      times: 1,
    });
    await world.admin.delete(podPath('stuck'));
    const pod = await eventually(async () => {
      const found = await findPod(world.admin, 'stuck');
      expect(found?.status?.reason).toBe('FailedKillPod');
      return found;
    });
    expect(pod?.status?.message).toContain('still busy');
    await eventually(async () => {
      const reasons = (await eventsOf(world.admin, 'Pod', 'stuck')).map(({ type, reason }) => `${type} ${reason}`);
      expect(reasons).toEqual(expect.arrayContaining(['Normal Killing', 'Warning FailedKillPod']));
    });
    await eventually(async () => expect(await findPod(world.admin, 'stuck')).toBeUndefined(), 30_000);
    expect(modulesOf('base-1')).toEqual([]);
  });

  it('becomes Ready although the answer to its install is lost', async () => {
    fleet.setFault({ command: 'installBiz', bizName: 'mute', answers: 'never' });
    await world.admin.post(
      '/api/v1/namespaces/default/pods',
      modulePod('mute', [{ name: 'mute' }], { nodeName: 'vnode.base-1' }),
    );
    await readyPod('mute', 40_000);
    expect(installs('mute').map(({ outcome }) => outcome)).toEqual(['executed']);
    await remove('mute');
  });

  it('that stops by itself on a live base is installed again, with restartCount + 1', async () => {
    await world.admin.post(
      '/api/v1/namespaces/default/pods',
      modulePod('crash', [{ name: 'crash' }], { nodeName: 'vnode.base-1' }),
    );
    await readyPod('crash');
    fleet.base('base-1').crashModule('crash', '1.0.0', 'BROKEN');
    fleet.base('base-1').announceModules();
    const pod = await eventually(async () => {
      const found = await findPod(world.admin, 'crash');
      expect(found?.status?.containerStatuses?.[0]?.restartCount).toBe(1);
      expect(isReady(found)).toBe(true);
      return found;
    });
    expect(pod?.status?.containerStatuses?.[0]?.lastState?.terminated).toMatchObject({
      reason: 'ModuleBroken',
      exitCode: 1,
    });
    await remove('crash');
  });

  it('is not disturbed by answers that come twice', async () => {
    fleet.setFault({ bizName: 'twice', answers: 'twice' });
    await world.admin.post(
      '/api/v1/namespaces/default/pods',
      modulePod('twice', [{ name: 'twice' }], { nodeName: 'vnode.base-1' }),
    );
    await readyPod('twice');
    await remove('twice');
    expect(fleet.history.records({ bizName: 'twice' }).map(({ command }) => command)).toEqual([
      'installBiz',
      'uninstallBiz',
    ]);
  });
});

describe('the controller', () => {
  it('reads nothing that its watches bring, and has executed no install twice', async () => {
    expect(fleet.history.installsWhileActiveOrInWork()).toEqual([]);
    const probes = await fetch(`http://127.0.0.1:${await controller.port('probes')}/readyz`);
    expect(await probes.text()).toBe('[+]informers ok\n[+]tunnel ok\nreadyz check passed\n');
  });
});
