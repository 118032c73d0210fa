import { describe, expect, it } from 'vitest';
import type { Reply } from '../../../samples/base-simulator/model.ts';
import type { PodObject } from '../../../src/kube/objects.ts';
import { projectPod } from '../../../src/pod/vpod.ts';
import { LeaseSweep, RENEWAL_MS, TICK_MS } from '../../bench/scale/floor/lease-sweep.ts';
import { installAnswerOf } from '../../bench/scale/floor/messages.ts';
import { statusPatchOf } from '../../bench/scale/floor/objects.ts';
import { eventOf, eventOfListed } from '../../bench/scale/floor/pod-line.ts';
import { type FloorPod, keyOf, PodTable } from '../../bench/scale/floor/pod-table.ts';
import { verdictOf } from '../../bench/scale/floor/verdict.ts';
import { modulePod } from '../../support/manifests.ts';
import { isReady } from '../../support/observe.ts';
import { ArkletRig, ONE } from '../base-simulator/arklet-rig.ts';

const NOW = new Date('2026-01-01T00:00:00.000Z');

/** As the API server writes it: the UID before all that could hold another one. */
function podObject(metadata: Record<string, unknown> = {}, modules = [{ name: 'biz1' }]): PodObject {
  const pod = modulePod('p', modules, { nodeName: 'vnode.base-1' });
  const { name, namespace, labels } = pod.metadata;
  const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'rs', uid: 'uid-of-owner' }];
  const written = { ...pod, metadata: { name, namespace, uid: 'uid-1', ...metadata, labels, ownerReferences } };
  return written as unknown as PodObject;
}

function lineOf(type: string, object: object): Buffer {
  return Buffer.from(JSON.stringify({ type, object: { kind: 'Pod', apiVersion: 'v1', ...object } }));
}

function pod(uid: string, names = ['biz1'], identity = 'base-1'): FloorPod {
  const modules = names.map((name) => ({ name, version: '1.0.0', payload: '' }));
  return { uid, identity, path: `/pods/${uid}`, modules, isDeleting: false };
}

const BIZ1 = keyOf('base-1', { name: 'biz1', version: '1.0.0' });
const BIZ2 = keyOf('base-1', { name: 'biz2', version: '1.0.0' });

describe('a line of the watch', () => {
  it('is a Pod with its own UID, and what its containers ask for', () => {
    const event = eventOf(lineOf('ADDED', podObject({}, [{ name: 'biz1' }, { name: 'biz2' }])));
    expect(event).toMatchObject({ uid: 'uid-1', isDeleting: false });
    const read = event?.read?.();
    expect(read).toMatchObject({ uid: 'uid-1', identity: 'base-1', path: '/api/v1/namespaces/default/pods/p' });
    expect(read?.modules.map(({ payload }) => JSON.parse(payload))).toEqual(
      ['biz1', 'biz2'].map((bizName) => ({
        bizName,
        bizVersion: '1.0.0',
        bizUrl: `https://jars.example.com/${bizName}-1.0.0-ark-biz.jar`,
      })),
    );
  });

  it('is a deletion by its own timestamp only', () => {
    const deleting = podObject({ deletionTimestamp: '2026-01-01T00:00:00Z' });
    const quoted = podObject({ annotations: { last: JSON.stringify({ deletionTimestamp: 'never' }) } });
    expect(eventOf(lineOf('MODIFIED', deleting))?.isDeleting).toBe(true);
    expect(eventOf(lineOf('MODIFIED', quoted))?.isDeleting).toBe(false);
    expect(eventOfListed(deleting).read?.()?.isDeleting).toBe(true);
  });

  it('is the end of a Pod, or of the watch', () => {
    expect(eventOf(lineOf('DELETED', podObject()))).toEqual({ uid: 'uid-1', isDeleting: true, read: undefined });
    expect(eventOf(Buffer.from('{"type":"ERROR","object":{"kind":"Status","code":410}}'))).toBeUndefined();
  });

  it('is none of ours on another Node, or with a container that is no module', () => {
    const elsewhere = podObject();
    elsewhere.spec.nodeName = 'worker-1';
    const mixed = podObject({}, [{ name: 'biz1' }, { name: 'nginx', image: 'nginx' } as { name: string }]);
    expect([elsewhere, mixed].map((object) => eventOf(lineOf('ADDED', object))?.read?.())).toEqual([
      undefined,
      undefined,
    ]);
  });
});

describe('the Pods of the floor', () => {
  it('are complete with the last of their modules, on their own base', () => {
    const table = new PodTable();
    const both = pod('a', ['biz1', 'biz2']);
    const other = pod('b', ['biz1'], 'base-2');
    for (const each of [both, other]) {
      table.add(each);
      table.expect(each);
    }
    expect(table.settle(BIZ1)).toEqual([]);
    expect(table.settle(BIZ1)).toEqual([]);
    expect(table.settle(BIZ2)).toEqual([both]);
    expect(table.settle(BIZ2)).toEqual([]);
  });

  it('are all complete with the one answer that a module of several gets', () => {
    const table = new PodTable();
    for (const uid of ['a', 'b']) table.expect(pod(uid));
    expect(table.settle(BIZ1).map(({ uid }) => uid)).toEqual(['a', 'b']);
  });

  it('wait for nothing more when they are deleted, and are deleted once', () => {
    const table = new PodTable();
    const gone = pod('a');
    table.add(gone);
    table.expect(gone);
    expect([table.startDeleting(gone), table.startDeleting(gone)]).toEqual([true, false]);
    expect(table.settle(BIZ1)).toEqual([]);
  });

  it('come up again when their base speaks, if they are still there', () => {
    const table = new PodTable();
    const pods = ['a', 'b'].map((uid) => pod(uid));
    for (const each of pods) {
      table.add(each);
      table.hold(each);
    }
    table.remove('a');
    expect([...table.release('base-1')]).toEqual([pods[1]]);
    expect([...table.release('base-1')]).toEqual([]);
  });

  it('leave nothing behind', () => {
    const table = new PodTable();
    for (const each of [pod('a', ['biz1', 'biz2']), pod('b'), pod('c')]) {
      table.add(each);
      if (each.uid === 'c') table.hold(each);
      else table.expect(each);
    }
    table.settle(BIZ1);
    table.keepOnly(new Set(['b']));
    expect(table.get('b')).toBeDefined();
    table.remove('b');
    expect(table.size).toBe(0);
  });
});

