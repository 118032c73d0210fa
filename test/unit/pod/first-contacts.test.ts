import pino from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import type { ConfigMapObject, LeaseObject } from '../../../src/kube/objects.ts';
import { shardOf } from '../../../src/pod/contact-record.ts';
import { recordNameOf } from '../../../src/pod/contact-store.ts';
import { makeHealth } from '../../support/builders.ts';
import { CoreRig, type CoreRigOptions } from '../../support/core-rig.ts';
import { settle } from '../../support/fake-clock.ts';
import type { RigBase } from '../../support/rig-base.ts';

const NODE = 'vnode.b1';
const MAP = `${recordNameOf('dev')}-${shardOf('b1')}`;
/** In the shard of b1. */
const OTHER = 'b4';
const OLD = ['old:1', 'older:2'] as const;
const LATE = 'late:1';

let rig: CoreRig;
let warnings: string[];

afterEach(() => rig.stop());

function newRig(options: CoreRigOptions = {}): CoreRig {
  warnings = [];
  const write = (line: string): void => void warnings.push(JSON.parse(line).msg);
  rig = new CoreRig({ logger: pino({ level: 'warn', base: null }, { write }), ...options });
  return rig;
}

const active = (...keys: string[]) => new Map(keys.map((key) => [key, 'ACTIVATED'] as const));

/** A base that this ENV never met, with two modules of nobody; whatever went wrong has had its time. */
async function met(more: Partial<RigBase> = {}, options: CoreRigOptions = {}): Promise<RigBase> {
  newRig(options);
  await rig.start();
  const base = await rig.foundBase('b1', { modules: active(...OLD), ...more });
  await rig.pass(1_000);
  return base;
}

/** Somebody installs a module past the controller: an ordinary unknown module. What it does is the test's clock. */
async function placeLate(base: RigBase): Promise<void> {
  base.modules.set(LATE, 'ACTIVATED');
  rig.list('b1');
  await rig.pass(30_000);
}

/** The process dies without a word, and the next one finds what is in the API server. */
async function killed(): Promise<void> {
  const { api, bases } = rig;
  await rig.stop();
  newRig();
  for (const [name, data] of Object.entries(api.configMaps())) {
    rig.api.put('configmap', { metadata: { name }, data } as ConfigMapObject);
  }
  for (const [identity, { modules }] of bases) rig.base(identity, { modules: new Map(modules) });
  await rig.start();
  for (const identity of bases.keys()) rig.heartbeat(identity);
  await rig.pass(1_000);
}

const requests = (): string[] => rig.api.take().filter((request) => request.includes(' configmap '));
const verbs = (): string[] => requests().map((request) => request.replace(` configmap ${MAP}`, ''));
const reports = (): string[] => rig.eventTexts.filter((text) => text.includes('first met it'));
const kept = async (): Promise<number | undefined> => (await rig.metrics.preexistingModules.get()).values[0]?.value;

