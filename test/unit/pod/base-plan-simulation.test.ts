import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ModuleLedger } from '../../../src/module/module-ledger.ts';
import { type PlannedCommand, planBase } from '../../../src/pod/base-plan.ts';
import { moduleSpecsOf } from '../../../src/pod/module-spec.ts';
import { type BaseFacts, computePodStatus } from '../../../src/pod/pod-status.ts';
import type { VPod } from '../../../src/pod/vpod.ts';
import { type ModuleId, type ModuleKey, type ModuleState, moduleKeyOf } from '../../../src/tunnel/module.ts';
import { idOf, makeLedger, makeList, makePod, runningStatus, urlOf } from '../../support/builders.ts';
import { runsOf } from '../../support/property-runs.ts';
import { execute, type RigBase } from '../../support/rig-base.ts';

const FACTS: BaseFacts = { identity: 'b1', ip: '198.51.100.1', isRoutable: true, unreachable: undefined };
const STEP_MS = 3_000;
/** Longer than every wait that a base without failures leads to. */
const QUIET_STEPS = 30;
const MAX_STEPS = 300;

interface Scene {
  readonly pods: readonly VPod[];
  readonly modules: ReadonlyMap<ModuleKey, ModuleState>;
  readonly canSwitch: boolean;
  readonly activatesNew: boolean;
}

interface End {
  readonly pods: readonly VPod[];
  readonly base: Pick<RigBase, 'modules' | 'activatesNew' | 'switches'>;
  readonly pendingRemovals: ReadonlyMap<ModuleKey, ModuleId>;
  readonly sent: readonly string[];
  readonly isQuiet: boolean;
}

/** Carries out the plan of a base, answers included, until nothing more is planned, or for ever. */
function play({ pods, modules, canSwitch, activatesNew }: Scene): End {
  const base = { modules: new Map(modules), activatesNew, switches: 'done' as const };
  const wanted = new Set(pods.flatMap(moduleSpecsOf).map(moduleKeyOf));
  const pendingRemovals = new Map([...modules.keys()].filter((key) => !wanted.has(key)).map((key) => [key, idOf(key)]));
  const ledger = makeLedger();
  const sent: string[] = [];
  let left = [...pods];
  let quiet = 0;
  let now = 1_000;
  for (let step = 0; step < MAX_STEPS && quiet < QUIET_STEPS; step++, now += STEP_MS) {
    ledger.listAsked(now);
    ledger.takeList(makeList(...[...base.modules].map((entry) => entry.join(' '))), { askedAt: now }, now);
    const ownerOf = (namespace: string): string => namespace;
    const rest = { sleepUntil: new Map(), unwritten: new Set<string>(), unadmitted: new Map(), ownerOf };
    const plan = planBase({ pods: left, pendingRemovals, ledger, canSwitch, now, ...rest });
    left = left
      .map((pod) => statusOf(pod, plan.views.get(pod), now))
      .filter((_, index) => {
        const pod = left[index];
        return pod === undefined || !plan.finished.includes(pod);
      });
    for (const command of plan.commands) sent.push(carryOut(command, ledger, base, now));
    for (const [key] of plan.settledRemovals) pendingRemovals.delete(key);
    ledger.forgetUnless(plan.isWanted);
    quiet = plan.commands.length === 0 ? quiet + 1 : 0;
  }
  return { pods: left, base, pendingRemovals, sent, isQuiet: quiet >= QUIET_STEPS };
}

function statusOf(pod: VPod, views: Parameters<typeof computePodStatus>[0]['views'] | undefined, now: number): VPod {
  if (views === undefined) return pod;
  const nowText = new Date(Date.UTC(2026, 0, 5) + now).toISOString().replace('.000Z', 'Z');
  return { ...pod, status: computePodStatus({ pod, views, base: FACTS, now, nowText }) };
}

function carryOut(planned: PlannedCommand, ledger: ModuleLedger, base: End['base'], now: number): string {
  const { command } = planned;
  const spec = command === 'install' ? planned.spec : planned.id;
  if (command === 'install') ledger.installSent(planned.spec, now);
  else ledger.commandSent(command, spec, now);
  ledger.takeResult(execute(base, command, spec), { askedAt: now }, now + 1);
  return `${command} ${moduleKeyOf(spec)}`;
}

const KEYS = ['biz1:1', 'biz1:2', 'biz1:3', 'biz2:1'];
const isReady = ({ status }: VPod): boolean =>
  status.conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True');
