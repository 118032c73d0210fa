import { beforeEach, describe, expect, it } from 'vitest';
import type { PodObject } from '../../../../src/kube/objects.ts';
import { ApiError } from '../../../../src/kube/transport/api-error.ts';
import { ANNOTATION } from '../../../../src/labels.ts';
import { hashOf, type RevisionObject } from '../../../../src/platform/rollout/revision.ts';
import { buildPod, podNamesOf } from '../../../../src/platform/rollout/rollout-pod.ts';
import { BASES, ControllerWorld } from './controller-world.ts';

const CONFIRM = 'platform.koupleless.io/confirm-batch';
let world: ControllerWorld;

beforeEach(() => {
  world = new ControllerWorld();
});

/** Three Pods of version 1, all Ready. */
async function settled(spec: Record<string, unknown> = {}): Promise<void> {
  world.apply('1.0.0', { spec });
  await world.rest();
  expect(world.versions).toEqual(['1.0.0', '1.0.0', '1.0.0']);
  world.events.length = 0;
}

describe('a rollout that makes no progress', () => {
  it.each([
    ['the deadline of its spec', 30, { progressDeadlineSeconds: 30 }],
    ['600 s', 600, {}],
  ])('stops after %s, and is looked at then', async (_, seconds, spec) => {
    await settled(spec);
    world.brokenVersion = '2.0.0';
    world.apply('2.0.0', { spec });
    await world.rest();
    world.clock.advance(1_000);
    expect(await world.look()).toEqual({ requeueAfterMs: seconds * 1000 - 1_000 });
    world.clock.advance(seconds * 1000 - 1_001);
    await world.look();
    expect(world.progress).not.toBe('ProgressDeadlineExceeded');
    world.clock.advance(1);
    expect(await world.look()).toBeUndefined();
    expect(world.progress).toBe('ProgressDeadlineExceeded');
    expect(world.events.filter((event) => event.startsWith('Warning'))).toEqual(['Warning ProgressDeadlineExceeded']);
  });
});

describe('a rollout by hand', () => {
  const spec = { strategy: { type: 'OnDelete' }, onFailure: 'Rollback' };

  it('waits for deletes as long as they take, and says so', async () => {
    await settled(spec);
    world.apply('2.0.0', { spec });
    await world.rest();
    expect([await world.look(), world.progress]).toEqual([undefined, 'WaitingForDelete']);
    world.clock.advance(100_000_000);
    await world.look();
    expect(world.progress).toBe('WaitingForDelete');
    world.removePod(world.pods[0]?.metadata.name ?? '');
    await world.rest();
    expect(world.versions).toEqual(['1.0.0', '1.0.0', '2.0.0']);
    expect(world.progress).toBe('WaitingForDelete');
    expect(world.events.filter((event) => event === 'Normal WaitingForDelete')).toHaveLength(2);
    for (const { metadata } of world.pods.slice(0, 2)) world.removePod(metadata.name);
    await world.rest();
    expect(world.versions).toEqual(['2.0.0', '2.0.0', '2.0.0']);
    expect(world.progress).toBe('RolloutComplete');
  });

  it('has a deadline for the Pod that replaces a deleted one', async () => {
    await settled(spec);
    world.brokenVersion = '2.0.0';
    world.apply('2.0.0', { spec });
    await world.rest();
    world.removePod(world.pods[0]?.metadata.name ?? '');
    await world.rest();
    world.clock.advance(600_000);
    await world.look();
    expect(world.progress).toBe('ProgressDeadlineExceeded');
  });
});

describe('an old Pod that has to go first', () => {
  it.each([
    ['that serves', 1, undefined, 2],
    ['that serves', 3, undefined, 6],
    ['that never serves', 1, '1.0.0+x', 2],
    ['that never serves', 3, '1.0.0+x', 4],
  ])('comes back no more: with a successor %s and %i replicas', async (_what, replicas, broken, created) => {
    world.apply('1.0.0', { replicas });
    await world.rest();
    if (broken !== undefined) world.broken.add(broken);
    world.apply('1.0.0', { replicas, env: { variable: 'x' } });
    await world.rest();
    await world.rest();
    expect(world.created).toBe(created);
  });
});