describe('a base that has modules when its ENV first meets it', () => {
  it('keeps them, whatever is taken off it beside them', async () => {
    const base = await met();
    expect(verbs()).toEqual(['get = 404', 'post']);
    expect(rig.api.objects.get(`configmap ${MAP}`)?.metadata).toMatchObject({
      namespace: 'kube-node-lease',
      labels: {
        'virtual-kubelet.koupleless.io/component': 'vnode-contacts',
        'virtual-kubelet.koupleless.io/env': 'dev',
      },
    });
    expect(rig.recordOf('b1')).toEqual(OLD);
    await placeLate(base);
    expect(rig.commands()).toEqual([`uninstall b1 ${LATE}`]);
    await rig.pass(600_000);
    expect([rig.commands(), rig.modulesOf('b1').length, requests()]).toEqual([[], 2, []]);
  });

  it('is reported once, with what to do, and counted apart from unknown modules', async () => {
    await met();
    await rig.pass(200_000);
    expect(rig.events.filter((event) => event === `Warning UnknownModule ${NODE}`)).toHaveLength(1);
    expect(reports()).toEqual([expect.stringMatching(/are kept.*create a Pod.*without an install: old:1, older:2$/)]);
    expect(warnings.filter((text) => text.includes('first contact'))).toHaveLength(1);
    expect(await kept()).toBe(2);
    expect((await rig.metrics.unknownModules.get()).values[0]?.value).toBe(0);
  });

  it('gives one to a Pod without an install; with the Pod it goes, and the others stay', async () => {
    const base = await met();
    requests();
    rig.addPod({ name: 'adopter', modules: ['old:1'] });
    await rig.pass(2_000);
    expect([rig.podState('adopter'), rig.commands()]).toEqual(['Running True', []]);
    expect([rig.recordOf('b1'), verbs()]).toEqual([['older:2'], ['get', 'patch']]);
    rig.deletePod('adopter');
    await rig.pass(2_000);
    expect([rig.commands(), rig.api.pod('adopter')]).toEqual([['uninstall b1 old:1'], undefined]);
    await placeLate(base);
    expect(rig.commands()).toEqual([`uninstall b1 ${LATE}`]);
    expect([rig.modulesOf('b1'), await kept()]).toEqual([['older:2 ACTIVATED'], 1]);
  });

  it('does not record what a Pod asks for before the record is written', async () => {
    newRig();
    await rig.start();
    rig.base('b1', { modules: active(...OLD) });
    rig.heartbeat('b1');
    await rig.pass(500);
    rig.addPod({ name: 'adopter', modules: ['old:1'] });
    await rig.pass(2_000);
    expect([rig.recordOf('b1'), verbs()]).toEqual([['older:2'], ['get = 404', 'post']]);
  });

  it('has them recorded by its first list, not by a plan from before that, whose status write was slow', async () => {
    newRig();
    const written = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request.startsWith('patch pod/status') ? written.promise : undefined);
    // It is shown as wrong without a look at the base.
    rig.addPod({ name: 'odd', env: [{ name: 'A', valueFrom: {} }] });
    await rig.start();
    await rig.foundBase('b1', { modules: active(...OLD), answersLists: false });
    expect(rig.api.take('patch pod/status')).toHaveLength(1);
    rig.list('b1');
    expect(rig.store.get(NODE)?.ledger.isKnown).toBe(true);
    written.resolve();
    await rig.pass(60_000);
    expect([rig.recordOf('b1'), rig.commands()]).toEqual([OLD, []]);
  });

  it('does not record modules of Pods', async () => {
    newRig();
    rig.addPod({ modules: ['old:1'] });
    await rig.start();
    await rig.foundBase('b1', { modules: active(...OLD) });
    await rig.pass(1_000);
    expect(rig.recordOf('b1')).toEqual(['older:2']);
  });

  it('does not count itself where it lists itself', async () => {
    const health = makeHealth({ masterName: 'the-base' });
    await met({ modules: active('the-base:1.0.0', 'the-base-tools:1'), health });
    await rig.pass(200_000);
    expect([rig.recordOf('b1'), await kept()]).toEqual([['the-base-tools:1'], 1]);
  });

  it('keeps a module whose name it has once called its own', async () => {
    const health = makeHealth({ masterName: 'old' });
    const base = await met({ modules: active('old:1'), health, answersHealth: false });
    base.answersHealth = true;
    await rig.pass(100_000);
    base.health = makeHealth({ masterName: 'the-base' });
    await rig.pass(200_000);
    expect([rig.recordOf('b1'), rig.commands()]).toEqual([['old:1'], []]);
  });

  it('has recorded what it had in its first list when it restarts before a plan was made with that', async () => {
    newRig();
    const written = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request.startsWith('patch pod/status') ? written.promise : undefined);
    rig.addPod({ name: 'odd', env: [{ name: 'A', valueFrom: {} }] });
    await rig.start();
    const base = await rig.foundBase('b1', { modules: active(...OLD), answersLists: false });
    rig.list('b1');
    // The agent of the next process lists before its own modules are there.
    await rig.pass(10);
    rig.restart('b1');
    await rig.pass(10);
    rig.list('b1');
    written.resolve();
    await rig.pass(5_000);
    for (const key of OLD) base.modules.set(key, 'ACTIVATED');
    base.answersLists = true;
    await rig.pass(300_000);
    expect([rig.recordOf('b1'), rig.commands()]).toEqual([OLD, []]);
  });

  it('keeps all that it has or gets when it has too many to be recorded', async () => {
    const many = Array.from({ length: 201 }, (_, index) => `m${index}:1`);
    const base = await met({ modules: active(...many) });
    expect(rig.recordOf('b1')).toBe('all');
    const told =
      reports()[0]
        ?.replace(/^.*install: /, '')
        .split(', ') ?? [];
    expect([told.slice(0, -1).every((key) => many.includes(key)), told.at(-1)]).toEqual([
      true,
      `${many.length - (told.length - 1)} more`,
    ]);
    await placeLate(base);
    await rig.pass(200_000);
    expect([rig.commands(), await kept()]).toEqual([[], 202]);
  });

  it('keeps what it has when it restarts with it, and of what comes later nothing', async () => {
    const base = await met();
    rig.restart('b1');
    await rig.pass(2_000);
    base.modules.set('old:1', 'ACTIVATED');
    await placeLate(base);
    expect([rig.commands(), rig.recordOf('b1')]).toEqual([[`uninstall b1 ${LATE}`], OLD]);
  });

  it('costs nothing with the policy keep', async () => {
    await met({}, { unknownModulePolicy: 'keep' });
    await rig.pass(300_000);
    expect([requests(), rig.commands(), await kept()]).toEqual([[], [], 0]);
  });
});

