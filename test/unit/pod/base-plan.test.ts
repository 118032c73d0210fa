import { describe, expect, it } from 'vitest';
import { planBase } from '../../../src/pod/base-plan.ts';
import { idOf, makeLedger, makePod, runningStatus } from '../../support/builders.ts';

describe('of two versions whose Pods were made in the same second', () => {
  // The UIDs stand against the order of events: only what has run tells who took over.
  it.each(['a', 'z'])('the one that has run was taken over, as is told by a Normal event (UID %s)', (uid) => {
    const status = { phase: 'Running', containerStatuses: [runningStatus('biz1:1')] };
    const old = makePod({ name: 'old', uid, modules: ['biz1:1'], status });
    const young = makePod({ name: 'young', uid: 'm', modules: ['biz1:2'] });
    const ledger = makeLedger();
    const list = [
      { ...idOf('biz1:1'), state: 'DEACTIVATED' as const },
      { ...idOf('biz1:2'), state: 'ACTIVATED' as const },
    ];
    ledger.takeList(list, {}, 0);
    const { views } = planBase({
      pods: [old, young],
      pendingRemovals: new Map(),
      ledger,
      canSwitch: false,
      sleepUntil: new Map(),
      unadmitted: new Map(),
      unwritten: new Set(),
      ownerOf: (namespace) => namespace,
      now: 0,
    });
    expect(views.get(old)?.[0]?.view).toMatchObject({ reason: 'BizDeactivated', isExpected: true });
  });
});

describe('a base of which no list was read', () => {
  const planOf = (pods: ReturnType<typeof makePod>[], now: number) =>
    planBase({
      pods,
      pendingRemovals: new Map(),
      ledger: makeLedger(),
      canSwitch: false,
      sleepUntil: new Map(),
      unadmitted: new Map(),
      unwritten: new Set(),
      ownerOf: (namespace) => namespace,
      now,
    });

  it('is asked for it while a Pod waits, and looked at again 5 s later', () => {
    expect(planOf([makePod()], 100)).toMatchObject({ askList: true, wakeAt: 5_100 });
  });

  it('is left alone where nobody waits', () => {
    expect(planOf([], 100)).toMatchObject({ askList: false, wakeAt: undefined });
  });
});
