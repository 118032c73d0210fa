import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { PodObject } from '../../../src/kube/objects.ts';
import { makeBase, makePodObject, makeResult, runningStatus } from '../../support/builders.ts';
import { CoreRig } from '../../support/core-rig.ts';
import { settle } from '../../support/fake-clock.ts';

const KEY = 'biz1:1.0.0';
let rig: CoreRig;

beforeEach(async () => {
  rig = new CoreRig();
  await rig.start();
});

afterEach(() => rig.stop());

describe('what this process has written itself', () => {
  beforeEach(() => rig.foundBase('b1'));

  it('starts no sync: one for the Pod, and one for the end of its install', async () => {
    const before = await rig.podAdds();
    rig.addPod();
    await settle();
    expect(rig.podState('p1')).toBe('Running True');
    await rig.pass(2_500); // then it would be a slow one
    expect((await rig.podAdds()) - before).toBe(2);
  });

  it('starts none where the API server drops the generation of the status, as Kubernetes 1.33 does', async () => {
    rig.api.dropsObservedGeneration = true;
    const before = await rig.podAdds();
    rig.addPod();
    await settle();
    expect(rig.podState('p1')).toBe('Running True');
    expect(rig.api.pod('p1')?.status).not.toHaveProperty('observedGeneration');
    await rig.pass(2_500);
    expect((await rig.podAdds()) - before).toBe(2);
    await rig.pass(200_000);
    expect(rig.api.take('patch pod')).toHaveLength(1);
  });

  it('starts one when somebody else has changed the Pod meanwhile', async () => {
    const written = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request === 'patch pod/status ns/p1' ? written.promise : undefined);
    rig.addPod();
    await settle();
    rig.deletePod('p1');
    written.resolve();
    await settle();
    expect(rig.commands()).toEqual([`install b1 ${KEY}`, `uninstall b1 ${KEY}`]);
    expect(rig.api.pod('p1')).toBeUndefined();
  });

  it('starts one when somebody lets the Pod onto the base while another one is written', async () => {
    const written = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request === 'patch pod/status ns/p2' ? written.promise : undefined);
    for (const [name, module] of Object.entries({ p1: 'biz1:1', p2: 'biz2:1' })) {
      rig.addPod({ name, modules: [module], spec: { tolerations: [] } });
    }
    await settle();
    expect(rig.waiting('p1')).toBe('TaintToleration');
    const stored = rig.api.pod('p1') as PodObject;
    const { tolerations = [] } = makePodObject().spec;
    const tolerant = { ...stored, spec: { ...stored.spec, tolerations } };
    rig.api.put('pod', tolerant);
    written.resolve();
    await rig.pass(1_000);
    expect(rig.podState('p1')).toBe('Running True');
  });

  it('is followed by a status of the generation that somebody has made meanwhile', async () => {
    const written = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request === 'patch pod/status ns/p1' ? written.promise : undefined);
    rig.addPod();
    await settle();
    const stored = rig.api.pod('p1') as PodObject;
    rig.api.put('pod', { ...stored, metadata: { ...stored.metadata, generation: 2 } });
    written.resolve();
    await rig.pass(1_000);
    expect(rig.podState('p1')).toBe('Running True');
    expect(rig.api.pod('p1')?.status).toMatchObject({ observedGeneration: 2 });
  });

  it('is followed by another status where a readiness gate waits for the one that was written', async () => {
    rig.addPod({ spec: { readinessGates: [{ conditionType: 'ContainersReady' }] } });
    await settle();
    expect(rig.api.take('patch pod')).toHaveLength(2);
    expect(rig.podState('p1')).toBe('Running True');
  });

  it('starts one when the write ends the Pod: its other modules go', async () => {
    const base = await rig.foundBase('b2', { answersCommands: false });
    rig.addPod({ node: 'vnode.b2', modules: ['biz1:1', 'biz2:1'], restartPolicy: 'Never' });
    await settle();
    rig.answer('b2', 'install', 'biz1:1');
    await settle();
    rig.commands();
    base.answersCommands = true;
    rig.fail('b2', 'install', 'biz2:1', 'no');
    await settle();
    expect(rig.podState('p1')).toMatch(/^Failed/);
    expect(rig.commands()).toContain('uninstall b2 biz1:1');
  });
});