describe('a base that was met before', () => {
  it('is cleaned of what Pods left there, by the next process too, and keeps the rest', async () => {
    const base = await met();
    base.modules.set(LATE, 'ACTIVATED');
    await killed();
    expect(requests().filter((request) => request.startsWith('get'))).toHaveLength(1);
    await rig.pass(30_000);
    expect([rig.commands(), rig.recordOf('b1')]).toEqual([[`uninstall b1 ${LATE}`], OLD]);
    expect(reports()).toHaveLength(1);
  });

  it('is cleaned when it comes back after its Node was deleted', async () => {
    const base = await met();
    base.isSilent = true;
    await rig.pass(80_000);
    expect([rig.store.size, rig.api.node(NODE), rig.recordOf('b1')]).toEqual([0, undefined, OLD]);
    base.isSilent = false;
    base.modules.set(LATE, 'ACTIVATED');
    rig.heartbeat('b1');
    await rig.pass(30_000);
    expect(rig.commands()).toEqual([`uninstall b1 ${LATE}`]);
    expect(rig.modulesOf('b1')).toHaveLength(2);
  });

  it('by another ENV only is met for the first time', async () => {
    newRig();
    const metadata = { name: `${recordNameOf('Dev')}-${shardOf('b1')}` };
    const data = { b1: '{"kept":[]}' };
    rig.api.put('configmap', { metadata, data } as ConfigMapObject);
    await rig.start();
    await rig.foundBase('b1', { modules: active(...OLD) });
    await rig.pass(60_000);
    expect(rig.commands()).toEqual([]);
    expect(rig.api.configMaps()[MAP]).toMatchObject({ b1: expect.stringContaining('old:1') });
  });

  it.each(['{', '7', '{"kept":{}}', `{"kept":["${'x'.repeat(20_000)}"]}`])(
    'keeps all when its entry is %.20s, which is logged once and not written over',
    async (text) => {
      newRig();
      rig.api.put('configmap', { metadata: { name: MAP }, data: { b1: text } } as ConfigMapObject);
      await rig.start();
      const base = await rig.foundBase('b1', { modules: active(...OLD) });
      rig.addPod({ name: 'adopter', modules: ['old:1'] });
      await placeLate(base);
      await rig.pass(300_000);
      expect(rig.commands()).toEqual([]);
      expect(rig.api.configMaps()[MAP]).toEqual({ b1: text });
      expect(warnings.filter((line) => line === 'record of a base cannot be read')).toHaveLength(1);
    },
  );
});