describe('a rollout that fails', () => {
  const refusal = new ApiError('exceeded quota', { status: 403, reason: 'Forbidden' });
  const spec = { progressDeadlineSeconds: 30, onFailure: 'Rollback' };

  async function failed(): Promise<void> {
    await settled(spec);
    world.brokenVersion = '2.0.0';
    world.apply('2.0.0', { spec });
    await world.rest();
    world.clock.advance(30_000);
  }

  it('goes back by itself where its spec says so, once', async () => {
    await failed();
    await world.rest();
    expect(world.deployment.spec.template.metadata.labels.version).toBe('1.0.0');
    expect([world.versions, world.progress]).toEqual([['1.0.0', '1.0.0', '1.0.0'], 'RolloutComplete']);
    const told = ['Warning ProgressDeadlineExceeded', 'Normal RollbackStarted', 'Normal RollbackDone'];
    expect(world.events.filter((event) => told.includes(event))).toEqual(told);
    expect(world.revisions.at(-1)?.revision).toBe(3);
  });

  it('goes back also where the API server refuses the Pods of the new template', async () => {
    await settled(spec);
    world.onPodWrite = () => {
      if (world.deployment.spec.template.metadata.labels.version === '2.0.0') throw refusal;
    };
    world.apply('2.0.0', { spec });
    const look = () => world.look().catch(() => undefined);
    await look();
    world.clock.advance(30_000);
    await look();
    await look();
    expect(world.events).toContain('Normal RollbackStarted');
    expect(world.deployment.spec.template.metadata.labels.version).toBe('1.0.0');
    await world.rest();
    expect([world.versions, world.progress]).toEqual([['1.0.0', '1.0.0', '1.0.0'], 'RolloutComplete']);
  });

  it('goes back also when the process ends before it has asked for that', async () => {
    await failed();
    world.onSpecWrite = () => {
      throw new ApiError('later', { status: 503 });
    };
    await expect(world.look()).rejects.toThrow('later');
    world.onSpecWrite = () => {};
    world.restart();
    await world.rest();
    expect(world.deployment.spec.template.metadata.labels.version).toBe('1.0.0');
  });

  it('stays where it is where no rollout was ever completed', async () => {
    world.brokenVersion = '1.0.0';
    world.apply('1.0.0', { spec });
    await world.rest();
    world.clock.advance(30_000);
    await world.rest();
    expect([world.deployment.spec.rollbackTo, world.progress]).toEqual([undefined, 'ProgressDeadlineExceeded']);
  });
});

describe('a process that starts', () => {
  it('counts Pods as available that have been Ready for minReadySeconds', async () => {
    await settled({ minReadySeconds: 0 });
    world.edit(({ spec }) => {
      spec.minReadySeconds = 15;
    });
    world.clock.advance(20_000);
    world.restart();
    await world.look();
    expect(world.deployment.status).toMatchObject({ readyReplicas: 3, availableReplicas: 3 });
  });

  it('does not believe a clock that is ahead about Pods that it has seen become Ready', async () => {
    world.apply('1.0.0', { spec: { minReadySeconds: 15 } });
    await world.act();
    world.pods.forEach((pod) => {
      world.putPod({ ...pod, spec: { ...pod.spec, nodeName: 'vnode.a' } } as PodObject);
      world.setReady(pod.metadata.name, true);
    });
    world.pods.forEach((pod) => {
      const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: '2020-01-01T00:00:00Z' }];
      world.putPod({ ...pod, status: { ...pod.status, conditions } } as PodObject);
    });
    await world.act();
    expect(world.deployment.status).toMatchObject({ readyReplicas: 3, availableReplicas: 0 });
  });
});