const isLiving = (pod: VPod): boolean => !pod.isDeleting;

/** What a scene is made of, short enough to be read in a failure. */
interface Setting extends Pick<Scene, 'canSwitch' | 'activatesNew'> {
  readonly plans: readonly PodPlan[];
  readonly lines: readonly (readonly [ModuleKey, ModuleState])[];
}

interface PodPlan {
  readonly key: ModuleKey;
  readonly day: number;
  readonly deleting: boolean;
  readonly ran: boolean;
  readonly strategy: string | undefined;
}

function podOf({ key, day, deleting, ran, strategy }: PodPlan, index: number): VPod {
  const createdAt = `2026-01-0${day}T00:00:00Z`;
  const containerStatuses = ran ? [runningStatus(key, { imageID: urlOf(key) })] : [];
  const status = { phase: ran ? 'Running' : 'Pending', containerStatuses };
  const name = `p${index}`;
  return makePod({
    name,
    uid: `u${index}`,
    modules: [key],
    createdAt,
    deleting,
    status,
    ...(strategy && { strategy }),
  });
}

/** Of one name at most one version is active, as arklet has it. */
function modulesOf(lines: readonly (readonly [ModuleKey, ModuleState])[]): Map<ModuleKey, ModuleState> {
  const modules = new Map<ModuleKey, ModuleState>();
  for (const [key, state] of lines) {
    const hasActive = [...modules].some(([other, is]) => is === 'ACTIVATED' && idOf(other).name === idOf(key).name);
    modules.set(key, state === 'ACTIVATED' && hasActive ? 'DEACTIVATED' : state);
  }
  return modules;
}

function scenes(strategies: readonly (string | undefined)[], days: readonly number[]): fc.Arbitrary<Setting> {
  const plan = fc.record({
    key: fc.constantFrom(...KEYS),
    day: fc.constantFrom(...days),
    deleting: fc.boolean(),
    ran: fc.boolean(),
    strategy: fc.constantFrom(...strategies),
  });
  const state = fc.constantFrom<ModuleState>('ACTIVATED', 'ACTIVATED', 'DEACTIVATED', 'BROKEN', 'STOPPED');
  return fc.record({
    plans: fc.array(plan, { maxLength: 5 }),
    lines: fc.uniqueArray(fc.tuple(fc.constantFrom(...KEYS), state), { selector: ([key]) => key }),
    canSwitch: fc.boolean(),
    activatesNew: fc.boolean(),
  });
}

const INSTALL_ONLY = [undefined];
const ANY = [undefined, undefined, 'installOnly', 'uninstallThenInstall'];
const DAYS = [1, 2, 3, 4];
const ONE_SECOND = [1, 1, 2];

function ends(setting: fc.Arbitrary<Setting>, check: (scene: Scene, end: End) => void): void {
  fc.assert(
    fc.property(setting, ({ plans, lines, ...more }) => {
      const scene = { ...more, pods: plans.map(podOf), modules: modulesOf(lines) };
      check(scene, play(scene));
    }),
    { numRuns: runsOf(150) },
  );
}

/** The key of the youngest living Pod of a name, where one alone is the youngest. */
function youngestOf(pods: readonly VPod[], name: string): ModuleKey | undefined {
  const all = pods.filter((pod) => isLiving(pod) && pod.containers[0]?.name === name);
  const last = all
    .map(({ createdAt }) => createdAt)
    .sort()
    .at(-1);
  const keys = new Set(
    all
      .filter(({ createdAt }) => createdAt === last)
      .flatMap(moduleSpecsOf)
      .map(moduleKeyOf),
  );
  return keys.size === 1 ? [...keys][0] : undefined;
}

const activeOf = ({ base }: End, name: string): ModuleKey[] =>
  [...base.modules].filter(([key, state]) => state === 'ACTIVATED' && idOf(key).name === name).map(([key]) => key);