describe('a base that is led by turns', () => {
  const lease = (holder: string): LeaseObject => ({
    metadata: { name: NODE, namespace: 'kube-node-lease', labels: { 'virtual-kubelet.koupleless.io/env': 'dev' } },
    spec: { holderIdentity: holder, leaseTransitions: 1, renewTime: '2026-01-01T00:00:00.000000Z' },
  });

  async function ledByOther(): Promise<void> {
    rig.membership.gone.clear();
    rig.membership.others = [
      { id: 'other', nonce: 'n', address: undefined, tunnels: [rig.tunnel.name], isLeaving: false },
    ];
    rig.api.put('lease', lease('other'));
    await rig.pass(1_100);
    expect(rig.leases.isHeld(NODE)).toBe(false);
  }

  async function ledAgain(): Promise<void> {
    rig.membership.gone.add('other');
    rig.membership.others = [];
    await rig.pass(5_000);
    expect(rig.leases.isHeld(NODE)).toBe(true);
  }

  it('has its record read again at each take-over, by one read, and is reported once', async () => {
    const base = await met({}, { isCluster: true });
    await ledByOther();
    expect(await kept()).toBe(0);
    // Evicted by others, and met again with something else meanwhile: what was read before would remove it.
    const data = { b1: JSON.stringify({ kept: ['old:1', LATE] }) };
    rig.api.put('configmap', { metadata: { name: MAP }, data } as ConfigMapObject);
    base.modules.set(LATE, 'ACTIVATED');
    requests();
    await ledAgain();
    expect(verbs()).toEqual(['get']);
    await rig.pass(30_000);
    expect(rig.commands()).toEqual(['uninstall b1 older:2']);
    expect(reports().map((text) => text.replace(/^.*install: /, ''))).toEqual(['old:1, older:2', LATE]);
    expect(await kept()).toBe(2);
  });

  it.each([
    ['before the record is read again', 'record', 90_000],
    ['before a second list has come again', 'list', 2_000],
  ])('loses nothing by a read of Pods that began in an earlier turn and ends %s', async (_when, awaited, waitMs) => {
    const base = await met({}, { isCluster: true });
    const pods = Promise.withResolvers<void>();
    const record = Promise.withResolvers<void>();
    rig.api.delay = (request) => {
      if (request.startsWith('list pods')) return pods.promise;
      return request.startsWith('get configmap') ? record.promise : undefined;
    };
    if (awaited === 'list') record.resolve();
    await placeLate(base);
    expect(rig.api.take('list pods')).toEqual(['list pods ']);
    await ledByOther();
    await ledAgain();
    await rig.pass(waitMs);
    pods.resolve();
    await rig.pass(1_000);
    expect(rig.commands()).toEqual([]);
    record.resolve();
    await rig.pass(30_000);
    expect(rig.commands()).toEqual([`uninstall b1 ${LATE}`]);
  });
});