describe('a Pod with minReadySeconds', () => {
  it('is available when it has been Ready for so long', async () => {
    world.apply('1.0.0', { spec: { minReadySeconds: 10 } });
    await world.rest();
    expect(world.deployment.status).toMatchObject({ readyReplicas: 3, availableReplicas: 0 });
    world.clock.advance(4_000);
    expect(await world.look()).toEqual({ requeueAfterMs: 6_000 });
    world.clock.advance(6_000);
    await world.look();
    expect(world.deployment.status).toMatchObject({ readyReplicas: 3, availableReplicas: 3 });
  });

  it('begins again when it was not Ready meanwhile', async () => {
    world.apply('1.0.0', { spec: { minReadySeconds: 10 } });
    await world.rest();
    world.clock.advance(9_000);
    const [pod] = world.pods;
    world.setReady(pod?.metadata.name ?? '', false);
    await world.look();
    world.clock.advance(1_000);
    await world.look();
    expect(world.deployment.status).toMatchObject({ readyReplicas: 3, availableReplicas: 2 });
  });
});

describe('a ModuleDeployment of peers', () => {
  it('has one Pod for each base that there is', async () => {
    world.apply('1.0.0', { replicas: 1, spec: { peer: true } });
    await world.rest();
    expect(world.deployment.spec.replicas).toBe(3);
    expect(world.pods.map(({ spec }) => spec.nodeName).sort()).toEqual(BASES);
    world.nodes.delete('vnode.c');
    const waits = (await world.look())?.requeueAfterMs;
    expect([waits, world.deployment.spec.replicas]).toEqual([1_000, 3]);
    world.clock.advance(1_000);
    await world.rest();
    expect([world.deployment.spec.replicas, world.versions.length]).toEqual([2, 2]);
    expect(world.events.filter((event) => event.endsWith('PeerScaled'))).toHaveLength(2);
  });

  it('is not scaled where nobody asked for that', async () => {
    await settled();
    world.nodes.delete('vnode.c');
    await world.rest();
    expect([world.deployment.spec.replicas, world.events]).toEqual([3, []]);
  });
});

describe('a rollback', () => {
  beforeEach(async () => {
    await settled();
    world.apply('2.0.0');
    await world.rest();
    world.apply('3.0.0');
    await world.rest();
    world.events.length = 0;
    world.messages.length = 0;
  });

  it.each([
    ['to the previous revision', {}, '2.0.0'],
    ['to revision 0, the previous one', { revision: 0 }, '2.0.0'],
    ['to revision 1', { revision: 1 }, '1.0.0'],
  ])('%s brings its template back', async (_, rollbackTo, version) => {
    world.edit(({ spec }) => {
      spec.rollbackTo = rollbackTo;
    });
    await world.rest();
    expect(world.deployment.spec.rollbackTo).toBeUndefined();
    expect(world.deployment.spec.template.metadata.labels.version).toBe(version);
    expect(world.versions).toEqual([version, version, version]);
    expect(world.events).toContain('Normal RollbackDone');
    expect(world.revisions.at(-1)?.revision).toBe(4);
  });

  it('to a revision that is not there changes nothing', async () => {
    world.edit(({ spec }) => {
      spec.rollbackTo = { revision: 7 };
    });
    await world.rest();
    expect(world.deployment.spec.rollbackTo).toBeUndefined();
    expect(world.versions).toEqual(['3.0.0', '3.0.0', '3.0.0']);
    expect(world.events).toEqual(['Warning RollbackRevisionNotFound']);
  });

  /** The API server does not allow patches that name one of these fields. */
  function refuse(status: number, ...fields: string[]): ApiError {
    const refused = new ApiError('not allowed', { status });
    world.onSpecWrite = (patch) => {
      if (fields.some((field) => JSON.stringify(patch).includes(field))) throw refused;
    };
    return refused;
  }

  it.each([
    ['by a policy', 403],
    ['by the schema', 422],
  ])('that is refused %s changes nothing, and lost Pods are replaced', async (_what, status) => {
    refuse(status, '/spec/template');
    world.edit(({ spec }) => {
      spec.rollbackTo = { revision: 1 };
    });
    await world.look();
    expect(world.deployment.spec.rollbackTo).toBeUndefined();
    expect(world.events).toEqual(['Warning RollbackRefused']);
    expect(world.messages).toEqual(['template of revision 1: not allowed']);
    world.removePod(world.pods[0]?.metadata.name ?? '');
    await world.rest();
    expect(world.versions).toEqual(['3.0.0', '3.0.0', '3.0.0']);
    expect(world.events).not.toContain('Normal RollbackDone');
  });

  it('that is refused together with the removal of its field is reported, and tried again', async () => {
    const refused = refuse(403, 'rollbackTo');
    world.edit(({ spec }) => {
      spec.rollbackTo = {};
    });
    await expect(world.look()).rejects.toBe(refused);
    expect(world.events).toEqual(['Warning RollbackRefused', 'Warning ReconcileFailed']);
  });

  it('whose field was removed meanwhile is not reported as refused', async () => {
    const rejected = new ApiError('does not fit', { status: 422 });
    world.edit(({ spec }) => {
      spec.rollbackTo = {};
    });
    world.onSpecWrite = (patch) => {
      if (!Array.isArray(patch)) return;
      world.edit(({ spec }) => {
        delete spec.rollbackTo;
      });
      throw rejected;
    };
    await expect(world.look()).rejects.toMatchObject({ status: 409 });
    expect(world.events).toEqual([]);
  });

  it('that fails in another way is tried again', async () => {
    const unavailable = refuse(503, '/spec/template');
    world.edit(({ spec }) => {
      spec.rollbackTo = {};
    });
    await expect(world.look()).rejects.toBe(unavailable);
    expect(world.deployment.spec.rollbackTo).toEqual({});
    world.onSpecWrite = () => {};
    await world.rest();
    expect(world.deployment.spec.template.metadata.labels.version).toBe('2.0.0');
  });
});

