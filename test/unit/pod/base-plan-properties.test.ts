import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ModuleLedger } from '../../../src/module/module-ledger.ts';
import { fingerprintOf, isGone } from '../../../src/module/module-record.ts';
import { type BasePlan, planBase } from '../../../src/pod/base-plan.ts';
import { moduleSpecsOf } from '../../../src/pod/module-spec.ts';
import type { VPod } from '../../../src/pod/vpod.ts';
import { MODULE_STATES, moduleKeyOf } from '../../../src/tunnel/module.ts';
import {
  idOf,
  LEDGER_OPTIONS,
  makeList,
  makePod,
  makeResult,
  makeSpec,
  runningStatus,
} from '../../support/builders.ts';
import { runsOf } from '../../support/property-runs.ts';

const KEYS = ['biz1:1', 'biz1:2', 'biz2:1'];
const key = fc.constantFrom(...KEYS);

const pod = fc
  .record({
    modules: fc.uniqueArray(key, { minLength: 1, selector: (each) => idOf(each).name }),
    args: fc.constantFrom<string[]>([], ['--x']),
    deleting: fc.boolean(),
    phase: fc.constantFrom('Pending', 'Running', 'Failed'),
    createdAt: fc.constantFrom('2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'),
    strategy: fc.constantFrom(undefined, undefined, 'installOnly', 'uninstallThenInstall'),
    ran: fc.boolean(),
  })
  .map(({ phase, strategy, ran, ...options }) => {
    const containerStatuses = ran ? options.modules.map((each) => runningStatus(each)) : [];
    return makePod({ ...options, ...(strategy && { strategy }), status: { phase, containerStatuses } });
  });

/** Things that happen to a ledger, in any order, right or wrong. */
const happening = fc.oneof(
  fc.uniqueArray(key).chain((keys) =>
    fc.constantFrom(...MODULE_STATES).map((state) => (ledger: ModuleLedger, now: number) => {
      ledger.takeList(makeList(...keys.map((each) => `${each} ${state}`)), {}, now);
    }),
  ),
  fc.tuple(key, fc.constantFrom([], ['--x'])).map(([each, args]) => (ledger: ModuleLedger, now: number) => {
    ledger.installSent(makeSpec(each, { args }), now);
  }),
  fc.tuple(fc.constantFrom('uninstall' as const, 'switch' as const), key).map(
    ([command, each]) =>
      (ledger: ModuleLedger, now: number) =>
        ledger.commandSent(command, idOf(each), now),
  ),
  // Of two versions one is active, as a base has it.
  fc.constantFrom(['biz1:1', 'biz1:2'], ['biz1:2', 'biz1:1']).map(([active, other]) => {
    return (ledger: ModuleLedger, now: number) => {
      ledger.takeList(makeList(`${active} ACTIVATED`, `${other} DEACTIVATED`), {}, now);
    };
  }),
  fc
    .tuple(
      key,
      fc.constantFrom('install' as const, 'uninstall' as const, 'switch' as const),
      fc.constantFrom('done' as const, 'already' as const, 'busy' as const, 'failed' as const),
    )
    .map(([each, command, outcome]) => (ledger: ModuleLedger, now: number) => {
      ledger.takeResult(makeResult(command, each, { outcome }), {}, now);
    }),
  fc.constant((ledger: ModuleLedger, now: number) => ledger.listAsked(now)),
  fc.constant((ledger: ModuleLedger) => ledger.linkLost()),
  fc.constant((ledger: ModuleLedger) => ledger.baseRestarted(undefined)),
  fc.constant((ledger: ModuleLedger, now: number) => void ledger.expire(now + 400_000)),
);

const world = fc
  .record({
    pods: fc.array(pod, { maxLength: 4 }),
    happenings: fc.array(happening, { maxLength: 10 }),
    pendingRemovals: fc.uniqueArray(key),
    later: fc.constantFrom(0, 5_000, 20_000, 400_000),
    canSwitch: fc.boolean(),
    sleepMs: fc.constantFrom(0, 0, 10_000),
    unwritten: fc.uniqueArray(fc.constantFrom('biz1', 'biz2')),
  })
  .map(({ pods, happenings, pendingRemovals, later, canSwitch, sleepMs, unwritten }) => {
    const ledger = new ModuleLedger(LEDGER_OPTIONS);
    happenings.forEach((happen, index) => {
      happen(ledger, index * 1000);
    });
    return {
      pods,
      pendingRemovals: new Map(pendingRemovals.map((each) => [each, idOf(each)])),
      ledger,
      canSwitch,
      unwritten: new Set(unwritten),
      unadmitted: new Map(),
      ownerOf: (namespace: string) => namespace,
      sleepUntil: { get: () => happenings.length * 1000 + later + sleepMs },
      now: happenings.length * 1000 + later,
    };
  });