describe('while the record cannot be read or written', () => {
  it.each([
    ['the read is forbidden', 'get configmap', 403],
    ['the read fails', 'get configmap', 500],
    ['the write is forbidden', 'post configmap', 403],
    ['the write fails', 'post configmap', 500],
    ['the write is refused', 'post configmap', 422],
  ])(
    '(%s) nothing is removed, which is logged once and tried again ever more seldom',
    async (_why, request, status) => {
      newRig();
      rig.api.fail(request, status, Number.POSITIVE_INFINITY);
      await rig.start();
      const base = await rig.foundBase('b1', { modules: active(...OLD) });
      await placeLate(base);
      await rig.pass(1_800_000);
      expect([rig.commands(), reports()]).toEqual([[], []]);
      const tries = requests().filter((line) => line.startsWith(request));
      expect(tries.length).toBeGreaterThan(8);
      expect(tries.length).toBeLessThan(18);
      expect(warnings.filter((line) => line.startsWith('record of bases cannot'))).toHaveLength(1);
      // What the first list had is what counts, however late it is recorded.
      rig.api.heal();
      await rig.pass(330_000);
      expect([rig.recordOf('b1'), rig.commands()]).toEqual([OLD, [`uninstall b1 ${LATE}`]]);
    },
  );

  it.each(['get', 'post'])('(a single %s fails) it is read and written a second later', async (verb) => {
    newRig();
    rig.api.fail(`${verb} configmap`, 500);
    await rig.start();
    await rig.foundBase('b1', { modules: active(...OLD) });
    expect(verbs().at(-1)).toBe(`${verb} = 500`);
    await rig.pass(1_000);
    expect([verbs(), rig.recordOf('b1')]).toEqual([['get = 404', 'post'], OLD]);
  });

  it.each([
    ['has no version', { metadata: { name: MAP }, data: {} }],
    ['has a list for data', { metadata: { name: MAP, resourceVersion: '1' }, data: [] }],
    ['has a text for data', { metadata: { name: MAP, resourceVersion: '1' }, data: 'b1' }],
    ['is a Status', { kind: 'Status' }],
  ])('(the answer %s) nothing is removed or written', async (_what, answer) => {
    newRig();
    rig.api.getConfigMap = async () => answer as unknown as ConfigMapObject;
    await rig.start();
    const base = await rig.foundBase('b1', { modules: active(...OLD) });
    await placeLate(base);
    expect([rig.commands(), requests()]).toEqual([[], []]);
  });

  it('that is said once, and once that it is over', async () => {
    const told: string[] = [];
    const write = (line: string): void => {
      const { msg } = JSON.parse(line);
      if (/^records? of bases/.test(msg)) told.push(msg);
    };
    rig = new CoreRig({ logger: pino({ base: null }, { write }) });
    rig.api.fail('get configmap', 500, 3);
    await rig.start();
    await rig.foundBase('b1', { modules: active(...OLD) });
    await rig.pass(30_000);
    expect(told).toEqual([
      'record of bases cannot be read or written: their unknown modules are kept',
      'records of bases are read and written again',
    ]);
    await rig.foundBase('b2', { modules: active(...OLD) });
    await rig.pass(30_000);
    expect(told).toHaveLength(2);
  });

  it.each([
    [4, 0],
    [5, 1],
  ])('for %i conflicts in a row logs %i warnings', async (conflicts, count) => {
    newRig();
    rig.api.fail('post configmap', 409, conflicts, 'AlreadyExists');
    await rig.start();
    await rig.foundBase('b1', { modules: active(...OLD) });
    await rig.pass(60_000);
    expect(rig.recordOf('b1')).toEqual(OLD);
    expect(warnings.filter((line) => line.startsWith('record of bases cannot'))).toHaveLength(count);
  });

  it('a base of another shard is not held up', async () => {
    newRig();
    rig.api.fail(`get configmap ${MAP}`, 500, Number.POSITIVE_INFINITY);
    await rig.start();
    for (const identity of ['b1', 'b2']) {
      expect(shardOf('b2')).not.toBe(shardOf('b1'));
      const base = await rig.foundBase(identity);
      await rig.pass(2_000);
      base.modules.set(LATE, 'ACTIVATED');
      rig.list(identity);
    }
    await rig.pass(30_000);
    expect(rig.commands()).toEqual([`uninstall b2 ${LATE}`]);
  });
});