describe('the history', () => {
  it.each([
    ['10 old revisions', {}, 10],
    ['as many as its limit says', { revisionHistoryLimit: 2 }, 2],
    ['none where the limit is 0', { revisionHistoryLimit: 0 }, 0],
  ])('has %s', async (_, spec, count) => {
    for (let version = 1; version <= 13; version++) {
      world.apply(`${version}.0.0`, { spec });
      await world.rest();
    }
    const numbers = world.revisions.map(({ revision }) => revision);
    expect(numbers).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13].slice(-1 - count));
  });
});

describe('the confirmation of a batch', () => {
  const strategy = { type: 'Batch', batch: { count: 3, needConfirm: true } };

  it('is of one rollout: a new template takes it away', async () => {
    await settled({ strategy });
    world.apply('2.0.0', { spec: { strategy } });
    world.edit(({ metadata }) => {
      metadata.annotations = { [CONFIRM]: '3' };
    });
    await world.rest();
    expect(world.deployment.metadata.annotations?.[CONFIRM]).toBeUndefined();
    expect([world.progress, world.versions.filter((version) => version === '2.0.0').length]).toEqual([
      'WaitingConfirm',
      1,
    ]);
  });

  it('lets the next batch begin', async () => {
    await settled({ strategy });
    world.apply('2.0.0', { spec: { strategy } });
    await world.rest();
    world.edit(({ metadata }) => {
      metadata.annotations = { [CONFIRM]: '1' };
    });
    await world.rest();
    expect(world.versions.filter((version) => version === '2.0.0')).toHaveLength(2);
    expect(world.progress).toBe('WaitingConfirm');
  });

  it('that is no number is ignored, and said to be', async () => {
    await settled({ strategy });
    world.apply('2.0.0', { spec: { strategy } });
    await world.rest();
    world.edit(({ metadata }) => {
      metadata.annotations = { [CONFIRM]: 'yes' };
    });
    await world.look();
    expect(world.events.filter((event) => event === 'Warning ConfirmIgnored')).toHaveLength(1);
    expect(world.versions.filter((version) => version === '2.0.0')).toHaveLength(1);
  });

  it('is not needed with an interval, after which the next batch is looked at', async () => {
    const resting = { strategy: { type: 'Batch', batch: { count: 3, intervalSeconds: 20 } } };
    await settled(resting);
    world.apply('2.0.0', { spec: resting });
    await world.rest();
    world.clock.advance(5_000);
    expect(await world.look()).toEqual({ requeueAfterMs: 15_000 });
    world.clock.advance(15_000);
    await world.rest();
    expect(world.versions.filter((version) => version === '2.0.0')).toHaveLength(2);
  });
});

