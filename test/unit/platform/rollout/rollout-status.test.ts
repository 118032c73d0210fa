import { describe, expect, it } from 'vitest';
import { progressEvents, scalingEvents } from '../../../../src/platform/rollout/rollout-events.ts';
import {
  conditionOf,
  failedStatusOf,
  type StatusInput,
  statusOf,
} from '../../../../src/platform/rollout/rollout-status.ts';

const T0 = new Date('2026-01-01T00:00:00Z');
const T1 = new Date('2026-01-01T00:01:00Z');
const DONE = { replicas: 3, updated: 3, ready: 3, available: 3, updatedReady: 3, updatedAvailable: 3 };
const HALF = { replicas: 4, updated: 1, ready: 3, available: 3, updatedReady: 0, updatedAvailable: 0 };

function input(change: Partial<StatusInput> = {}): StatusInput {
  return {
    generation: 2,
    wanted: 3,
    maxUnavailable: 0,
    counts: HALF,
    update: { hash: 'h2', number: 2 },
    current: 'h1',
    selector: 'app=shop',
    before: undefined,
    collisions: undefined,
    batch: undefined,
    isPaused: false,
    isRecreated: false,
    isWaitingForBase: false,
    isWaitingForDelete: false,
    trouble: undefined,
    waiting: 0,
    deadlineSeconds: 600,
    sinceProgressMs: 0,
    failure: undefined,
    now: T0,
    ...change,
  };
}

const progressing = (change: Partial<StatusInput>) => conditionOf(statusOf(input(change)), 'Progressing');