describe('a write of the record', () => {
  it.each(['post', 'patch'])('(%s) whose answer is lost is found done, and not made twice', async (verb) => {
    newRig();
    if (verb === 'patch') rig.api.put('configmap', { metadata: { name: MAP }, data: {} } as ConfigMapObject);
    rig.api.loseAnswer(`${verb} configmap`);
    await rig.start();
    const base = await rig.foundBase('b1', { modules: active(...OLD) });
    await placeLate(base);
    expect(verbs().filter((line) => line.startsWith(verb))).toEqual([`${verb} = lost`]);
    expect([rig.recordOf('b1'), rig.commands()]).toEqual([OLD, [`uninstall b1 ${LATE}`]]);
  });

  it.each([
    ['made', 'post', {}],
    ['changed', 'patch', { metadata: { name: MAP }, data: { old: '{"kept":[]}' } }],
  ])(
    'of a shard that another replica has %s meanwhile looks again, and loses nothing of either',
    async (_what, verb, before) => {
      newRig();
      if ('metadata' in before) rig.api.put('configmap', before);
      let others = 1;
      rig.api.delay = (request) => {
        if (!request.startsWith(`${verb} configmap`) || others-- <= 0) return undefined;
        const data = { ...rig.api.configMaps()[MAP], [OTHER]: '{"kept":["theirs:1"]}' };
        rig.api.put('configmap', { metadata: { name: MAP }, data } as ConfigMapObject);
        return undefined;
      };
      await rig.start();
      const base = await rig.foundBase('b1', { modules: active(...OLD) });
      expect(verbs()).toContain(`${verb} = 409`);
      await placeLate(base);
      expect([rig.recordOf('b1'), rig.recordOf(OTHER), rig.commands()]).toEqual([
        OLD,
        ['theirs:1'],
        [`uninstall b1 ${LATE}`],
      ]);
      expect(warnings.filter((line) => line.startsWith('record of bases'))).toEqual([]);
    },
  );

  it('of a shard that somebody deletes meanwhile makes it again', async () => {
    newRig();
    rig.api.put('configmap', { metadata: { name: MAP }, data: {} } as ConfigMapObject);
    rig.api.delay = (request) => {
      if (request.startsWith('patch configmap')) rig.api.objects.delete(`configmap ${MAP}`);
      return undefined;
    };
    await rig.start();
    const base = await rig.foundBase('b1', { modules: active(...OLD) });
    await placeLate(base);
    expect([rig.recordOf('b1'), rig.commands()]).toEqual([OLD, [`uninstall b1 ${LATE}`]]);
  });

  it('that a kill prevents keeps more, not less', async () => {
    newRig();
    const kill = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request.startsWith('post configmap') ? kill.promise : undefined);
    await rig.start();
    const base = await rig.foundBase('b1', { modules: active(...OLD) });
    base.modules.set(LATE, 'ACTIVATED');
    rig.list('b1');
    await rig.pass(60_000);
    expect([rig.commands(), rig.recordOf('b1')]).toEqual([[], undefined]);
    kill.reject(new Error('killed'));
    await killed();
    await rig.pass(60_000);
    expect([rig.commands(), rig.recordOf('b1')]).toEqual([[], [LATE, ...OLD]]);
  });

  it('is held back when the base is led elsewhere by then', async () => {
    newRig({ isCluster: true });
    rig.membership.others = [];
    rig.api.delay = (request) => {
      if (request.startsWith('post configmap')) rig.membership.valid = false;
      return undefined;
    };
    await rig.start();
    await rig.foundBase('b1', { modules: active(...OLD) });
    await rig.pass(5_000);
    expect([requests(), rig.recordOf('b1')]).toEqual([[`get configmap ${MAP} = 404`], undefined]);
  });

  it('of several bases is held back when one of them is led elsewhere by then', async () => {
    const members = { isCluster: true };
    newRig(members);
    rig.membership.others = [];
    const turn = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request.startsWith('post configmap') ? turn.promise : undefined);
    await rig.start();
    for (const identity of ['b1', OTHER]) rig.base(identity, { modules: active(...OLD) });
    for (const identity of ['b1', OTHER]) rig.heartbeat(identity);
    await rig.pass(2_500);
    expect(shardOf(OTHER)).toBe(shardOf('b1'));
    const { metadata, spec } = rig.api.lease(NODE) as LeaseObject;
    rig.api.put('lease', { metadata, spec: { ...spec, holderIdentity: 'other', leaseTransitions: 9 } } as LeaseObject);
    await rig.pass(0);
    expect([rig.leases.isHeld(NODE), rig.leases.isHeld(`vnode.${OTHER}`)]).toEqual([false, true]);
    turn.resolve();
    await rig.pass(0);
    expect([rig.recordOf('b1'), rig.recordOf(OTHER)]).toEqual([undefined, undefined]);
    await rig.pass(5_000);
    expect([rig.recordOf('b1'), rig.recordOf(OTHER)]).toEqual([undefined, OLD]);
  });

  it('about a claim that a kill prevents is made by the next process, while the Pod is there', async () => {
    await met();
    rig.addPod({ name: 'adopter', modules: ['old:1'] });
    await settle();
    const pod = rig.api.pod('adopter');
    expect(rig.recordOf('b1')).toEqual(OLD);
    await killed();
    if (pod) rig.api.put('pod', pod);
    await rig.pass(3_000);
    expect(rig.recordOf('b1')).toEqual(['older:2']);
  });
});