describe('a template that an earlier schema let through', () => {
  // biome-ignore lint/suspicious/noExplicitAny: whatever is stored
  it.each<[string, (spec: any) => void, string]>([
    ['cannot be read', (spec) => Object.assign(spec.template.spec, { tolerations: 'abc' }), 'tolerations'],
    [
      'has Pods that its own selector does not match',
      (spec) => Object.assign(spec.selector.matchLabels, { 'controller-revision-hash': 'mine' }),
      'controller-revision-hash',
    ],
  ])('and that %s makes no Pod, and says why', async (_what, spoil, field) => {
    world.apply('1.0.0');
    world.edit(({ spec }) => spoil(spec));
    await expect(world.look()).rejects.toMatchObject({ code: 'Rollout.TemplateInvalid' });
    expect(world.pods).toEqual([]);
    expect(world.deployment.status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'ReplicaFailure', message: expect.stringContaining(field) }),
    );
  });
});

describe('new Pods', () => {
  it('whose labels a webhook changes are not kept, and not created without end', async () => {
    world.onCreated = (pod) => {
      pod.metadata.labels = { app: 'other' };
    };
    world.apply('1.0.0');
    for (let times = 0; times < 2; times++) {
      await expect(world.look()).rejects.toMatchObject({ code: 'Rollout.PodMismatch' });
      world.live();
      expect(world.pods).toHaveLength(0);
    }
    world.onCreated = () => {};
    await world.rest();
    expect(world.versions).toEqual(['1.0.0', '1.0.0', '1.0.0']);
  });

  const refused = new ApiError('exceeded quota', { status: 403, reason: 'Forbidden' });

  it('are waited for only until the cache shows them, though nothing changes them after that', async () => {
    world.apply('1.0.0', { spec: { replicas: 4 } });
    await world.rest();
    expect(world.pods.filter(({ spec }) => spec.nodeName === undefined)).toHaveLength(1);
    expect([await world.look(), world.progress]).toEqual([undefined, 'WaitingForBase']);
  });

  it.each([
    [1, 1],
    [2, 3],
    [4, 7],
    [128, 128],
    [130, 132],
  ])(
    'are created in groups of 1, 2 and 4, 64 in a reconcile: of a refusal from number %d on come %d calls',
    async (from, calls) => {
      let writes = 0;
      world.onPodWrite = () => {
        writes += 1;
        if (writes >= from) throw refused;
      };
      world.apply('1.0.0', { replicas: 200 });
      while (writes + 64 < from) expect(await world.look()).toEqual({ requeueAfterMs: 0 });
      await expect(world.look()).rejects.toBe(refused);
      expect(writes).toBe(calls);
      expect(world.events).toContain('Warning FailedCreate');
      expect(world.deployment.status?.conditions).toContainEqual(
        expect.objectContaining({ type: 'ReplicaFailure', reason: 'FailedCreate' }),
      );
    },
  );

  it('have names that every version of the controller finds from the same state', () => {
    const shop = { name: 'shop', uid: 'u1' };
    expect(podNamesOf(shop, ['hash'], () => false)).toEqual(['shop-hash-wszsg']);
    expect(podNamesOf(shop, ['hash'], (name) => name === 'shop-hash-wszsg')).toEqual(['shop-hash-fz89f']);
    const [first, other, second] = podNamesOf(shop, ['hash', 'new', 'hash'], () => false);
    expect([first, second]).toEqual(['shop-hash-wszsg', 'shop-hash-fz89f']);
    expect(other).toMatch(/^shop-new-/);
  });

  it('have names that are found with little work, however many they are', () => {
    let asked = 0;
    const isTaken = (): boolean => {
      asked += 1;
      return false;
    };
    const names = podNamesOf({ name: 'shop', uid: 'u1' }, new Array<string>(10_000).fill('hash'), isTaken);
    expect(new Set(names).size).toBe(10_000);
    // Some names of five characters come twice.
    expect(asked).toBeLessThan(10_100);
  });

  it('replace no Pod that the template names', () => {
    const world = new ControllerWorld();
    world.apply('1.0.0', { replicas: 1 });
    const template = {
      metadata: { labels: {}, annotations: { [ANNOTATION.replaces]: 'u9', mine: 'kept' } },
      spec: { containers: [] },
    };
    const pod = buildPod(world.deployment as never, {
      name: 'p',
      hash: 'h',
      template: template as never,
      replaces: undefined,
    });
    expect(pod.metadata.annotations).toEqual({ mine: 'kept' });
  });

  it('carry a hash of their template that is the same in every version of the controller', () => {
    const template = { metadata: { labels: { app: 'shop' } }, spec: { containers: [] } };
    expect(hashOf(template as never)).toBe('z5lksz85xg');
    expect(hashOf({ spec: { containers: [] }, metadata: { labels: { app: 'shop' } } } as never)).toBe('z5lksz85xg');
    expect(hashOf(template as never, 1)).toBe('mnhrdkk5mw');
  });

  it('come at once for one that was lost before the cache had shown it for long', async () => {
    world.apply('1.0.0');
    await world.look();
    const [pod] = world.pods;
    world.removePod(pod?.metadata.name ?? '');
    await world.look();
    expect(world.versions).toHaveLength(3);
  });
});