type World = typeof world extends fc.Arbitrary<infer T> ? T : never;

function holds(check: (it: World, plan: BasePlan) => void): void {
  fc.assert(
    fc.property(world, (it) => check(it, planBase(it))),
    { numRuns: runsOf(1_000) },
  );
}

const keyOf = (command: BasePlan['commands'][number]): string =>
  moduleKeyOf(command.command === 'install' ? command.spec : command.id);
const sleepersOf = ({ pods, sleepUntil, now }: World): VPod[] =>
  pods.filter(({ isDeleting, status }) => isDeleting && status.phase !== 'Failed' && now < sleepUntil.get());
const livingOf = (pods: readonly VPod[]): VPod[] =>
  pods.filter(({ isDeleting, status }) => !isDeleting && status.phase !== 'Failed');

describe('whatever happened to a base, its plan', () => {
  it('commands nothing before the list of the base was read', () =>
    holds(({ ledger }, { commands, finished, settledRemovals }) => {
      if (!ledger.isKnown) expect([commands, finished, settledRemovals]).toEqual([[], [], []]);
    }));

  it('commands nothing for a module whose command is under way', () =>
    holds(({ ledger }, { commands }) => {
      for (const command of commands) expect(ledger.get(keyOf(command))?.inFlight).toBeUndefined();
    }));

  it('says at most one thing about a module', () =>
    holds((_, { commands }) => {
      expect(new Set(commands.map(keyOf)).size).toBe(commands.length);
    }));

  it('installs only what a living Pod asks for and what is not on the base', () =>
    holds(({ pods, ledger }, { commands }) => {
      const wanted = livingOf(pods)
        .flatMap(moduleSpecsOf)
        .map((spec) => moduleKeyOf(spec) + fingerprintOf(spec));
      for (const command of commands) {
        if (command.command !== 'install') continue;
        expect(wanted).toContain(keyOf(command) + fingerprintOf(command.spec));
        expect(ledger.get(keyOf(command))?.state).toBeUndefined();
      }
    }));

  it('never uninstalls a running module that a living Pod asks for as it is', () =>
    holds(({ pods, ledger, canSwitch }, { commands }) => {
      const wanted = livingOf(pods)
        .flatMap(moduleSpecsOf)
        .map((spec) => moduleKeyOf(spec) + fingerprintOf(spec));
      for (const command of commands) {
        const record = ledger.get(keyOf(command));
        const isBesideActive = record?.state === 'DEACTIVATED' && record.failure?.reason !== 'BizDeactivated';
        // Without a switch, a version that takes over is installed anew while the other one serves (decision 60).
        const isWell = record?.state === 'ACTIVATED' || (isBesideActive && canSwitch);
        const { name, version } = idOf(keyOf(command));
        const isReplaced = livingOf(pods).some(
          (each) =>
            each.installStrategy === 'uninstallThenInstall' &&
            moduleSpecsOf(each).some((spec) => spec.name === name && spec.version !== version),
        );
        if (command.command === 'uninstall' && isWell && !isReplaced) {
          expect(wanted).not.toContain(keyOf(command) + record?.fingerprint);
        }
      }
    }));

  it('uninstalls only what Pods of this base had or have, never what others put there', () =>
    holds(({ pods, pendingRemovals }, { commands }) => {
      const named = new Set([...pendingRemovals.keys(), ...pods.flatMap(moduleSpecsOf).map(moduleKeyOf)]);
      for (const command of commands) expect(named).toContain(keyOf(command));
    }));

  it('switches to one version of a name at most, which is there and not the active one, and only where it can', () =>
    holds(({ pods, ledger, canSwitch }, { commands }) => {
      const switches = commands.filter(({ command }) => command === 'switch').map(keyOf);
      if (!canSwitch) expect(switches).toEqual([]);
      expect(new Set(switches.map((each) => idOf(each).name)).size).toBe(switches.length);
      const wanted = livingOf(pods).flatMap(moduleSpecsOf).map(moduleKeyOf);
      for (const each of switches) {
        expect(wanted).toContain(each);
        expect(ledger.get(each)?.state).toBe('DEACTIVATED');
      }
    }));

  it('takes nothing off that a Pod in its sleep has, also not by an install', () =>
    holds((it, { commands }) => {
      const held = sleepersOf(it).flatMap(moduleSpecsOf);
      for (const command of commands) {
        if (command.command === 'uninstall') expect(held.map(moduleKeyOf)).not.toContain(keyOf(command));
        if (command.command !== 'install' || command.spec.strategy !== 'uninstallThenInstall') continue;
        const { name, version } = command.spec;
        expect(held.filter((spec) => spec.name === name && spec.version !== version)).toEqual([]);
      }
    }));

  it('has no install take off the version of a younger Pod', () =>
    holds(({ pods }, { commands }) => {
      for (const command of commands) {
        if (command.command !== 'install' || command.spec.strategy !== 'uninstallThenInstall') continue;
        const { name, version } = command.spec;
        const wants = (each: VPod, isIt: boolean): boolean =>
          moduleSpecsOf(each).some((spec) => spec.name === name && (spec.version === version) === isIt);
        const own = livingOf(pods).filter((each) => wants(each, true));
        const youngest =
          own
            .map(({ createdAt }) => createdAt)
            .sort()
            .at(-1) ?? '';
        const younger = livingOf(pods).filter((each) => wants(each, false) && each.createdAt > youngest);
        expect(younger).toEqual([]);
      }
    }));

  it('tells as unknown only what nobody asks for, also no Pod that sleeps or goes', () =>
    holds(({ pods, pendingRemovals, ledger }, { unknown }) => {
      const named = new Set([...pendingRemovals.keys(), ...pods.flatMap(moduleSpecsOf).map(moduleKeyOf)]);
      expect(unknown === undefined).toBe(!ledger.isKnown);
      for (const id of unknown ?? []) {
        expect(named).not.toContain(moduleKeyOf(id));
        expect(ledger.get(moduleKeyOf(id))?.state).toBeDefined();
      }
    }));

  it('lets a Pod go only when it is deleted and its modules are gone or belong to a living one', () =>
    holds(({ pods, ledger }, { finished }) => {
      const kept = new Set(livingOf(pods).flatMap(moduleSpecsOf).map(moduleKeyOf));
      for (const each of finished) {
        expect(each.isDeleting).toBe(true);
        for (const spec of moduleSpecsOf(each)) {
          const isLeft = !isGone(ledger.get(moduleKeyOf(spec))) && !kept.has(moduleKeyOf(spec));
          expect(isLeft).toBe(false);
        }
      }
    }));

  it('shows something for each container of each living Pod, oldest first', () =>
    holds(({ pods }, { views }) => {
      expect(new Set(views.keys())).toEqual(new Set(livingOf(pods)));
      for (const [each, shown] of views) expect(shown).toHaveLength(each.containers.length);
      const times = [...views.keys()].map(({ createdAt }) => createdAt);
      expect(times).toEqual([...times].sort());
    }));

  it('is the same again, and in whatever order the Pods come', () =>
    holds((it, plan) => {
      const again = planBase({ ...it, pods: [...it.pods].reverse() });
      expect(again.commands).toEqual(plan.commands);
      expect([...again.views]).toEqual([...plan.views]);
      expect(again.finished).toEqual(plan.finished);
    }));

  it('is made again while anything is still to come', () =>
    holds(({ ledger, pods, now }, { commands, wakeAt }) => {
      const hasInFlight = pods.flatMap(moduleSpecsOf).some((spec) => ledger.get(moduleKeyOf(spec))?.inFlight);
      const isUnread = !ledger.isKnown && pods.some((each) => moduleSpecsOf(each).length > 0);
      if (hasInFlight || isUnread) expect(wakeAt).toBeGreaterThan(now);
      if (wakeAt !== undefined && commands.length === 0) expect(wakeAt).toBeGreaterThan(now);
    }));
});