describe('many bases', () => {
  it('that come at once cost one read and one write of each shard, whether it is there or not', async () => {
    newRig();
    await rig.start();
    for (const wave of ['a', 'b']) {
      const identities = Array.from({ length: 500 }, (_, index) => `${wave}${index}`);
      for (const identity of identities) rig.base(identity, { modules: active(...OLD) });
      for (const identity of identities) rig.heartbeat(identity);
      await rig.pass(5_000);
      const sent = requests().map((request) => request.split(' ')[0]);
      const counts = ['get', 'post', 'patch'].map((verb) => sent.filter((each) => each === verb).length);
      expect(counts).toEqual(wave === 'a' ? [8, 8, 0] : [8, 0, 8]);
      for (const identity of identities) expect(rig.recordOf(identity)).toEqual(OLD);
    }
  });

  it('cost two requests at a time at most', async () => {
    newRig();
    const read = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request.startsWith('get configmap') ? read.promise : undefined);
    await rig.start();
    const identities = Array.from({ length: 50 }, (_, index) => `a${index}`);
    for (const identity of identities) rig.base(identity);
    for (const identity of identities) rig.heartbeat(identity);
    await rig.pass(3_000);
    expect(requests()).toHaveLength(2);
    read.resolve();
    await rig.pass(3_000);
    for (const identity of identities) expect(rig.recordOf(identity)).toEqual([]);
  });

  /** Bases whose entries leave no room in the shard of b1. */
  function fillShard(): string[] {
    const names = Array.from({ length: 300 }, (_, index) => `full${index}`);
    const live = names.filter((name) => shardOf(name) === shardOf('b1')).slice(0, 26);
    const data = Object.fromEntries(live.map((name) => [name, 'x'.repeat(16 * 1024)]));
    rig.api.put('configmap', { metadata: { name: MAP }, data } as ConfigMapObject);
    return live;
  }

  it('in a full shard push out nobody who is heard, with a Node or before it has one', async () => {
    newRig();
    const live = fillShard();
    rig.api.fail('post node', 500, Number.POSITIVE_INFINITY);
    await rig.start();
    for (const name of live) await rig.foundBase(name);
    await rig.foundBase('b1');
    await rig.pass(10_000);
    expect(rig.api.node(NODE)).toBeUndefined();
    expect(Object.keys(rig.api.configMaps()[MAP] ?? {}).sort()).toEqual(live.toSorted());
  });

  it('in a full shard keep what they have, which is logged once; who is gone for good makes room', async () => {
    newRig();
    const live = fillShard();
    await rig.start();
    for (const name of live) await rig.foundBase(name);
    const base = await rig.foundBase('b1', { modules: active(...OLD) });
    requests();
    await placeLate(base);
    await rig.pass(600_000);
    expect([rig.commands(), rig.recordOf('b1')]).toEqual([[], undefined]);
    expect(requests().length).toBeLessThanOrEqual(4);
    expect(warnings.filter((line) => line.startsWith('record of bases'))).toHaveLength(1);
    for (const name of live.slice(0, 2)) Object.assign(rig.bases.get(name) ?? {}, { isSilent: true });
    await rig.pass(400_000);
    expect([rig.recordOf('b1'), rig.commands()]).toEqual([OLD, [`uninstall b1 ${LATE}`]]);
  });
});
