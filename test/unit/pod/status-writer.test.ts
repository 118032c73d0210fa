import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ControllerError } from '../../../src/errors.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import type { PodObject } from '../../../src/kube/objects.ts';
import { createMetrics } from '../../../src/metrics.ts';
import type { BasePlan } from '../../../src/pod/base-plan.ts';
import { StatusWriter } from '../../../src/pod/status-writer.ts';
import { projectPod, type VPod } from '../../../src/pod/vpod.ts';
import { makePodObject } from '../../support/builders.ts';
import { CoreRig } from '../../support/core-rig.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FakeInformer } from '../../support/fake-informer.ts';
import type { RigBase } from '../../support/rig-base.ts';

const OLD = '2026-01-01T00:00:00Z';
const YOUNG = '2026-01-02T00:00:00Z';
let rig: CoreRig;
let base: RigBase;

/** A base on which the old Pod runs; what is installed from now on is active, as with `-Dactivate.new.module`. */
async function start(modules: readonly string[]): Promise<void> {
  base = await rig.foundBase('b1', { activatesNew: true });
  rig.addPod({ name: 'old', modules, createdAt: OLD });
  await rig.pass(5_000);
  rig.api.take();
}

beforeEach(async () => {
  rig = new CoreRig();
  await rig.start();
});

afterEach(() => rig.stop());

const writes = (): string[] => rig.api.take('patch pod/status');
const addYoung = (modules: readonly string[]): void => rig.addPod({ name: 'young', modules, createdAt: YOUNG });

describe('the Pod of a new version', () => {
  it('becomes ready after the old one is not', async () => {
    await start(['biz1:1']);
    addYoung(['biz1:2']);
    await rig.pass(5_000);
    expect(writes()).toEqual(['patch pod/status ns/old', 'patch pod/status ns/young']);
    expect([rig.podState('old'), rig.podState('young')]).toEqual(['Running False ContainersNotReady', 'Running True']);
  });

  it('becomes ready after the other one is not, also when it is the older Pod', async () => {
    await start(['biz1:1']);
    addYoung(['biz1:2']);
    await rig.pass(5_000);
    writes();
    base.answersCommands = false;
    base.modules.set('biz1:1', 'ACTIVATED').set('biz1:2', 'DEACTIVATED');
    rig.list('b1');
    await rig.pass(1_000);
    expect(writes().slice(0, 2)).toEqual(['patch pod/status ns/young', 'patch pod/status ns/old']);
  });

  it('is not written as ready while the old one cannot be written, and other Pods are', async () => {
    await start(['biz1:1']);
    rig.api.fail('patch pod/status ns/old', 500, 3);
    addYoung(['biz1:2']);
    rig.addPod({ name: 'other', modules: ['biz2:1'], createdAt: YOUNG });
    await rig.pass(90);
    expect([rig.podState('old'), rig.podState('young')]).toEqual(['Running True', 'Pending']);
    await rig.pass(5_000);
    expect(rig.podState('other')).toBe('Running True');
    expect([rig.podState('old'), rig.podState('young')]).toEqual(['Running False ContainersNotReady', 'Running True']);
    const order = writes().filter((request) => !request.includes('other'));
    expect(order.at(-1)).toBe('patch pod/status ns/young');
    expect(order.filter((request) => request === 'patch pod/status ns/young')).toHaveLength(1);
  });

  it('does not keep Pods of other modules waiting while the old one is being written', async () => {
    await start(['biz1:1']);
    base.answersCommands = false;
    addYoung(['biz1:2']);
    rig.addPod({ name: 'other', modules: ['biz2:1'], createdAt: YOUNG });
    await rig.pass(1_000);
    const written = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request === 'patch pod/status ns/old' ? written.promise : undefined);
    for (const [module, state] of [
      ['biz1:1', 'DEACTIVATED'],
      ['biz1:2', 'ACTIVATED'],
      ['biz2:1', 'ACTIVATED'],
    ] as const) {
      base.modules.set(module, state);
    }
    rig.list('b1');
    await rig.pass(500);
    expect([rig.podState('young'), rig.podState('other')]).toEqual(['Pending', 'Running True']);
    written.resolve();
    await rig.pass(5_000);
    expect([rig.podState('old'), rig.podState('young')]).toEqual(['Running False ContainersNotReady', 'Running True']);
  });

  it('leaves a condition of others as they wrote it while it waited for the old one', async () => {
    await start(['biz1:1']);
    base.answersCommands = false;
    const gate = (status: 'True' | 'False') => ({ type: 'example.com/open', status, lastTransitionTime: OLD });
    rig.addPod({ name: 'young', modules: ['biz1:2'], createdAt: YOUNG, status: { conditions: [gate('True')] } });
    await rig.pass(1_000);
    const written = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request === 'patch pod/status ns/old' ? written.promise : undefined);
    base.modules.set('biz1:1', 'DEACTIVATED').set('biz1:2', 'ACTIVATED');
    rig.list('b1');
    await rig.pass(500);
    const young = rig.api.pod('young');
    if (young === undefined) throw new Error('no Pod young');
    const closed: PodObject = { ...young, status: { ...young.status, conditions: [gate('False')] } };
    rig.api.put('pod', closed);
    written.resolve();
    await rig.pass(5_000);
    expect(rig.podState('young')).toBe('Running True');
    const conditions = rig.api.pod('young')?.status?.conditions;
    expect(conditions?.find(({ type }) => type === 'example.com/open')?.status).toBe('False');
  });

  it('does not wait for an old one that is gone, or is another Pod by now', async () => {
    await start(['biz1:1']);
    addYoung(['biz1:2']);
    rig.api.fail('patch pod/status ns/old', 404);
    await rig.pass(5_000);
    expect(rig.podState('young')).toBe('Running True');
  });

  it('waits for a Pod that is not written since part of it is unknown', async () => {
    await start(['biz1:1', 'biz2:1']);
    base.answersLists = false;
    addYoung(['biz1:2']);
    await rig.pass(100);
    base.modules.delete('biz2:1');
    rig.list('b1');
    await rig.pass(100);
    const ready = ['old', 'young'].filter((name) => rig.podState(name) === 'Running True');
    expect(ready).not.toEqual(['old', 'young']);
  });
});