describe('an answer of a base', () => {
  const read = ({ response }: Reply, command = 'installBiz') =>
    installAnswerOf(Buffer.from(JSON.stringify({ data: { command, ...ONE, response }, publishTimestamp: 1 })));
  const module = { name: ONE.bizName, version: ONE.bizVersion };

  it('says that a module is installed, also where it was before', async () => {
    const rig = new ArkletRig();
    const first = await rig.end(rig.arklet.installBiz(ONE));
    const second = await rig.end(rig.arklet.installBiz(ONE));
    expect(second.outcome).toBe('refused:REPEAT_BIZ');
    expect([read(first), read(second)]).toEqual(Array(2).fill({ ...module, isInstalled: true }));
  });

  it('says nothing while another install of it is in work', async () => {
    const rig = new ArkletRig();
    const first = rig.arklet.installBiz(ONE);
    const second = await rig.arklet.installBiz(ONE);
    expect(second.outcome).toBe('refused:conflict');
    expect(read(second)).toBeUndefined();
    expect(read(await rig.end(first))).toEqual({ ...module, isInstalled: true });
  });

  it('says that an install has failed', async () => {
    const rig = new ArkletRig();
    const failed = await rig.end(rig.arklet.installBiz(ONE, { failure: 'java.lang.OutOfMemoryError: Metaspace' }));
    expect(read(failed)).toEqual({ ...module, isInstalled: false });
  });

  it('says nothing of an install where it is of another command, or cannot be read', async () => {
    const rig = new ArkletRig();
    await rig.end(rig.arklet.installBiz(ONE));
    expect(read(await rig.end(rig.arklet.uninstallBiz(ONE)), 'uninstallBiz')).toBeUndefined();
    expect(['', 'null', '{"data":{"command":"installBiz"}}'].map((text) => installAnswerOf(Buffer.from(text)))).toEqual(
      Array(3).fill(undefined),
    );
  });
});

it('the status of the floor is that of a Pod that runs and is Ready', () => {
  const { metadata, status } = JSON.parse(statusPatchOf(pod('a', ['biz1', 'biz2']), '192.0.2.1', NOW));
  expect(metadata).toEqual({ uid: 'a' });
  const written = { ...podObject(), status };
  expect(isReady(written)).toBe(true);
  expect(projectPod(written).status).toMatchObject({ phase: 'Running', podIP: '192.0.2.1', hostIP: '192.0.2.1' });
  expect(status.containerStatuses.map((entry: { name: string; ready: boolean }) => [entry.name, entry.ready])).toEqual([
    ['biz1', true],
    ['biz2', true],
  ]);
});

describe('the sweep over the leases', () => {
  const names = Array.from({ length: 90 }, (_, index) => `lease-${index}`);
  const sweepOf = (startMs: number): LeaseSweep => {
    const sweep = new LeaseSweep(startMs);
    for (const name of names) sweep.add(name);
    return sweep;
  };

  it('renews each once in a period, in each second about as many', () => {
    const sweep = sweepOf(0);
    const perSecond: string[][] = [];
    for (let second = 0; second < RENEWAL_MS / 1000; second++) {
      const due: string[] = [];
      for (let ms = TICK_MS; ms <= 1000; ms += TICK_MS) due.push(...sweep.due(second * 1000 + ms));
      perSecond.push(due);
    }
    expect(perSecond.flat().sort()).toEqual([...names].sort());
    const counts = perSecond.map((due) => due.length);
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(8);
    expect(Math.max(...counts)).toBeLessThanOrEqual(10);
  });

  it('makes up for a timer that was late, and never renews one twice at a time', () => {
    const sweep = sweepOf(12_345);
    const onTime = sweep.due(12_345 + RENEWAL_MS / 2);
    const late = sweep.due(12_345 + RENEWAL_MS);
    expect([...onTime, ...late].sort()).toEqual([...names].sort());
    expect(sweep.due(12_345 + 5 * RENEWAL_MS).sort()).toEqual([...names].sort());
  });
});

it.each([
  ['POST', 201, 'done'],
  ['POST', 409, 'refused'],
  ['DELETE', 409, 'refused'],
  ['DELETE', 404, 'refused'],
  ['PATCH', 404, 'refused'],
  ['PATCH', 409, 'failed'],
  ['POST', 403, 'failed'],
  ['POST', 429, 'failed'],
  ['DELETE', 0, 'failed'],
] as const)('the floor takes %s %i as %s', (verb, status, verdict) => {
  expect(verdictOf(verb, status)).toBe(verdict);
});