describe('the status of a ModuleDeployment', () => {
  it('counts Pods, and keeps what was rolled out whole', () => {
    expect(statusOf(input())).toMatchObject({
      observedGeneration: 2,
      replicas: 4,
      updatedReplicas: 1,
      availableReplicas: 3,
      unavailableReplicas: 1,
      currentRevision: 'h1',
      updateRevision: 'h2',
      revision: 2,
    });
    expect(statusOf(input({ counts: DONE }))).toMatchObject({ currentRevision: 'h2', unavailableReplicas: 0 });
  });

  it('says whether enough Pods are available', () => {
    const available = (count: number, maxUnavailable: number) => {
      const counts = { ...HALF, available: count };
      return conditionOf(statusOf(input({ counts, maxUnavailable })), 'Available')?.status;
    };
    expect([available(3, 0), available(2, 0), available(2, 1)]).toEqual(['True', 'False', 'True']);
  });

  it('says how far a rollout is, from its beginning to its end', () => {
    const started = statusOf(input());
    expect(conditionOf(started, 'Progressing')).toMatchObject({ status: 'True', reason: 'NewRevisionCreated' });
    const counts = { ...HALF, ready: 4, available: 4, updatedAvailable: 1 };
    const replaced = statusOf(input({ before: started, counts, now: T1 }));
    expect(conditionOf(replaced, 'Progressing')).toMatchObject({
      reason: 'PodsReplaced',
      lastUpdateTime: '2026-01-01T00:01:00Z',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    });
    expect(progressing({ before: replaced, counts: DONE })).toMatchObject({ reason: 'RolloutComplete' });
  });

  it('is the same while nothing changes', () => {
    const before = statusOf(input());
    expect(statusOf(input({ before, now: T1, sinceProgressMs: 60_000 }))).toEqual(before);
  });

  it('fails after the deadline without progress, and recovers with the first progress', () => {
    const before = statusOf(input());
    expect(progressing({ before, sinceProgressMs: 599_999 })?.status).toBe('True');
    const failed = statusOf(input({ before, sinceProgressMs: 600_000, now: T1 }));
    expect(conditionOf(failed, 'Progressing')).toMatchObject({ status: 'False', reason: 'ProgressDeadlineExceeded' });
    expect(statusOf(input({ before: failed, sinceProgressMs: 0 }))).toEqual(failed);
    const counts = { ...HALF, ready: 4, updatedReady: 1 };
    expect(progressing({ before: failed, counts })).toMatchObject({ status: 'True', reason: 'PodsReplaced' });
    expect(progressing({ before: failed, update: { hash: 'h3', number: 3 } })?.reason).toBe('NewRevisionCreated');
  });

  it.each([
    ['fewer old Pods', { replicas: 3 }],
    ['an old Pod that becomes Ready', { ready: 4, available: 4 }],
    ['one more new Pod that does not serve', { replicas: 5, updated: 2 }],
  ])('is not lifted by %s', (_what, change) => {
    const failed = statusOf(input({ before: statusOf(input()), sinceProgressMs: 600_000 }));
    expect(progressing({ before: failed, counts: { ...HALF, ...change } })?.reason).toBe('ProgressDeadlineExceeded');
  });

  it('counts old Pods that go as progress only where all of them have to go first', () => {
    const before = statusOf(input({ before: statusOf(input()), sinceProgressMs: 60_000 }));
    const counts = { ...HALF, replicas: 3 };
    const later = { before, counts, sinceProgressMs: 9e9 };
    expect(progressing(later)?.reason).toBe('ProgressDeadlineExceeded');
    expect(progressing({ ...later, isRecreated: true })?.reason).toBe('PodsReplaced');
  });

  it('does not count the time in which no base fits the template', () => {
    const waiting = statusOf(input({ before: statusOf(input()), isWaitingForBase: true, sinceProgressMs: 9e9 }));
    expect(conditionOf(waiting, 'Progressing')).toMatchObject({ status: 'Unknown', reason: 'WaitingForBase' });
    expect(progressing({ before: waiting, sinceProgressMs: 9e9 })).toMatchObject({ status: 'True' });
  });

  it('says how many Pods wait for a base without another version', () => {
    expect(progressing({ waiting: 1 })?.message).toMatch(/; 1 Pod waits for a base without another version$/);
    expect(progressing({ waiting: 2 })?.message).toMatch(/; 2 Pods wait for a base/);
  });

  it.each<[string, Partial<StatusInput>, string[]]>([
    ['a rollout under way', {}, ['Ready=False', 'Reconciling=True']],
    ['a whole rollout', { counts: DONE }, ['Ready=True']],
    ['a pause', { isPaused: true }, ['Ready=False', 'Reconciling=True']],
    ['a deadline', { before: statusOf(input()), sinceProgressMs: 9e9 }, ['Ready=False', 'Stalled=True']],
    [
      'a Pod that was lost later',
      { before: statusOf(input({ counts: DONE })), counts: { ...DONE, replicas: 2, updated: 2, available: 2 } },
      ['Ready=False', 'Reconciling=True'],
    ],
    [
      'a Pod that cannot be created',
      { counts: DONE, failure: { reason: 'FailedCreate', message: 'no' } },
      ['Ready=False', 'Reconciling=True'],
    ],
    ['a failed reconcile', { failure: { reason: 'ReconcileFailed', message: 'no' } }, ['Ready=False', 'Stalled=True']],
  ])('shows kubectl wait and kstatus %s', (_what, change, expected) => {
    const shown = statusOf(input(change)).conditions.map(({ type, status }) => `${type}=${status}`);
    expect(shown.filter((text) => /^(Ready|Reconciling|Stalled)=/.test(text))).toEqual(expected);
  });

  it('of a reconcile that failed keeps what was known, until the next one succeeds', () => {
    const before = statusOf(input({ counts: DONE }));
    const failure = { reason: 'ReconcileFailed', message: 'exceeded quota' } as const;
    const counts = { ...HALF, updated: 0, ready: 2, available: 2 };
    const failing = { ...input(), generation: 3, counts, failure, now: T1 };
    const failed = failedStatusOf(before, failing);
    expect(failed).toMatchObject({
      observedGeneration: 3,
      availableReplicas: 2,
      updatedReplicas: 0,
      updateRevision: 'h2',
    });
    const types = failed.conditions.map(({ type, status }) => `${type}=${status}`);
    expect(types.sort()).toEqual([
      'Available=False',
      'Progressing=False',
      'Ready=False',
      'ReplicaFailure=True',
      'Stalled=True',
    ]);
    const next = statusOf(input({ before: failed, counts: DONE })).conditions.map(({ type }) => type);
    expect(next).toEqual(['Available', 'Progressing', 'Ready']);
    const first = failedStatusOf(undefined, { ...failing, counts: { ...counts, replicas: 0 } });
    expect(first).toMatchObject({ replicas: 0, selector: 'app=shop' });
  });

  it('has what one Pod waits for', () => {
    const trouble = 'Pod shop-h2-x on vnode.a: ErrImagePull: no such jar';
    const before = statusOf(input());
    const stuck = statusOf(input({ before, trouble, sinceProgressMs: 9e9 }));
    for (const type of ['Progressing', 'Ready', 'Stalled']) {
      expect(conditionOf(stuck, type)?.message).toMatch(/; Pod shop-h2-x on vnode.a: ErrImagePull: no such jar$/);
    }
    const lost = { replicas: 3, updated: 3, ready: 2, available: 2, updatedReady: 2, updatedAvailable: 2 };
    const lacking = statusOf(input({ before: statusOf(input({ counts: DONE })), counts: lost, trouble }));
    expect(conditionOf(lacking, 'Ready')).toMatchObject({
      reason: 'PodsNotAvailable',
      message: expect.stringContaining(trouble),
    });
  });

  it('waits without a deadline for Pods that somebody deletes', () => {
    const waiting = statusOf(input({ before: statusOf(input()), isWaitingForDelete: true, sinceProgressMs: 9e9 }));
    expect(conditionOf(waiting, 'Progressing')).toMatchObject({ status: 'Unknown', reason: 'WaitingForDelete' });
    expect(conditionOf(waiting, 'Ready')).toMatchObject({ status: 'False', reason: 'WaitingForDelete' });
    expect(progressing({ before: waiting, sinceProgressMs: 9e9 })).toMatchObject({ reason: 'PodsReplaced' });
  });

  it('does not count the time of a pause, nor of a wait for a confirmation', () => {
    const paused = statusOf(input({ before: statusOf(input()), isPaused: true }));
    expect(conditionOf(paused, 'Progressing')).toMatchObject({ status: 'Unknown', reason: 'Paused' });
    expect(progressing({ before: paused, sinceProgressMs: 9e9 })).toMatchObject({ status: 'True' });
    const batch = { current: 1, total: 3, completed: 1, waitingConfirm: true };
    expect(progressing({ before: statusOf(input()), batch, sinceProgressMs: 9e9 })?.reason).toBe('WaitingConfirm');
  });

  it('does not count the time between two batches', () => {
    const resting = { current: 1, total: 3, completed: 1, waitingConfirm: false };
    const before = statusOf(input({ before: statusOf(input()), batch: resting }));
    expect(statusOf(input({ before, batch: resting, sinceProgressMs: 9e9 }))).toEqual(before);
    const next = statusOf(input({ before, batch: { ...resting, current: 2 }, sinceProgressMs: 9e9, now: T1 }));
    expect(conditionOf(next, 'Progressing')).toMatchObject({ status: 'True', lastUpdateTime: '2026-01-01T00:01:00Z' });
  });

  it('stays complete when a Pod is lost later: that is no rollout', () => {
    const before = statusOf(input({ counts: DONE }));
    const counts = { replicas: 2, updated: 2, ready: 2, available: 2, updatedReady: 2, updatedAvailable: 2 };
    expect(progressing({ before, counts, sinceProgressMs: 9e9 })?.reason).toBe('RolloutComplete');
  });

  it('says why Pods could not be created, until they can', () => {
    const failure = { reason: 'FailedCreate', message: 'a Pod: forbidden' } as const;
    const before = statusOf(input({ failure }));
    expect(conditionOf(before, 'ReplicaFailure')).toMatchObject({ status: 'True', ...failure });
    expect(conditionOf(statusOf(input({ before })), 'ReplicaFailure')).toBeUndefined();
  });
});