describe('Pods that have ended', () => {
  const creations = () => world.events.filter((event) => event === 'Normal SuccessfulCreate').length;
  const phases = () => world.pods.map(({ status }) => status?.phase);
  const end = (phase: string) =>
    world.putPod({ ...world.pods[0], status: { phase, conditions: [{ type: 'Ready', status: 'True' }] } } as PodObject);

  it('are replaced at once, then after 10 s, 20 s, up to 5 min, all of them together', async () => {
    world.endingVersion = '1.0.0';
    world.apply('1.0.0');
    await world.rest();
    expect([creations(), phases()]).toEqual([6, ['Failed', 'Failed', 'Failed']]);
    let expected = 6;
    for (const seconds of [10, 20, 40, 80, 160, 300, 300]) {
      world.clock.advance(seconds * 1000 - 1);
      expect(await world.look()).toEqual({ requeueAfterMs: 1 });
      await world.rest();
      expect(creations()).toBe(expected);
      world.clock.advance(1);
      await world.rest();
      expected += 3;
      expect([creations(), phases()]).toEqual([expected, ['Failed', 'Failed', 'Failed']]);
    }
  });

  it('and work again later are replaced at once', async () => {
    await settled();
    for (const waitMs of [0, 600_000, 600_000]) {
      world.clock.advance(waitMs);
      end('Failed');
      await world.rest();
      expect(phases()).toEqual(['Running', 'Running', 'Running']);
    }
    world.clock.advance(9_999);
    end('Failed');
    await world.rest();
    expect(phases().sort()).toEqual(['Failed', 'Running', 'Running']);
  });

  it.each(['Failed', 'Succeeded'])('are not available while they wait, though one is Ready: %s', async (phase) => {
    await settled();
    for (const _ of [1, 2]) {
      end(phase);
      await world.rest();
    }
    expect(world.deployment.status).toMatchObject({ replicas: 3, readyReplicas: 2, availableReplicas: 2 });
  });

  it('do not delay those of a new template, and are gone after it', async () => {
    world.endingVersion = '1.0.0';
    world.apply('1.0.0');
    await world.rest();
    world.apply('2.0.0');
    await world.rest();
    expect([world.versions, world.progress]).toEqual([['2.0.0', '2.0.0', '2.0.0'], 'RolloutComplete']);
  });

  it('of a new version stop its rollout at the deadline', async () => {
    await settled({ progressDeadlineSeconds: 30 });
    world.endingVersion = '2.0.0';
    world.apply('2.0.0', { spec: { progressDeadlineSeconds: 30 } });
    await world.rest();
    for (let second = 0; second < 60; second++) {
      world.clock.advance(1_000);
      await world.look();
    }
    expect(world.progress).toBe('ProgressDeadlineExceeded');
    expect(world.deployment.status).toMatchObject({ availableReplicas: 3 });
    expect(world.pods.length).toBeLessThanOrEqual(4);
  });

  it('are deleted again after a refusal, when the delay is over', async () => {
    await settled();
    const refused = new ApiError('no', { status: 403, reason: 'Forbidden' });
    world.onPodWrite = () => {
      throw refused;
    };
    end('Failed');
    await expect(world.look()).rejects.toBe(refused);
    expect(world.events).toContain('Warning FailedDelete');
    world.onPodWrite = () => {};
    world.clock.advance(10_000);
    await world.rest();
    expect(phases()).toEqual(['Running', 'Running', 'Running']);
  });
});

