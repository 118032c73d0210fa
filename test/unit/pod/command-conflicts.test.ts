import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ModuleLedger } from '../../../src/module/module-ledger.ts';
import { type PlannedCommand, planBase } from '../../../src/pod/base-plan.ts';
import { moduleSpecsOf } from '../../../src/pod/module-spec.ts';
import type { VPod } from '../../../src/pod/vpod.ts';
import { type ModuleKey, moduleKeyOf } from '../../../src/tunnel/module.ts';
import { idOf, LEDGER_OPTIONS, makeLedger, makeList, makePod, makeResult, makeSpec } from '../../support/builders.ts';
import { runsOf } from '../../support/property-runs.ts';
import { SlowBase } from './slow-base.ts';

const REPLACING = 'uninstallThenInstall';
const DEADLINE_MS = LEDGER_OPTIONS.uninstallDeadlineMs;

interface Scene {
  readonly pods: readonly VPod[];
  readonly ledger: ModuleLedger;
  readonly pendingRemovals?: readonly ModuleKey[];
  readonly unwritten?: readonly string[];
  readonly now?: number;
}

function planOf({ pods, ledger, pendingRemovals = [], unwritten = [], now = 0 }: Scene) {
  const owed = new Map(pendingRemovals.map((key) => [key, idOf(key)]));
  const rest = { canSwitch: true, sleepUntil: new Map(), unwritten: new Set(unwritten), unadmitted: new Map() };
  const ownerOf = (namespace: string): string => namespace;
  return planBase({ pods, pendingRemovals: owed, ledger, now, ownerOf, ...rest });
}

const lineOf = (planned: PlannedCommand): string =>
  `${planned.command} ${moduleKeyOf(planned.command === 'install' ? planned.spec : planned.id)}`;
const commandsOf = (scene: Scene): string[] => planOf(scene).commands.map(lineOf);

function ledgerWith(...lines: readonly string[]): ModuleLedger {
  const ledger = makeLedger();
  ledger.takeList(makeList(...lines), {}, 0);
  return ledger;
}

const leaving = (key: ModuleKey): VPod => makePod({ name: `old-${key}`, modules: [key], deleting: true });
const young = (key: ModuleKey, strategy?: string): VPod =>
  makePod({ name: `new-${key}`, modules: [key], createdAt: '2026-01-02T00:00:00Z', ...(strategy && { strategy }) });