describe('a vPod that is bound to a base', () => {
  it('gets its module installed once, and runs', async () => {
    await rig.foundBase('b1');
    rig.addPod({ args: ['--x'], env: [{ name: 'COLOR', value: 'blue' }] });
    await rig.pass(5_000);
    expect(rig.tunnel.take('install')).toEqual([`install b1 ${KEY}`]);
    expect(rig.tunnel.specs.get(KEY)).toMatchObject({ args: ['--x'], envs: { COLOR: 'blue' } });
    expect(rig.podState('p1')).toBe('Running True');
    expect(rig.container('p1')).toMatchObject({ ready: true, restartCount: 0 });
    expect(rig.api.pod('p1')?.status).toMatchObject({ podIP: '198.51.100.1', podIPs: [{ ip: '198.51.100.1' }] });
    await rig.pass(120_000);
    expect(rig.tunnel.take('install')).toEqual([]);
  });

  it('is written once for a quick install, and not again while nothing changes', async () => {
    await rig.foundBase('b1');
    rig.api.take();
    rig.addPod();
    await rig.pass(300_000);
    expect(rig.api.take('patch pod')).toEqual(['patch pod/status ns/p1']);
  });

  it('is written again when its base has another address, and once more when the base is lost', async () => {
    const base = await rig.foundBase('b1');
    rig.addPod();
    await rig.pass(60_000);
    rig.api.take();
    base.info = makeBase('b1', { ip: '198.51.100.77' });
    await rig.pass(60_000);
    expect(rig.api.pod('p1')?.status).toMatchObject({ podIP: '198.51.100.77', hostIP: '198.51.100.77' });
    expect(rig.api.take('patch pod')).toEqual(['patch pod/status ns/p1']);
    base.isSilent = true;
    await rig.pass(30_000);
    expect(rig.podState('p1')).toBe('Running False BaseUnreachable');
  });

  it('shows ContainerCreating after 2 s when its install takes longer', async () => {
    await rig.foundBase('b1', { answersCommands: false });
    rig.addPod();
    await rig.pass(1_500);
    expect(rig.container('p1')).toBeUndefined();
    await rig.pass(1_000);
    expect(rig.container('p1')?.state?.waiting?.reason).toBe('ContainerCreating');
    expect(rig.podState('p1')).toBe('Pending False ContainersNotReady');
    expect(rig.events).toContain('Normal Pulling p1');
  });

  it('shows it after 2 s although another Pod of the base was being written then', async () => {
    await rig.foundBase('b1', { answersCommands: false });
    rig.addPod({ name: 'first', modules: ['biz1:1'] });
    await rig.pass(100);
    rig.addPod({ name: 'second', modules: ['biz2:1'] });
    await rig.pass(1_800);
    const written = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request === 'patch pod/status ns/first' ? written.promise : undefined);
    await rig.pass(400);
    written.resolve();
    await rig.pass(200);
    for (const name of ['first', 'second']) {
      expect(rig.container(name)?.state?.waiting?.reason, name).toBe('ContainerCreating');
    }
  });

  it('has the base looked at within 20 s when the answer to its install is lost', async () => {
    const base = await rig.foundBase('b1', { answersCommands: false });
    rig.addPod();
    await rig.pass(3_000);
    base.modules.set(KEY, 'ACTIVATED');
    await rig.pass(17_000);
    expect(rig.podState('p1')).toBe('Running True');
    expect(rig.tunnel.take('install')).toHaveLength(1);
  });

  it('has its install tried again, after a growing wait, when the base does not answer in time', async () => {
    await rig.foundBase('b1', { answersCommands: false, answersLists: false });
    rig.list('b1');
    rig.addPod();
    await rig.pass(305_000);
    expect(rig.container('p1')?.state?.waiting?.reason).toBe('InstallTimeout');
    await rig.pass(10_000);
    expect(rig.tunnel.take('install')).toHaveLength(2);
  });

  it('waits while its neighbour’s install fails, but not for it', async () => {
    await rig.foundBase('b1', { answersCommands: false });
    rig.addPod({ name: 'bad', modules: ['bad:1'] });
    rig.addPod({ name: 'good', modules: ['good:1'] });
    await rig.pass(100);
    const failed = makeResult('install', 'bad:1', { outcome: 'failed', message: 'UnknownHostException' });
    rig.vnodes.onOperationResult(rig.envelope('b1'), failed);
    rig.bases.get('b1')?.modules.set('good:1', 'ACTIVATED');
    rig.vnodes.onOperationResult(rig.envelope('b1'), makeResult('install', 'good:1'));
    await rig.pass(100);
    expect(rig.podState('good')).toBe('Running True');
    expect(rig.container('bad')?.state?.waiting?.reason).toBe('ErrImagePull');
    expect(rig.events).toContain('Warning Failed bad');
  });

  it('has its module installed while the status of another Pod is still being written', async () => {
    await rig.foundBase('b1');
    const written = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request === 'patch pod/status ns/slow' ? written.promise : undefined);
    rig.addPod({ name: 'slow', url: 'nginx' });
    rig.addPod();
    await rig.pass(1_000);
    expect(rig.tunnel.take('install')).toEqual([`install b1 ${KEY}`]);
    written.resolve();
    await rig.pass(5_000);
    expect(rig.podState('p1')).toBe('Running True');
    expect(rig.tunnel.take('install')).toEqual([]);
  });

  it('without a jar stays Pending with one warning, and goes at once when deleted', async () => {
    await rig.foundBase('b1');
    rig.addPod({ url: 'nginx:latest' });
    await rig.pass(60_000);
    expect(rig.api.pod('p1')?.status).toMatchObject({ phase: 'Pending', reason: 'UnsupportedWorkload' });
    expect(rig.events.filter((event) => event === 'Warning UnsupportedWorkload p1')).toHaveLength(1);
    rig.deletePod('p1');
    await rig.pass(0);
    expect(rig.api.pod('p1')).toBeUndefined();
    expect(rig.tunnel.take('uninstall')).toEqual([]);
  });

  it('on a Node of somebody else is left alone', async () => {
    await rig.foundBase('b1');
    rig.api.take();
    rig.addPod({ node: 'worker-1' });
    await rig.pass(60_000);
    expect(rig.api.take('patch pod')).toEqual([]);
    expect(rig.tunnel.take('install')).toEqual([]);
  });
});