describe('before its first deletion', () => {
  it('a process asks the API server for all Pods, once', async () => {
    await settled();
    expect(world.podLists).toBe(0);
    world.apply('2.0.0');
    await world.rest();
    expect(world.podLists).toBe(1);
    world.restart();
    await world.rest();
    expect(world.podLists).toBe(1);
    world.apply('3.0.0');
    await world.rest();
    expect(world.podLists).toBe(2);
  });

  it('a Pod that is not there any more is no Pod, whatever the cache shows', async () => {
    await settled();
    world.edit(({ spec }) => {
      spec.replicas = 2;
    });
    let deletions = 0;
    world.onPodWrite = () => {
      deletions += 1;
    };
    await world.rest();
    expect([deletions, world.versions.length]).toEqual([1, 2]);
  });
});

describe('a deletion', () => {
  it('that got no answer is asked for again before anything else, and only once when it is answered', async () => {
    await settled();
    const unavailable = new ApiError('later', { status: 503, reason: 'ServiceUnavailable' });
    let deletions = 0;
    world.onPodWrite = () => {
      deletions += 1;
      if (deletions === 1) throw unavailable;
    };
    world.edit(({ spec }) => {
      spec.replicas = 2;
    });
    await expect(world.look()).rejects.toBe(unavailable);
    expect(world.events).toContain('Warning FailedDelete');
    await world.rest();
    expect([deletions, world.versions.length]).toEqual([2, 2]);
  });

  it('that the API server refuses is decided again', async () => {
    await settled();
    const refused = new ApiError('no', { status: 403, reason: 'Forbidden' });
    world.onPodWrite = () => {
      throw refused;
    };
    world.edit(({ spec }) => {
      spec.replicas = 2;
    });
    await expect(world.look()).rejects.toBe(refused);
    world.onPodWrite = () => {};
    world.edit(({ spec }) => {
      spec.replicas = 3;
    });
    await world.rest();
    expect(world.versions).toHaveLength(3);
  });
});

describe('a Pod of nobody', () => {
  const owners = (name: string) =>
    world.pods.find(({ metadata }) => metadata.name === name)?.metadata.ownerReferences?.map(({ uid }) => uid);

  /** As one of the Pods that there are, without an owner. */
  function orphan(name: string, change: (pod: PodObject) => void = () => {}): void {
    const [like] = world.pods;
    const pod = structuredClone(like) as PodObject;
    const { labels, namespace } = pod.metadata;
    pod.metadata = { name, ...(namespace !== undefined && { namespace }), ...(labels && { labels }) };
    pod.metadata.creationTimestamp = '2026-01-01T00:00:00Z';
    change(pod);
    world.putPod(pod);
  }

  it('whose labels fit is taken over, and counts', async () => {
    await settled();
    const [lost] = world.pods;
    world.removePod(lost?.metadata.name ?? '');
    orphan('stray');
    await world.look();
    expect(owners('stray')).toEqual([world.deployment.metadata.uid]);
    expect(world.events).toContain('Normal Adopted');
    await world.rest();
    expect(world.versions).toHaveLength(3);
    expect(world.events.filter((event) => event === 'Normal Adopted')).toHaveLength(1);
  });

  it.each<[string, (pod: PodObject) => void]>([
    ['is being deleted', ({ metadata }) => Object.assign(metadata, { deletionTimestamp: '2026-01-01T00:00:00Z' })],
    ['has ended', (pod) => Object.assign(pod, { status: { phase: 'Failed' } })],
    ['has other labels', ({ metadata }) => Object.assign(metadata, { labels: { app: 'other' } })],
  ])('that %s is left alone', async (_what, change) => {
    await settled();
    orphan('stray', change);
    await world.look();
    expect(owners('stray') ?? []).toEqual([]);
    expect(world.events).toEqual([]);
  });

  it('one does not become whose labels do not fit any more: another one takes its place, and it goes with its owner', async () => {
    await settled();
    const [own] = world.pods;
    const name = own?.metadata.name ?? '';
    world.putPod({ ...own, metadata: { ...own?.metadata, labels: { app: 'debug' } } } as PodObject);
    await world.rest();
    expect(owners(name)).toHaveLength(1);
    expect(world.versions.filter((version) => version === '1.0.0')).toHaveLength(3);
    expect(world.pods.map(({ metadata }) => metadata.name)).toContain(name);
  });
});

