import pino from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { NodeObject } from '../../../src/kube/objects.ts';
import { COMPONENT, COMPONENT_LABEL, ENV_LABEL } from '../../../src/labels.ts';
import { AddressPolicy } from '../../../src/tunnel/address-policy.ts';
import { providerIdOf } from '../../../src/vnode/node-object.ts';
import { MIB, makeHealth } from '../../support/builders.ts';
import { CoreRig } from '../../support/core-rig.ts';

const NODE = 'vnode.b1';
let rig: CoreRig;

beforeEach(async () => {
  rig = new CoreRig();
  await rig.start();
});

afterEach(() => rig.stop());

describe('a Node that somebody deletes before the watch has shown it', () => {
  it('is made again as soon as a write finds that it is gone', async () => {
    rig.nodeInformer.isPaused = true;
    const base = await rig.foundBase('b1');
    rig.api.drop('node', NODE);
    base.isSilent = true;
    await rig.pass(30_000);
    expect(rig.condition(NODE, 'Ready')).toBe('False BaseUnreachable');
  });
});

describe('the taint of a Node that is not Ready', () => {
  const NOT_READY = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };
  const FOREIGN = { key: 'example.com/new', effect: 'NoSchedule' };
  const taintsOf = () => rig.api.node(NODE)?.spec?.taints?.map(({ key }) => key);

  it('is removed in one more write, and taints of others stay', async () => {
    rig.api.newNodeTaints = [NOT_READY, FOREIGN];
    await rig.foundBase('b1');
    const requests = rig.api.take().filter((request) => request.includes(' node '));
    expect(requests).toEqual([`post node ${NODE}`, `patch node ${NODE}`]);
    expect(taintsOf()).toEqual([
      'schedule.koupleless.io/virtual-node',
      'schedule.koupleless.io/node-env',
      'example.com/new',
    ]);
  });

  it('is left to kube-controller-manager where somebody has changed the Node meanwhile', async () => {
    rig.api.newNodeTaints = [NOT_READY];
    rig.api.delay = (request) => {
      const node = rig.api.node(NODE);
      if (request !== `patch node ${NODE}` || node === undefined) return undefined;
      rig.api.delay = () => undefined;
      rig.api.put('node', { ...node, spec: { taints: [FOREIGN] } } as NodeObject);
      return undefined;
    };
    await rig.foundBase('b1');
    expect(rig.api.take()).toContain(`patch node ${NODE} = 409`);
    // The taints of VNodes come back beside the foreign one.
    await rig.pass(2_000);
    expect(taintsOf()).toContain('example.com/new');
    expect(rig.events.filter((event) => event.includes('Starting'))).toHaveLength(1);
  });

  it('is not waited for by anything else: a failed write is not repeated', async () => {
    rig.api.newNodeTaints = [NOT_READY];
    rig.api.fail(`patch node ${NODE}`, 500);
    await rig.foundBase('b1');
    await rig.pass(5_000);
    expect(taintsOf()).toContain('node.kubernetes.io/not-ready');
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
  });
});

