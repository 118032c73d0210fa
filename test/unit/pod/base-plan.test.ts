import { describe, expect, it } from 'vitest';
import type { ModuleLedger } from '../../../src/module/module-ledger.ts';
import { planBase } from '../../../src/pod/base-plan.ts';
import type { VPod } from '../../../src/pod/vpod.ts';
import { idOf, makeLedger, makeList, makePod, makeResult, makeSpec, runningStatus } from '../../support/builders.ts';

interface Planned {
  readonly pods: readonly VPod[];
  readonly ledger?: ModuleLedger;
  readonly now: number;
}

function planOf({ pods, ledger = makeLedger(), now }: Planned) {
  return planBase({
    pods,
    pendingRemovals: new Map(),
    ledger,
    canSwitch: false,
    sleepUntil: new Map(),
    unadmitted: new Map(),
    unwritten: new Set(),
    ownerOf: (namespace) => namespace,
    now,
  });
}

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
    const { views } = planOf({ pods: [old, young], ledger, now: 0 });
    expect(views.get(old)?.[0]?.view).toMatchObject({ reason: 'BizDeactivated', isExpected: true });
  });
});

describe('a base of which no list was read', () => {
  it('is asked for it while a Pod waits, and looked at again 5 s later', () => {
    expect(planOf({ pods: [makePod()], now: 100 })).toMatchObject({ askList: true, wakeAt: 5_100 });
  });

  it('is left alone where nobody waits', () => {
    expect(planOf({ pods: [], now: 100 })).toMatchObject({ askList: false, wakeAt: undefined });
  });
});

describe('a module that the jar of another one has brought', () => {
  const brought = makeResult('install', 'mine:1', {
    outcome: 'failed',
    code: 'WRONG_MODULE',
    brought: makeList('orders:2'),
  });

  function ledgerWithIt() {
    const ledger = makeLedger();
    ledger.takeList([], {}, 0);
    ledger.takeResult(brought, {}, 1);
    return ledger;
  }

  it('is removed at once, and counts as no unknown module', () => {
    const { commands, unknown, isWanted } = planOf({ pods: [], ledger: ledgerWithIt(), now: 10 });
    expect(commands).toEqual([{ command: 'uninstall', id: idOf('orders:2'), pod: undefined }]);
    expect([unknown, isWanted('orders:2')]).toEqual([[], true]);
  });

  it('is replaced by its own install for a Pod that asks for it, which waits until then', () => {
    const ledger = ledgerWithIt();
    const status = { phase: 'Running', containerStatuses: [runningStatus('orders:2')] };
    for (const pod of [makePod({ modules: ['orders:2'] }), makePod({ modules: ['orders:2'], status })]) {
      const { commands, views } = planOf({ pods: [pod], ledger, now: 10 });
      expect(commands).toMatchObject([{ command: 'uninstall', id: idOf('orders:2'), pod }]);
      const message = expect.stringContaining('the jar of another module has brought this name and version');
      expect(views.get(pod)?.[0]?.view).toMatchObject({ kind: 'Waiting', reason: 'ContainerCreating', message });
    }
    ledger.commandSent('uninstall', idOf('orders:2'), 11);
    ledger.takeResult(makeResult('uninstall', 'orders:2'), {}, 12);
    const pod = makePod({ modules: ['orders:2'] });
    expect(planOf({ pods: [pod], ledger, now: 10 }).commands).toMatchObject([{ command: 'install', pod }]);
    ledger.installSent(makeSpec('orders:2'), 13);
    ledger.takeResult(makeResult('install', 'orders:2'), {}, 14);
    expect(planOf({ pods: [pod], ledger, now: 10 }).commands).toEqual([]);
  });
});