describe('what an object of another namespace says of its owner', () => {
  it('makes no Pod one of a ModuleDeployment: it is neither counted nor released', async () => {
    await settled();
    const [own] = world.pods;
    for (const [name, labels] of [
      ['foreign', own?.metadata.labels],
      ['unlike', { app: 'other' }],
    ] as const)
      world.putPod({
        ...own,
        metadata: { ...own?.metadata, name, uid: name, namespace: 'tenant', labels },
      } as PodObject);
    const foreign = () => world.pods.filter(({ metadata }) => metadata.namespace === 'tenant');
    const before = foreign();
    await world.rest();
    world.restart();
    await world.rest();
    expect(foreign()).toEqual(before);
    expect(world.deployment.status).toMatchObject({ replicas: 3, readyReplicas: 3 });
    expect(world.versions.filter((version) => version === '1.0.0')).toHaveLength(4);
    expect(world.events).toEqual([]);
  });

  it('makes no revision one of a ModuleDeployment', async () => {
    await settled();
    const [own] = world.revisions;
    const metadata = { ...own?.metadata, name: 'foreign', uid: 'foreign', namespace: 'tenant' };
    world.putRevision({ ...own, metadata, revision: 7 } as RevisionObject);
    await world.rest();
    world.apply('2.0.0');
    await world.rest();
    expect(world.deployment.status?.revision).toBe(2);
    expect(world.revisions.map(({ revision }) => revision)).toEqual([1, 2, 7]);
  });
});

it('a template whose hash is new counts no collision', async () => {
  await settled();
  expect(world.deployment.status?.collisionCount).toBeUndefined();
});

it('a revision that somebody deletes is recorded again', async () => {
  await settled();
  const name = world.revisions[0]?.metadata.name ?? '';
  world.removeRevision(name);
  await world.rest();
  expect(world.revisions).toMatchObject([{ metadata: { name }, revision: 1 }]);
});

describe('revisions that a ModuleDeployment finds', () => {
  /** That of the first template, as another ModuleDeployment has left it. */
  async function leftRevision() {
    await settled();
    const [revision] = world.revisions;
    if (revision === undefined) throw new Error('no revision');
    world = new ControllerWorld();
    return revision;
  }

  const ownerOf = (index: number) => world.revisions[index]?.metadata.ownerReferences?.[0]?.uid;

  it('of an earlier one of its name are its own from then on', async () => {
    const left = await leftRevision();
    world.putRevision({ ...left, metadata: { ...left.metadata, ownerReferences: [] }, revision: 7 });
    world.apply('1.0.0');
    await world.rest();
    expect(world.revisions.map(({ revision }) => revision)).toEqual([8]);
    expect(ownerOf(0)).toBe(world.deployment.metadata.uid);
    expect(world.versions).toHaveLength(3);
  });

  it('under another name are left alone', async () => {
    const left = await leftRevision();
    world.putRevision({ ...left, metadata: { ...left.metadata, name: 'other', ownerReferences: [] } });
    world.apply('1.0.0');
    await world.rest();
    expect(world.revisions).toHaveLength(2);
    expect(world.revisions.find(({ metadata }) => metadata.name === 'other')?.metadata.ownerReferences).toEqual([]);
  });

  it('of others under a name that it needs make it take another name', async () => {
    const left = await leftRevision();
    world.putRevision(left);
    world.apply('1.0.0');
    await world.rest();
    expect(world.revisions.map(({ metadata }) => metadata.name === left.metadata.name).sort()).toEqual([false, true]);
    expect(world.deployment.status?.collisionCount).toBe(1);
    expect(world.versions).toHaveLength(3);
  });
});