describe('a base that is found', () => {
  it('becomes a ready Node with memory, in one write for the Lease and one for the Node', async () => {
    await rig.foundBase('b1');
    const requests = rig.api.take().filter((request) => !request.includes(' configmap '));
    expect(requests).toEqual([`post lease ${NODE}`, `post node ${NODE}`]);
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
    expect(rig.api.node(NODE)?.status?.capacity).toEqual({ cpu: '64', pods: '65535', memory: '262144Ki' });
    expect(rig.api.node(NODE)?.status?.allocatable).toEqual({ cpu: '64', pods: '65535', memory: '196608Ki' });
    expect(rig.events).toContain(`Normal Starting ${NODE}`);
  });

  it('becomes a Node with memory in one write also when it tells its health half a second later', async () => {
    const base = rig.base('b1', { answersHealth: false });
    rig.heartbeat('b1');
    await rig.pass(500);
    rig.vnodes.onHealth(rig.envelope('b1'), base.health);
    await rig.pass(1_000);
    expect(rig.api.take().filter((request) => request.includes(' node'))).toEqual([`post node ${NODE}`]);
    expect(rig.api.node(NODE)?.status?.capacity?.memory).toBe('262144Ki');
  });

  it('becomes a Node within a second, also when it does not tell its health', async () => {
    await rig.foundBase('b1', { answersHealth: false });
    expect(rig.api.node(NODE)?.status?.capacity).toEqual({ cpu: '64', pods: '65535' });
  });

  it('has its memory written as soon as it tells it', async () => {
    const base = await rig.foundBase('b1', { answersHealth: false });
    base.answersHealth = true;
    rig.vnodes.onHealth(rig.envelope('b1'), base.health);
    await rig.pass(1_000);
    expect(rig.api.node(NODE)?.status?.capacity?.memory).toBe('262144Ki');
  });

  it('has its Lease owned by its Node, at the next renewal', async () => {
    await rig.foundBase('b1');
    await rig.pass(11_000);
    expect(rig.api.lease(NODE)?.metadata.ownerReferences).toEqual([
      { apiVersion: 'v1', kind: 'Node', name: NODE, uid: rig.api.node(NODE)?.metadata.uid },
    ]);
  });

  it.each([500, 503, 429])('gets its Node although the API server answers %i at first', async (status) => {
    rig.api.fail('post node', status, 2);
    await rig.foundBase('b1');
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
  });

  it('takes the Node that its lost answer made', async () => {
    rig.api.loseAnswer('post node');
    rig.nodeInformer.isPaused = true;
    await rig.foundBase('b1');
    rig.nodeInformer.resume();
    await rig.pass(5_000);
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
    expect(rig.api.take('delete')).toEqual([]);
  });

  it('takes a Node with the labels of its ENV that the watch does not show yet', async () => {
    rig.nodeInformer.isPaused = true;
    rig.api.put('node', {
      metadata: { name: NODE, labels: { [COMPONENT_LABEL]: COMPONENT.vnode, [ENV_LABEL]: 'dev' } },
    });
    await rig.foundBase('b1');
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
  });

  it('takes a Node without labels and taints, which the watch never shows, also when others write it meanwhile', async () => {
    rig.nodeInformer.isPaused = true;
    const node = { metadata: { name: NODE }, spec: { providerID: providerIdOf('dev', 'b1') } };
    rig.api.put('node', node);
    let isFirst = true;
    rig.api.delay = (request) => {
      if (isFirst && request.startsWith('patch node ')) {
        isFirst = false;
        rig.api.put('node', { ...node, metadata: { ...node.metadata, annotations: { theirs: 'x' } } } as never);
      }
      return undefined;
    };
    rig.api.take();
    await rig.foundBase('b1');
    await rig.pass(5_000);
    const requests = rig.api.take().filter((request) => /^(get|patch) node /.test(request));
    const [look, patch] = [`get node ${NODE}`, `patch node ${NODE}`];
    expect(requests).toEqual([look, `${patch} = 409`, look, patch]);
    // It has the labels now, so the watch shows it.
    rig.nodeInformer.resume();
    await rig.pass(120_000);
    expect(rig.api.take('patch node')).toEqual([]);
    expect(rig.api.node(NODE)?.metadata).toMatchObject({
      labels: { [COMPONENT_LABEL]: COMPONENT.vnode, [ENV_LABEL]: 'dev' },
      annotations: { theirs: 'x' },
    });
    expect(rig.api.node(NODE)?.spec?.taints).toHaveLength(2);
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
  });

  it.each([
    ['belongs to ENV other', { [COMPONENT_LABEL]: COMPONENT.vnode, [ENV_LABEL]: 'other' }],
    ['belongs to ENV dev', { [COMPONENT_LABEL]: COMPONENT.module, [ENV_LABEL]: 'dev' }],
    ['is not of this controller', {}],
  ])(
    'gets no Node under a name that others have, who are left alone, and it is said that it %s',
    async (owner, labels) => {
      const told: string[] = [];
      await rig.stop();
      rig = new CoreRig({ logger: pino({ base: null }, { write: (line: string) => void told.push(line) }) });
      await rig.start();
      const foreign = { metadata: { name: NODE, labels } };
      rig.nodeInformer.isPaused = true;
      rig.api.put('node', foreign);
      rig.api.take();
      await rig.foundBase('b1');
      await rig.pass(120_000);
      expect(rig.api.take().filter((request) => /^(patch|delete) node/.test(request))).toEqual([]);
      expect((await rig.metrics.nodeNameConflicts.get()).values[0]?.value).toBeGreaterThan(0);
      expect(told.filter((line) => line.includes(`node ${NODE} exists and ${owner}"`))).not.toEqual([]);
    },
  );

  const LOOPBACK = [{ address: '127.0.0.0', prefixLength: 8 }];

  it('with an address that no Service can use works, with a warning, and its Pods get no podIP', async () => {
    rig.tunnel.policy = new AddressPolicy(LOOPBACK);
    const base = rig.base('b1');
    base.info = { ...base.info, ip: '127.0.0.1' };
    rig.heartbeat('b1');
    rig.addPod();
    await rig.pass(5_000);
    expect(rig.events).toContain(`Warning UnroutableAddress ${NODE}`);
    expect((await rig.metrics.unroutableBases.get()).values[0]?.value).toBe(1);
    expect(rig.podState('p1')).toBe('Running True');
    expect(rig.api.pod('p1')?.status?.podIP).toBeUndefined();
    expect(rig.api.pod('p1')?.status?.hostIP).toBe('127.0.0.1');
  });

  const HOSTNAME = { type: 'Hostname', address: NODE };

  it.each(['127.0.0.1', '169.254.169.254', '0.0.0.0', '224.0.0.1', '::1', 'fe80::1'])(
    'over MQTT with the address %s works, with a warning, and neither its Node nor its Pods show it',
    async (ip) => {
      const base = rig.base('b1');
      base.info = { ...base.info, ip, port: 1238 };
      rig.heartbeat('b1');
      rig.addPod();
      await rig.pass(5_000);
      expect(rig.podState('p1')).toBe('Running True');
      expect(rig.events).toContain(`Warning UnroutableAddress ${NODE}`);
      expect(rig.eventTexts.join()).toContain(`the address ${ip}, which is not an address of a base`);
      expect(rig.api.node(NODE)?.status?.addresses).toEqual([HOSTNAME]);
      expect(rig.api.node(NODE)?.metadata.annotations?.['platform.koupleless.io/arklet-port']).toBeUndefined();
      const { podIP, hostIP } = rig.api.pod('p1')?.status ?? {};
      expect([podIP, hostIP]).toEqual([undefined, undefined]);
      rig.api.take();
      await rig.pass(60_000);
      expect(rig.api.take().filter((request) => /^patch (node|pod)/.test(request))).toEqual([]);
    },
  );

  it('over MQTT that changes to an address outside of the networks loses its own in Node and Pods', async () => {
    rig.tunnel.policy = new AddressPolicy([{ address: '198.51.100.0', prefixLength: 24 }]);
    const base = await rig.foundBase('b1');
    rig.addPod();
    await rig.pass(5_000);
    expect(rig.api.pod('p1')?.status).toMatchObject({ podIP: base.info.ip, hostIP: base.info.ip });
    base.info = { ...base.info, ip: '10.0.0.1' };
    await rig.pass(15_000);
    expect(rig.api.node(NODE)?.status?.addresses).toEqual([HOSTNAME]);
    const { podIP, podIPs, hostIP, hostIPs } = rig.api.pod('p1')?.status ?? {};
    expect([podIP, podIPs ?? [], hostIP, hostIPs ?? []]).toEqual([undefined, [], undefined, []]);
    expect(rig.podState('p1')).toBe('Running True');
    expect(rig.events).toContain(`Warning UnroutableAddress ${NODE}`);
    expect(rig.eventTexts.join()).toContain('the address 10.0.0.1, which is in no network of bases');
  });

  it('over MQTT is reported when its networks have become narrower than its address', async () => {
    const base = await rig.foundBase('b1');
    const node = rig.api.node(NODE) as NodeObject;
    await rig.stop();
    rig = new CoreRig();
    rig.tunnel.policy = new AddressPolicy([{ address: '10.0.0.0', prefixLength: 8 }]);
    rig.api.put('node', node);
    await rig.start();
    rig.base('b1', { info: base.info });
    rig.heartbeat('b1');
    await rig.pass(5_000);
    expect(rig.api.node(NODE)?.status?.addresses).toEqual([HOSTNAME]);
    expect(rig.events).toContain(`Warning UnroutableAddress ${NODE}`);
    expect((await rig.metrics.unroutableBases.get()).values[0]?.value).toBe(1);
  });

  it('with such an address is reported by the replica that leads it, once', async () => {
    await rig.stop();
    rig = new CoreRig({ isCluster: true });
    await rig.start();
    const base = rig.base('b1');
    base.info = { ...base.info, ip: '127.0.0.1' };
    rig.heartbeat('b1');
    await rig.pass(60_000);
    const reported = rig.events.filter((event) => event === `Warning UnroutableAddress ${NODE}`);
    expect(reported).toHaveLength(1);
  });
});