describe('the plan of a base', () => {
  it('has an uninstall before the install that replaces, and never both', () => {
    const pods = [leaving('biz1:1'), young('biz1:2', REPLACING)];
    expect(commandsOf({ pods, ledger: ledgerWith('biz1:1') })).toEqual(['uninstall biz1:1']);
  });

  it('has both where the strategy leaves other versions alone, or where the module has another name', () => {
    const pods = [leaving('biz1:1'), young('biz1:2'), leaving('biz2:1'), young('biz3:1', REPLACING)];
    const commands = commandsOf({ pods, ledger: ledgerWith('biz1:1', 'biz2:1') });
    expect(commands.sort()).toEqual(['install biz1:2', 'install biz3:1', 'uninstall biz1:1', 'uninstall biz2:1']);
  });

  it.each(['uninstall', 'switch'] as const)('has no such install while a %s of its name is in work', (command) => {
    const ledger = ledgerWith('biz1:1');
    ledger.commandSent(command, idOf('biz1:1'), 0);
    expect(commandsOf({ pods: [young('biz1:2', REPLACING)], ledger })).toEqual([]);
  });

  it('has no such install while an uncertain uninstall may be in work', () => {
    const ledger = ledgerWith('biz1:1');
    ledger.commandSent('uninstall', idOf('biz1:1'), 0);
    ledger.doubtCommands();
    const { commands, wakeAt } = planOf({ pods: [young('biz1:2', REPLACING)], ledger, now: 10_000 });
    expect(commands).toEqual([]);
    expect(wakeAt).toBe(DEADLINE_MS);
  });

  it('has the uninstall first, also of a module that ended by itself', () => {
    const ledger = ledgerWith('biz1:1 DEACTIVATED');
    expect(ledger.get('biz1:1')?.failure?.reason).toBe('BizDeactivated');
    const pods = [leaving('biz1:1'), young('biz1:2', REPLACING)];
    expect(commandsOf({ pods, ledger, now: 1 })).toEqual(['uninstall biz1:1']);
  });

  it.each(['no command', 'a switch', 'a refused switch'])(
    'has no such install while an uninstall that was given up may be in work, after %s',
    (next) => {
      const ledger = ledgerWith('biz1:1');
      ledger.commandSent('uninstall', idOf('biz1:1'), 0);
      ledger.doubtCommands();
      ledger.takeList(makeList('biz1:1 DEACTIVATED'), { askedAt: 10_000 }, 10_000);
      expect(ledger.get('biz1:1')?.inFlight).toBeUndefined();
      if (next !== 'no command') ledger.commandSent('switch', idOf('biz1:1'), 10_001);
      if (next === 'a refused switch') {
        ledger.takeResult(makeResult('switch', 'biz1:1', { outcome: 'busy' }), {}, 10_002);
        ledger.takeList(makeList('biz1:1 DEACTIVATED'), { askedAt: 10_003 }, 10_003);
      }
      const pods = [young('biz1:2', REPLACING)];
      const { commands, wakeAt } = planOf({ pods, ledger, now: 20_000 });
      expect(commands).toEqual([]);
      expect(wakeAt).toBe(DEADLINE_MS);
      expect(commandsOf({ pods: [young('biz1:2')], ledger, now: 20_000 })).toEqual(['install biz1:2']);
      ledger.expire(DEADLINE_MS + 10_001);
      expect(commandsOf({ pods, ledger, now: DEADLINE_MS + 10_001 })).toEqual(['install biz1:2']);
    },
  );

  it('has it as soon as the base has answered', () => {
    const ledger = ledgerWith('biz1:1');
    ledger.commandSent('uninstall', idOf('biz1:1'), 0);
    ledger.doubtCommands();
    ledger.takeList(makeList('biz1:1 DEACTIVATED'), { askedAt: 10_000 }, 10_000);
    ledger.takeResult(makeResult('uninstall', 'biz1:1', { outcome: 'failed', message: 'no' }), {}, 20_000);
    expect(commandsOf({ pods: [young('biz1:2', REPLACING)], ledger, now: 20_000 })).toEqual(['install biz1:2']);
  });

  it('has nothing else about the name while such an install is in work', () => {
    const ledger = ledgerWith('biz1:1', 'biz1:3');
    ledger.installSent(makeSpec('biz1:2', { strategy: REPLACING }), 0);
    const pods = [leaving('biz1:1'), young('biz1:2', REPLACING)];
    const { commands, wakeAt } = planOf({ pods, ledger, pendingRemovals: ['biz1:3'], now: 1_000 });
    expect(commands).toEqual([]);
    expect(wakeAt).toBeGreaterThan(1_000);
  });

  it('has no such install while the base works on another version for an earlier controller', () => {
    const pods = [leaving('biz1:1'), young('biz1:2', REPLACING)];
    const { askList, wakeAt } = planOf({ pods, ledger: ledgerWith('biz1:1 UNRESOLVED'), now: 1 });
    expect(commandsOf({ pods: pods.slice(1), ledger: ledgerWith('biz1:1 RESOLVED') })).toEqual([]);
    expect(commandsOf({ pods: pods.slice(1), ledger: ledgerWith('biz1:1 UNRESOLVED') })).toEqual([]);
    expect(askList || wakeAt !== undefined).toBe(true);
  });

  it('has nothing about other versions while an install is in work that an earlier controller sent: it may replace', () => {
    const pods = [leaving('biz1:1'), young('biz1:2'), young('biz1:3')];
    expect(commandsOf({ pods, ledger: ledgerWith('biz1:1', 'biz1:2 RESOLVED') })).toEqual([]);
  });

  it.each(['RESOLVED', 'UNRESOLVED'])('has the uninstall of a module that an earlier controller left %s', (state) => {
    const pods = [leaving('biz1:1'), young('biz1:2', REPLACING)];
    expect(commandsOf({ pods, ledger: ledgerWith(`biz1:1 ${state}`), now: 1 })).toEqual(['uninstall biz1:1']);
  });

  it.each(['in work', 'over its deadline'])(
    'still counts that install while the uninstall of it is %s',
    (uninstall) => {
      const ledger = ledgerWith('biz1:1', 'biz1:2 RESOLVED');
      ledger.commandSent('uninstall', idOf('biz1:2'), 0);
      ledger.takeResult(makeResult('uninstall', 'biz1:2', { outcome: 'busy' }), {}, 1);
      const now = uninstall === 'in work' ? 10_000 : DEADLINE_MS;
      ledger.expire(now);
      const pods = [leaving('biz1:1'), leaving('biz1:2')];
      expect(commandsOf({ pods, ledger, now })).toEqual([]);
      ledger.expire(LEDGER_OPTIONS.installDeadlineMs);
      const commands = commandsOf({ pods, ledger, now: LEDGER_OPTIONS.installDeadlineMs });
      expect(commands).toContain('uninstall biz1:1');
    },
  );

  it('asks for the list while it waits for what an earlier controller sent', () => {
    const ledger = ledgerWith('biz1:1', 'biz1:2 RESOLVED');
    expect(planOf({ pods: [leaving('biz1:1')], ledger, now: 10 }).askList).toBe(true);
  });

  it("waits for an earlier controller's work no longer than an install may take", () => {
    const ledger = ledgerWith('biz1:1', 'biz1:2 RESOLVED');
    ledger.expire(LEDGER_OPTIONS.installDeadlineMs);
    const now = LEDGER_OPTIONS.installDeadlineMs;
    expect(commandsOf({ pods: [leaving('biz1:1')], ledger, now })).toEqual(['uninstall biz1:1']);
  });

  it('has the install before an uninstall that failed already', () => {
    const ledger = ledgerWith('biz1:1');
    ledger.commandSent('uninstall', idOf('biz1:1'), 0);
    ledger.takeResult(makeResult('uninstall', 'biz1:1', { outcome: 'failed', message: 'no' }), {}, 1);
    const pods = [leaving('biz1:1'), young('biz1:2', REPLACING)];
    expect(commandsOf({ pods, ledger, now: 60_000 })).toEqual(['install biz1:2']);
  });

  it('has such an uninstall instead of the install that waits for a status of its name to be written', () => {
    const ledger = ledgerWith('biz1:1');
    ledger.commandSent('uninstall', idOf('biz1:1'), 0);
    ledger.takeResult(makeResult('uninstall', 'biz1:1', { outcome: 'failed', message: 'no' }), {}, 1);
    const scene = { pods: [leaving('biz1:1'), young('biz1:2', REPLACING)], ledger, now: 60_000 };
    expect(commandsOf({ ...scene, unwritten: ['biz1'] })).toEqual(['uninstall biz1:1']);
    expect(commandsOf({ ...scene, unwritten: ['biz2'] })).toEqual(['install biz1:2']);
  });
});