describe('the events of a ModuleDeployment', () => {
  const deployment = (status: ReturnType<typeof statusOf> | undefined, replicas = 3) =>
    ({ name: 'shop', generation: 3, spec: { replicas }, status }) as never;
  const update = { hash: 'h2', number: 2 };
  const reasons = (before: ReturnType<typeof statusOf> | undefined, now: ReturnType<typeof statusOf>) =>
    progressEvents(deployment(before), update, now).map(([, reason]) => reason);

  it('come once for each change', () => {
    const former = statusOf(input({ update: { hash: 'h1', number: 1 }, counts: DONE }));
    const started = statusOf(input({ before: former }));
    expect(reasons(former, started)).toEqual(['RolloutStarted']);
    expect(reasons(undefined, started)).toEqual([]);
    expect(reasons(started, started)).toEqual([]);
    const complete = statusOf(input({ before: started, counts: DONE }));
    expect(reasons(started, complete)).toEqual(['RolloutComplete']);
    const failed = statusOf(input({ before: started, sinceProgressMs: 9e9 }));
    expect(reasons(started, failed)).toEqual(['ProgressDeadlineExceeded']);
  });

  it('name the command that confirms a batch', () => {
    const started = statusOf(input());
    const batch = { current: 1, total: 3, completed: 1, waitingConfirm: true };
    const waiting = statusOf(input({ before: started, batch }));
    expect(progressEvents(deployment(started), update, waiting)).toEqual([
      ['Normal', 'BatchCompleted', 'batch 1 of 3'],
      ['Normal', 'WaitingConfirm', expect.stringContaining('md shop platform.koupleless.io/confirm-batch=1')],
    ]);
    expect(reasons(waiting, waiting)).toEqual([]);
  });

  it('say that the last batch is complete too', () => {
    const last = { current: 3, total: 3, completed: 2, waitingConfirm: false };
    const before = statusOf(input({ before: statusOf(input()), batch: last }));
    const complete = statusOf(input({ before, counts: DONE, batch: { ...last, completed: 3 } }));
    expect(progressEvents(deployment(before), update, complete)).toEqual([
      ['Normal', 'BatchCompleted', 'batch 3 of 3'],
      ['Normal', 'RolloutComplete', 'revision 2 is rolled out'],
    ]);
    expect(reasons(complete, complete)).toEqual([]);
  });

  it('say how many Pods there were and will be', () => {
    const status = statusOf(input({ counts: DONE }));
    expect(scalingEvents(deployment(status, 5), update)).toEqual([['Normal', 'ScaledUp', 'from 3 to 5 Pods']]);
    expect(scalingEvents(deployment(status, 1), update)).toEqual([['Normal', 'ScaledDown', 'from 3 to 1 Pods']]);
    expect(scalingEvents(deployment({ ...status, observedGeneration: 3 }, 5), update)).toEqual([]);
    expect(scalingEvents(deployment(status, 5), { hash: 'h3' })).toEqual([]);
  });
});

describe('a change of replicas', () => {
  const told = (spec: object, status: object) =>
    scalingEvents({ generation: 1, spec, status: { replicas: 3, updateRevision: 'h', ...status } } as never, {
      hash: 'h',
    });

  it('is told once, until a status has seen it', () => {
    expect(told({ replicas: 5 }, {})).toEqual([['Normal', 'ScaledUp', 'from 3 to 5 Pods']]);
    expect(told({ replicas: 2 }, { observedGeneration: 0 })).toEqual([['Normal', 'ScaledDown', 'from 3 to 2 Pods']]);
    expect(told({ replicas: 2 }, { observedGeneration: 1 })).toEqual([]);
    expect(told({ replicas: 3 }, {})).toEqual([]);
  });

  it('is one to a single Pod where none are named, and none of a rollout that begins', () => {
    expect(told({}, {})).toEqual([['Normal', 'ScaledDown', 'from 3 to 1 Pods']]);
    expect(told({ replicas: 5 }, { updateRevision: 'other' })).toEqual([]);
  });
});