describe('nothing is commanded', () => {
  it('before the list of the base was read', async () => {
    const base = await rig.foundBase('b1', { answersLists: false });
    base.modules.set(KEY, 'ACTIVATED');
    rig.addPod();
    const status = { phase: 'Running', containerStatuses: [runningStatus('biz2:1')] };
    rig.addPod({ name: 'old', modules: ['biz2:1'], deleting: true, status });
    await rig.pass(20_000);
    expect(rig.tunnel.take().filter((line) => !/^(list|health)/.test(line))).toEqual([]);
    expect(rig.api.pod('old')).toBeDefined();
    base.answersLists = true;
    await rig.pass(6_000);
    expect(rig.podState('p1')).toBe('Running True');
    expect(rig.api.pod('old')).toBeUndefined();
    expect(rig.tunnel.take('install')).toEqual([]);
  });

  it('while a list is awaited that was lost, but the base is asked again each few seconds', async () => {
    await rig.foundBase('b1', { answersLists: false });
    rig.addPod();
    rig.tunnel.take();
    await rig.pass(20_000);
    expect(rig.tunnel.take('list').length).toBeGreaterThanOrEqual(3);
  });

  it('on a plan that got old while a status was written: the base was restarted meanwhile', async () => {
    const base = await rig.foundBase('b1');
    base.modules.set('old:1', 'ACTIVATED');
    rig.list('b1');
    const written = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request.startsWith('patch pod') ? written.promise : undefined);
    rig.addPod({ name: 'slow', url: 'nginx' });
    const status = { phase: 'Running', containerStatuses: [runningStatus('old:1')] };
    rig.addPod({ name: 'old', modules: ['old:1'], deleting: true, status });
    await settle();
    base.answersLists = false;
    rig.restart('b1');
    rig.tunnel.take();
    written.resolve();
    await rig.pass(3_000);
    expect(rig.tunnel.take('uninstall')).toEqual([]);
  });

  it('to uninstall a module that a new Pod claimed while a status was written', async () => {
    const base = await rig.foundBase('b1');
    rig.addPod({ name: 'old' });
    await rig.pass(3_000);
    const written = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request.startsWith('patch pod') ? written.promise : undefined);
    rig.addPod({ name: 'slow', url: 'nginx' });
    rig.deletePod('old');
    await settle();
    rig.addPod({ name: 'new' });
    written.resolve();
    await rig.pass(3_000);
    expect(base.modules.get(KEY)).toBe('ACTIVATED');
    expect(rig.tunnel.take('uninstall')).toEqual([]);
    expect(rig.podState('new')).toBe('Running True');
    expect(rig.api.pod('old')).toBeUndefined();
  });
});