const KEYS = ['biz1:1', 'biz1:2', 'biz1:3', 'biz2:1'];
const STEP_MS = 1_000;
const STEPS = 240;

/** What happens to a base and its Pods, by the step in which it does. */
const story = fc.record({
  there: fc.uniqueArray(fc.constantFrom(...KEYS)),
  pods: fc.array(
    fc.record({
      key: fc.constantFrom(...KEYS),
      strategy: fc.constantFrom(undefined, REPLACING, REPLACING),
      createdIn: fc.nat({ max: 60 }),
      deletedIn: fc.option(fc.nat({ max: 120 }), { nil: STEPS }),
    }),
    { maxLength: 6 },
  ),
  /** In steps; 200 is longer than every deadline. */
  takes: fc.infiniteStream(fc.constantFrom(0, 1, 2, 5, 30, 200)),
  isLost: fc.infiniteStream(fc.constantFrom(false, false, false, true)),
  fails: fc.infiniteStream(fc.constantFrom(false, false, false, true)),
  newLeaderIn: fc.option(fc.nat({ max: STEPS }), { nil: STEPS }),
  linkLostIn: fc.option(fc.nat({ max: STEPS }), { nil: STEPS }),
  listEvery: fc.constantFrom(1, 3, 15),
});

type Story = typeof story extends fc.Arbitrary<infer T> ? T : never;