describe('a base that does what it is told', () => {
  it.each([
    ['side by side', INSTALL_ONLY, DAYS],
    ['with strategies', ANY, DAYS],
    ['of one second', INSTALL_ONLY, ONE_SECOND],
    ['of one second, with strategies', ANY, ONE_SECOND],
  ])('comes to rest, whatever it begins with (%s)', (_, strategies, days) => {
    ends(scenes(strategies, days), (_scene, { isQuiet, sent }) => {
      expect(isQuiet ? [] : sent.slice(-12)).toEqual([]);
    });
  });

  it('ends with nothing of deleted Pods, and without pendingRemovals', () => {
    ends(scenes(ANY, ONE_SECOND), (_scene, { pods, base, pendingRemovals }) => {
      expect(pods.filter(({ isDeleting }) => isDeleting)).toEqual([]);
      expect(pendingRemovals.size).toBe(0);
      const wanted = new Set(pods.flatMap(moduleSpecsOf).map(moduleKeyOf));
      for (const key of base.modules.keys()) expect(wanted).toContain(key);
    });
  });

  it('ends with all that living Pods ask for, one version of a name active', () => {
    ends(scenes(INSTALL_ONLY, ONE_SECOND), (_scene, end) => {
      const wanted = new Set(end.pods.flatMap(moduleSpecsOf).map(moduleKeyOf));
      expect(new Set(end.base.modules.keys())).toEqual(wanted);
      for (const name of new Set([...wanted].map((key) => idOf(key).name))) expect(activeOf(end, name)).toHaveLength(1);
    });
  });

  it('ends with the youngest Pod’s version active, where it can be switched', () => {
    ends(scenes(ANY, DAYS), (scene, end) => {
      if (!scene.canSwitch) return;
      for (const name of ['biz1', 'biz2']) {
        const youngest = youngestOf(scene.pods, name);
        if (youngest !== undefined) expect(activeOf(end, name)).toEqual([youngest]);
      }
    });
  });

  it('ends without the versions that a younger Pod replaces', () => {
    ends(scenes(ANY, DAYS), (scene, end) => {
      const replacers = scene.pods.filter((pod) => isLiving(pod) && pod.installStrategy === 'uninstallThenInstall');
      for (const name of ['biz1', 'biz2']) {
        const youngest = youngestOf(scene.pods, name);
        const isReplacing = replacers.some((pod) => moduleSpecsOf(pod).some((spec) => moduleKeyOf(spec) === youngest));
        const sharers = scene.pods.filter((pod) => moduleSpecsOf(pod).some((spec) => moduleKeyOf(spec) === youngest));
        // A strategy is the one of whoever has the module.
        if (!isReplacing || sharers.some(({ installStrategy }) => installStrategy !== 'uninstallThenInstall')) continue;
        expect([...end.base.modules.keys()].filter((key) => idOf(key).name === name)).toEqual([youngest]);
      }
    });
  });

  it('ends with those Pods ready whose module is the active one, and no others', () => {
    ends(scenes(ANY, ONE_SECOND), ({ pods: before }, { pods, base }) => {
      expect(pods).toHaveLength(before.filter(isLiving).length);
      for (const pod of pods) {
        const isActive = moduleSpecsOf(pod).every((spec) => base.modules.get(moduleKeyOf(spec)) === 'ACTIVATED');
        expect(isReady(pod)).toBe(isActive);
      }
    });
  });

  it('restarts nothing that runs as it should', () => {
    ends(scenes(INSTALL_ONLY, DAYS), (scene, { pods, sent }) => {
      for (const pod of pods) {
        const [key = ''] = moduleSpecsOf(pod).map(moduleKeyOf);
        const isWell = ['ACTIVATED', 'DEACTIVATED'].includes(scene.modules.get(key) ?? '');
        if (isWell && !sent.includes(`uninstall ${key}`)) expect(pod.status.containerStatuses[0]?.restartCount).toBe(0);
      }
    });
  });

  it('uninstalls no version that a living Pod asks for, where it can be switched', () => {
    ends(scenes(INSTALL_ONLY, DAYS), (scene, { sent }) => {
      if (!scene.canSwitch) return;
      for (const [key, state] of scene.modules) {
        const isWanted = scene.pods.some(
          (pod) => isLiving(pod) && moduleSpecsOf(pod).some((s) => moduleKeyOf(s) === key),
        );
        if (isWanted && (state === 'ACTIVATED' || state === 'DEACTIVATED'))
          expect(sent).not.toContain(`uninstall ${key}`);
      }
    });
  });

  it('is never told to switch where it cannot', () => {
    ends(scenes(ANY, ONE_SECOND), ({ canSwitch }, { sent }) => {
      if (!canSwitch) expect(sent.filter((line) => line.startsWith('switch'))).toEqual([]);
    });
  });
});