describe('the Node of a live base', () => {
  beforeEach(async () => {
    await rig.foundBase('b1');
    await rig.pass(20_000);
    rig.api.take();
  });

  it('is written each five minutes while nothing changes', async () => {
    await rig.pass(1_200_000);
    expect(rig.api.take('patch node')).toHaveLength(4);
  });

  it('is not written for metaspace that jitters by 200 KiB', async () => {
    const base = rig.bases.get('b1');
    for (let times = 0; times < 50; times++) {
      const jitter = (times % 2 === 0 ? 200 : -200) * 1024;
      if (base) base.health = makeHealth({ metaspaceCommittedBytes: 64 * MIB + jitter, runTimeSeconds: 200 + times });
      rig.vnodes.onHealth(rig.envelope('b1'), base?.health ?? makeHealth());
      await rig.pass(5_000);
    }
    const reportEachFiveMinutes = 1;
    expect(rig.api.take('patch node').length).toBeLessThanOrEqual(reportEachFiveMinutes);
  });

  it('shows metaspace that grows, at most once in 10 s', async () => {
    for (let step = 1; step <= 60; step++) {
      const health = makeHealth({ metaspaceCommittedBytes: (64 + 2 * step) * MIB, runTimeSeconds: 200 + step });
      const base = rig.bases.get('b1');
      if (base) base.health = health;
      rig.vnodes.onHealth(rig.envelope('b1'), health);
      await rig.pass(1_000);
    }
    const writes = rig.api.take('patch node').length;
    expect(writes).toBeGreaterThanOrEqual(6);
    expect(writes).toBeLessThanOrEqual(7);
    await rig.pass(10_000);
    expect(rig.api.node(NODE)?.status?.allocatable?.memory).toBe(`${(256 - 184) * 1024}Ki`);
  });

  it('reports metaspace pressure once, in the write that shows the memory', async () => {
    const base = await rig.foundBase('b1');
    await rig.pass(20_000);
    rig.api.take();
    const commit = async (mib: number): Promise<void> => {
      base.health = makeHealth({ metaspaceCommittedBytes: mib * MIB, runTimeSeconds: 900 });
      rig.vnodes.onHealth(rig.envelope('b1'), base.health);
      await rig.pass(11_000);
    };
    const reported = () => rig.events.filter((event) => event === `Warning MetaspacePressure ${NODE}`).length;
    await commit(232);
    expect(rig.condition(NODE, 'MetaspacePressure')).toBe('True MetaspaceNearLimit');
    expect(rig.api.take('patch node')).toHaveLength(1);
    await commit(236);
    expect(reported()).toBe(1);
    await commit(200);
    expect(rig.condition(NODE, 'MetaspacePressure')).toBe('False MetaspaceAvailable');
    await commit(232);
    expect(reported()).toBe(2);
  });

  it('shows that metaspace grew at once, and when it did on many bases, on five more every three seconds', async () => {
    const names = Array.from({ length: 60 }, (_, index) => `many-${index}`);
    for (const name of names) await rig.foundBase(name);
    await rig.pass(300_000);
    rig.api.take();
    const health = makeHealth({ metaspaceCommittedBytes: 128 * MIB, runTimeSeconds: 900 });
    for (const name of names) {
      const base = rig.bases.get(name);
      if (base) base.health = health;
      rig.vnodes.onHealth(rig.envelope(name), health);
    }
    const shown = () =>
      names.filter((name) => rig.api.node(`vnode.${name}`)?.status?.allocatable?.memory === `${128 * 1024}Ki`).length;
    // Some have reported within the last 10 s, and come later; some report just now, and tell it too.
    const about = (count: number) => expect(Math.abs(shown() - count)).toBeLessThan(6);
    await rig.pass(100);
    about(20);
    await rig.pass(6_000);
    about(30);
    await rig.pass(20_000);
    expect(shown()).toBe(60);
  });

  it('shows that metaspace grew when there is no longer much else to write, and the first one at once', async () => {
    rig.traffic.isCalm = false;
    await rig.foundBase('b2');
    await rig.pass(1_000);
    expect(rig.api.node('vnode.b2')?.status?.capacity?.memory).toBe('262144Ki');
    const health = makeHealth({ metaspaceCommittedBytes: 128 * MIB, runTimeSeconds: 900 });
    const base = rig.bases.get('b1');
    if (base) base.health = health;
    const memory = () => rig.api.node(NODE)?.status?.allocatable?.memory;
    await rig.pass(11_000);
    const before = memory();
    rig.vnodes.onHealth(rig.envelope('b1'), health);
    await rig.pass(29_000);
    expect(memory()).toBe(before);
    rig.traffic.isCalm = true;
    await rig.pass(2_000);
    expect(memory()).toBe(`${128 * 1024}Ki`);
  });

  it('is made again within 5 s when an admin deletes it: Pods adopted, nothing reinstalled', async () => {
    rig.addPod();
    await rig.pass(5_000);
    rig.tunnel.take();
    rig.api.take();
    const uid = rig.api.node(NODE)?.metadata.uid;
    rig.api.drop('node', NODE);
    rig.api.drop('lease', NODE);
    await rig.pass(5_000);
    expect(rig.api.node(NODE)?.metadata.uid).not.toBe(uid);
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
    await rig.pass(11_000);
    expect(rig.api.lease(NODE)?.metadata.ownerReferences?.[0]?.uid).toBe(rig.api.node(NODE)?.metadata.uid);
    expect(rig.tunnel.take().filter((line) => /install/.test(line))).toEqual([]);
    expect(rig.api.take('delete pod')).toEqual([]);
    expect(rig.podState('p1')).toBe('Running True');
  });

  it('gets back the conditions that others overwrote', async () => {
    const node = rig.api.node(NODE);
    const conditions = node?.status?.conditions?.map((condition) => ({ ...condition, status: 'Unknown' as const }));
    rig.api.put('node', { ...node, status: { ...node?.status, conditions } } as never);
    await rig.pass(1_000);
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
    expect(rig.events).toContain(`Normal NodeReady ${NODE}`);
    expect(rig.api.take('patch node')).toHaveLength(1);
  });

  it('gets back labels and taints, and keeps those of others', async () => {
    const node = rig.api.node(NODE);
    const foreign = [
      { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' },
      { key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' },
    ];
    rig.api.put('node', {
      ...node,
      metadata: { ...node?.metadata, labels: { mine: 'x' } },
      spec: { ...node?.spec, taints: foreign },
    } as never);
    await rig.pass(1_000);
    expect(rig.api.node(NODE)?.spec?.taints).toHaveLength(4);
    expect(rig.api.node(NODE)?.spec?.taints).toEqual(expect.arrayContaining(foreign));
    expect(rig.api.node(NODE)?.metadata.labels).toMatchObject({ mine: 'x', 'vnode.koupleless.io/name': 'base' });
  });

  it('has the new address when the base moves, and so have its Pods', async () => {
    rig.addPod();
    await rig.pass(5_000);
    const base = rig.bases.get('b1');
    if (base) base.info = { ...base.info, ip: '198.51.100.99' };
    rig.heartbeat('b1');
    await rig.pass(1_000);
    expect(rig.api.node(NODE)?.status?.addresses?.[0]?.address).toBe('198.51.100.99');
    expect(rig.api.pod('p1')?.status).toMatchObject({ podIP: '198.51.100.99', podIPs: [{ ip: '198.51.100.99' }] });
  });

  it.each([404, 422])('is looked at again soon after its write was answered with %i', async (status) => {
    rig.nodeInformer.isPaused = true;
    rig.api.drop('node', NODE);
    const base = rig.bases.get('b1');
    if (base) base.info = { ...base.info, version: '2.0.0' };
    rig.api.fail('patch node', status);
    rig.heartbeat('b1');
    await rig.pass(10_000);
    rig.nodeInformer.resume();
    await rig.pass(10_000);
    expect(rig.api.node(NODE)?.metadata.labels).toMatchObject({ 'vnode.koupleless.io/version': '2.0.0' });
    expect(rig.api.take('patch node').length).toBeLessThan(15);
  });

  it('is not harmed by a base whose clock is an hour off', async () => {
    const past = { ...rig.envelope('b1'), publishedAt: -3_600_000 };
    const base = rig.bases.get('b1');
    if (base) base.isSilent = true;
    for (let times = 0; times < 12; times++) {
      rig.vnodes.onHeartbeat(past, base?.info as never);
      await rig.pass(10_000);
    }
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
  });
});