describe('a status that could not be written', () => {
  it('is never written by halves: a container that waits and a Pod that is ready', async () => {
    await start(['biz1:1']);
    base.answersCommands = false;
    rig.api.fail('patch pod/status ns/old', 500, 100);
    base.modules.set('biz1:1', 'STOPPED');
    rig.list('b1');
    await rig.pass(50);
    base.answersLists = false;
    rig.restart('b1');
    rig.api.heal();
    await rig.pass(3_000);
    expect([rig.waiting('old') !== undefined, rig.podState('old')]).not.toEqual([true, 'Running True']);
  });

  it('is written though its Pod is being deleted, and another one before it', async () => {
    await start(['biz1:1']);
    rig.addPod({ name: 'second', modules: ['biz2:1'], createdAt: YOUNG });
    await rig.pass(5_000);
    base.answersCommands = false;
    rig.deletePod('old');
    rig.api.fail('patch pod/status ns/second', 500, 2);
    base.modules.set('biz2:1', 'STOPPED');
    rig.list('b1');
    await rig.pass(10);
    rig.deletePod('second');
    await rig.pass(5_000);
    expect(rig.podState('second')).toBe('Running False ContainersNotReady');
  });

  it('is not tried again for a Pod that is gone, though the watch does not show that yet', async () => {
    await start(['biz1:1']);
    rig.podInformer.isPaused = true;
    rig.api.fail('patch pod/status ns/old', 500);
    rig.api.fail('patch pod/status ns/old', 404, 100);
    base.modules.set('biz1:1', 'STOPPED');
    base.answersCommands = false;
    rig.list('b1');
    await rig.pass(1_000);
    base.answersLists = false;
    writes();
    await rig.pass(900);
    expect(writes()).toEqual([]);
    // That its install is slow is another status, and is not tried again either.
    await rig.pass(10_000);
    expect(writes()).toEqual(['patch pod/status ns/old = 404']);
  });

  it('tells its events once, and counts one restart', async () => {
    await start(['biz1:1']);
    rig.api.fail('patch pod/status ns/old', 500, 3);
    base.modules.set('biz1:1', 'STOPPED');
    rig.list('b1');
    await rig.pass(30_000);
    expect(rig.events.filter((event) => event === 'Warning Failed old')).toHaveLength(1);
    expect(rig.podState('old')).toBe('Running True');
    expect(rig.container('old')).toMatchObject({ restartCount: 1 });
  });
});