/** The Pods of a story that were created by a step. */
function podsIn({ pods }: Story, step: number): VPod[] {
  return pods
    .filter(({ createdIn }) => createdIn <= step)
    .map(({ key, strategy, createdIn, deletedIn }) => {
      const createdAt = new Date(Date.UTC(2026, 0, 1, 0, 0, createdIn)).toISOString().replace('.000Z', 'Z');
      const name = `${key}-${createdIn}-${deletedIn}-${strategy}`;
      const more = { createdAt, deleting: deletedIn <= step, ...(strategy && { strategy }) };
      return makePod({ name, uid: name, modules: [key], ...more });
    });
}

function note(ledger: ModuleLedger, planned: PlannedCommand, now: number): void {
  if (planned.command === 'install') ledger.installSent(planned.spec, now);
  else ledger.commandSent(planned.command, planned.id, now);
}

/** Plays a story: all commands, and those that were sent beside one that they conflict with. */
function play(it: Story): { sent: string[]; conflicts: string[] } {
  const base = new SlowBase({ ...it, stepMs: STEP_MS });
  const sent: string[] = [];
  const conflicts: string[] = [];
  let ledger = makeLedger();
  for (let step = 0; step < STEPS; step++) {
    const now = 1_000 + step * STEP_MS;
    for (const result of base.advance(now)) ledger.takeResult(result, {}, now);
    if (step === it.newLeaderIn) ledger = makeLedger();
    if (step === it.linkLostIn) ledger.linkLost();
    if (step % it.listEvery === 0) {
      ledger.listAsked(now);
      ledger.takeList(base.list(), { askedAt: now }, now);
    }
    ledger.expire(now);
    const pods = podsIn(it, step);
    for (const planned of planOf({ pods, ledger, now }).commands) {
      conflicts.push(...base.conflictsOf(planned, { now, since: step >= it.newLeaderIn ? it.newLeaderIn : 0 }));
      sent.push(lineOf(planned));
      note(ledger, planned, now);
      base.receive(planned, now, step);
    }
    ledger.forgetUnless((key) => pods.flatMap(moduleSpecsOf).some((spec) => moduleKeyOf(spec) === key));
  }
  return { sent, conflicts };
}

/** In which step an install leaves that replaces versions whose uninstalls never end. */
function installedIn({ deletedIn, createdIn }: { deletedIn: readonly number[]; createdIn: number }): number {
  const keys = deletedIn.map((_, index) => `biz1:${index + 2}`);
  const ledger = ledgerWith(...keys);
  for (let step = 0; step < STEPS; step++) {
    const now = 1_000 + step * STEP_MS;
    ledger.expire(now);
    const old = keys.map((key, index) => ({ key, isDeleted: (deletedIn[index] ?? 0) <= step }));
    const pods = old.map(({ key, isDeleted }) =>
      makePod({ name: key, uid: key, modules: [key], deleting: isDeleted, createdAt: '2026-01-01T00:00:00Z' }),
    );
    if (createdIn <= step) pods.push(young('biz1:1', REPLACING));
    const { commands } = planOf({ pods, ledger, now });
    if (commands.some(({ command }) => command === 'install')) return step;
    for (const planned of commands) note(ledger, planned, now);
  }
  return STEPS;
}

describe('whatever a base does with its commands', () => {
  it('no two that conflict are in work', () => {
    let replaced = 0;
    const numRuns = runsOf(150);
    fc.assert(
      fc.property(story, (it) => {
        const { sent, conflicts } = play(it);
        expect(conflicts).toEqual([]);
        if (new Set(sent.filter((line) => line.startsWith('install biz1'))).size > 1) replaced++;
      }),
      { numRuns },
    );
    // It is 44 to 65 of 500.
    expect(replaced).toBeGreaterThan(numRuns / 50);
  });

  it('an install that replaces leaves at the latest when the deadline of the last uninstall is over', () => {
    const scene = fc.record({
      deletedIn: fc.array(fc.nat({ max: 100 }), { minLength: 1, maxLength: 5 }),
      createdIn: fc.nat({ max: 100 }),
    });
    fc.assert(
      fc.property(scene, (it) => {
        const last = Math.max(...it.deletedIn, it.createdIn);
        expect(installedIn(it)).toBeLessThanOrEqual(last + DEADLINE_MS / STEP_MS);
      }),
      { numRuns: runsOf(60) },
    );
  });
});