describe('a controller that was started again', () => {
  it('adopts what runs: nothing is sent, nothing is written', async () => {
    const base = rig.base('b1');
    base.modules.set(KEY, 'ACTIVATED');
    rig.addPod();
    rig.heartbeat('b1');
    await rig.pass(3_000);
    const { status } = rig.api.pod('p1') ?? {};
    const next = new CoreRig();
    next.base('b1').modules.set(KEY, 'ACTIVATED');
    const node = rig.api.node('vnode.b1');
    if (node === undefined || status === undefined) throw new Error('not set up');
    next.api.put('node', node);
    next.api.put('pod', { ...makePodObject({ uid: 'same' }), status } as ReturnType<typeof makePodObject>);
    await next.start();
    next.linkUp();
    next.heartbeat('b1');
    await next.pass(60_000);
    expect(next.tunnel.sent.filter((line) => !/^(list|health)/.test(line))).toEqual([]);
    expect(next.api.take('patch pod')).toEqual([]);
    expect(next.events.filter((event) => event.endsWith('p1'))).toEqual([]);
    await next.stop();
  });

  it('adopts what an earlier version wrote with the secrets of its URL, and hides them with one write', async () => {
    const url = 'https://user:s3cret@repo/biz1.jar?sig=s3cret';
    rig.base('b1').modules.set(KEY, 'ACTIVATED');
    const lastState = { terminated: { exitCode: 1, reason: 'Error', message: `no ${url}` } };
    const old = runningStatus(KEY, { imageID: url, image: url, lastState });
    rig.addPod({ url, status: { phase: 'Running', containerStatuses: [old] } });
    rig.heartbeat('b1');
    await rig.pass(120_000);
    expect(rig.tunnel.take().filter((line) => line.includes(KEY))).toEqual([]);
    expect(rig.container('p1')).toMatchObject({ restartCount: 0, ready: true, image: 'https://***@repo/biz1.jar?***' });
    expect(JSON.stringify(rig.api.pod('p1')?.status)).not.toContain('s3cret');
    expect(rig.api.take('patch pod')).toHaveLength(1);
  });

  it('replaces a module whose image was changed while it was away', async () => {
    const base = rig.base('b1');
    base.modules.set(KEY, 'ACTIVATED');
    const old = runningStatus(KEY, { imageID: 'file:///old.jar', image: 'file:///old.jar' });
    rig.addPod({ status: { phase: 'Running', containerStatuses: [old] } });
    rig.heartbeat('b1');
    await rig.pass(5_000);
    expect(rig.tunnel.take().filter((line) => line.includes(KEY))).toEqual([
      `uninstall b1 ${KEY}`,
      `install b1 ${KEY}`,
    ]);
    expect(rig.container('p1')).toMatchObject({ restartCount: 1, ready: true });
  });
});