describe('a status that could not be written of a Pod that goes meanwhile', () => {
  it('is forgotten with the Pod', async () => {
    const clock = new FakeClock();
    const informer = new FakeInformer(clock, projectPod, { node: (pod: VPod) => pod.nodeName });
    const object = makePodObject();
    informer.deliver({ type: 'PUT', object });
    const pod = informer.list()[0] as VPod;
    let isGone = false;
    const writer = new StatusWriter({
      api: {
        patchPodStatus: async () => {
          writer.forget(pod);
          if (isGone) informer.deliver({ type: 'DELETED', object });
          throw new ControllerError('Kube.ConnectionFailed', 'cut');
        },
      } as unknown as KubeClient,
      informer,
      recorder: { event: () => {} },
      leadership: { isHeld: () => true },
      clock,
      metrics: createMetrics(),
    });
    const views = new Map([[pod, [{ container: 'biz1', view: { kind: 'Running' as const } }]]]);
    const plan = { views, failedKills: new Map(), hasRivals: () => false } as unknown as BasePlan;
    const facts = { identity: 'b1', ip: '10.1.0.1', isRoutable: true, unreachable: undefined };
    const write = (): Promise<{ errors: unknown[] }> => writer.write(pod.nodeName ?? '', plan, facts, []);
    expect((await write()).errors).toHaveLength(1);
    expect(writer.remembered(pod)).not.toBe(pod);
    writer.forget(pod);
    isGone = true;
    expect((await write()).errors).toHaveLength(1);
    expect(writer.remembered(pod)).toBe(pod);
  });
});

describe('a Pod with fields that no base can act on', () => {
  const probe = { httpGet: { path: '/', port: 8080 } };
  const spec = {
    containers: [
      {
        name: 'biz1',
        image: 'http://jars/biz1.jar',
        env: [{ name: 'BIZ_VERSION', value: '1' }],
        livenessProbe: probe,
        readinessProbe: probe,
      },
    ],
  };
  const reported = (): string[] => rig.events.filter((event) => event.includes('FieldsIgnored'));

  it('reports them once, and runs', async () => {
    await start([]);
    rig.addPod({ name: 'probed', modules: [], spec });
    await rig.pass(5_000);
    expect(rig.podState('probed')).toBe('Running True');
    base.modules.clear();
    rig.list('b1');
    await rig.pass(60_000);
    expect(reported()).toEqual(['Warning FieldsIgnored probed']);
  });

  it('reports them although a Pod of another namespace that names the same owner has them too', async () => {
    await start([]);
    const reference = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'shop', uid: 'rs', controller: true };
    for (const [namespace, name] of [
      ['tenant', 'forged'],
      ['ns', 'first'],
      ['ns', 'second'],
    ] as const) {
      const pod = makePodObject({ namespace, name, modules: [], spec });
      rig.api.put('pod', { ...pod, metadata: { ...pod.metadata, ownerReferences: [reference] } });
      await rig.pass(5_000);
    }
    expect(reported()).toEqual(['Warning FieldsIgnored forged', 'Warning FieldsIgnored first']);
  });

  it('reports nothing when there are none', async () => {
    await start(['biz1:1']);
    expect(reported()).toEqual([]);
  });
});
