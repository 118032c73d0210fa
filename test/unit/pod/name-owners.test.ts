import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ContainerStatus } from '../../../src/kube/objects.ts';
import type { ModuleLedger } from '../../../src/module/module-ledger.ts';
import { type BasePlan, planBase } from '../../../src/pod/base-plan.ts';
import { moduleSpecsOf } from '../../../src/pod/module-spec.ts';
import { NameOwners, ownerOfNamespaces } from '../../../src/pod/name-owners.ts';
import type { PendingRemoval } from '../../../src/pod/removals.ts';
import { isTerminal, type VPod } from '../../../src/pod/vpod.ts';
import { MODULE_STATES, type ModuleKey } from '../../../src/tunnel/module.ts';
import {
  idOf,
  makeLedger,
  makeList,
  makePod,
  makeResult,
  makeSpec,
  type PodOptions,
  runningStatus,
} from '../../support/builders.ts';

const [OLD, MIDDLE, NEW] = ['2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z', '2026-01-03T00:00:00Z'];
const KEY = 'biz1:1';

/** Of a container that never ran, unless `more` says so. */
function waiting(reason: string, more: Partial<ContainerStatus> = {}): ContainerStatus {
  const status = { name: 'biz1', image: '', imageID: '', ready: false, restartCount: 0 };
  return { ...status, state: { waiting: { reason } }, ...more };
}

const STATUSES = {
  none: { phase: 'Pending' },
  running: { phase: 'Running', containerStatuses: [runningStatus(KEY)] },
  crashed: { phase: 'Running', containerStatuses: [waiting('CrashLoopBackOff', { containerID: 'koupleless://b1/x' })] },
  /** One sign is enough: nobody but the API server fills all fields. */
  runningByState: {
    phase: 'Running',
    containerStatuses: [waiting('', { state: { running: { startedAt: OLD } } })],
  },
  crashedByLastState: {
    phase: 'Running',
    containerStatuses: [waiting('CrashLoopBackOff', { lastState: { terminated: { exitCode: 1 } } } as never)],
  },
  failing: { phase: 'Pending', containerStatuses: [waiting('ErrImagePull')] },
  taken: { phase: 'Pending', containerStatuses: [waiting('ModuleNameTaken')] },
  ranAndTaken: {
    phase: 'Running',
    containerStatuses: [waiting('ModuleNameTaken', { containerID: 'koupleless://b1/x' })],
  },
  ended: { phase: 'Failed', containerStatuses: [runningStatus(KEY)] },
};

const podOf = (namespace: string, status: keyof typeof STATUSES, more: PodOptions = {}): VPod =>
  makePod({ namespace, name: namespace, modules: [KEY], status: STATUSES[status], ...more } as PodOptions);

interface Scene {
  readonly pendingRemovals?: ReadonlyMap<ModuleKey, PendingRemoval>;
  readonly isLeft?: boolean;
  readonly shared?: readonly (readonly string[])[] | 'all';
}

/** The namespaces of those Pods whose name is their own. */
function ownersOf(
  pods: readonly VPod[],
  { pendingRemovals = new Map(), isLeft = true, shared = [] }: Scene = {},
): string[] {
  const owners = new NameOwners({ pods, pendingRemovals, isLeft: () => isLeft, ownerOf: ownerOfNamespaces(shared) });
  return pods.filter((pod) => !owners.isForeign(pod, 'biz1')).map(({ namespace }) => namespace);
}

describe('a module name', () => {
  it.each([
    ['the one that runs it, not to an older one', podOf('b', 'running', { createdAt: NEW }), podOf('a', 'none')],
    ['the one that ran it and crashed', podOf('b', 'crashed', { createdAt: NEW }), podOf('a', 'failing')],
    ['the one whose state says that it runs', podOf('b', 'runningByState', { createdAt: NEW }), podOf('a', 'failing')],
    [
      'the one whose last state says that it ran',
      podOf('b', 'crashedByLastState', { createdAt: NEW }),
      podOf('a', 'failing'),
    ],
    ['the one that runs it, not to one that fails', podOf('b', 'running', { createdAt: NEW }), podOf('a', 'failing')],
    ['the one that is tried, not to an older one', podOf('b', 'failing', { createdAt: NEW }), podOf('a', 'none')],
    [
      'the one that runs it, also while it is deleted',
      podOf('b', 'running', { deleting: true }),
      podOf('a', 'failing'),
    ],
    [
      'the older one of two that run it',
      podOf('b', 'running', { uid: 'z' }),
      podOf('a', 'running', { createdAt: NEW, uid: 'a' }),
    ],
    [
      'the older one of two new ones',
      podOf('b', 'none', { uid: 'z' }),
      podOf('a', 'none', { createdAt: NEW, uid: 'a' }),
    ],
    ['the one with the lower UID of one second', podOf('b', 'none', { uid: '1' }), podOf('a', 'none', { uid: '2' })],
    ['a new one, not to an older one that waited for the name', podOf('b', 'failing'), podOf('a', 'taken')],
    [
      'one that runs it, not to an older one that ran it and lost it',
      podOf('b', 'running', { createdAt: NEW }),
      podOf('a', 'ranAndTaken'),
    ],
    [
      'the one with the lower UID of two that run it since one second',
      podOf('b', 'running', { uid: '1' }),
      podOf('a', 'running', { uid: '2' }),
    ],
    [
      'one that has ended while its module is there, not to an older one that fails',
      podOf('b', 'ended', { createdAt: NEW }),
      podOf('a', 'failing'),
    ],
    ['one that has ended while its module is there', podOf('b', 'ended', { createdAt: NEW }), podOf('a', 'none')],
  ])('belongs to the namespace of %s', (_, owner, other) => {
    expect(ownersOf([owner, other])).toEqual(['b']);
    expect(ownersOf([other, owner])).toEqual(['b']);
  });

  it('stays with a namespace through its rolling update', () => {
    const old = podOf('a', 'running', { createdAt: OLD, deleting: true });
    const young = podOf('a', 'none', { createdAt: NEW, uid: 'z' });
    const other = podOf('b', 'ranAndTaken', { createdAt: MIDDLE, uid: 'a' });
    expect(ownersOf([old, young, other])).toEqual(['a', 'a']);
    expect(ownersOf([podOf('a', 'running', { createdAt: NEW }), other])).toEqual(['a']);
  });

  it('of a Pod that has ended is free when its module is gone', () => {
    const pods = [podOf('a', 'ended'), podOf('b', 'taken', { createdAt: NEW })];
    expect(ownersOf(pods, { isLeft: false })).toEqual(['b']);
  });

  it('is not held by a Pod that has ended and never had the module', () => {
    const ended = podOf('a', 'none', { status: { phase: 'Failed' } });
    expect(ownersOf([ended, podOf('b', 'none', { createdAt: NEW })])).toEqual(['b']);
  });

  it.each([
    ['the namespace of a Pod that was forced away while its module is there', true, []],
    ['the next one when that is gone', false, ['b']],
  ])('belongs to %s', (_, isLeft, expected) => {
    const pendingRemovals = new Map([[KEY, { ...idOf(KEY), namespace: 'a' }]]);
    expect(ownersOf([podOf('b', 'taken')], { pendingRemovals, isLeft })).toEqual(expected);
  });

  it('of a module that no Pod had is free', () => {
    expect(ownersOf([podOf('b', 'none')], { pendingRemovals: new Map([[KEY, idOf(KEY)]]) })).toEqual(['b']);
  });

  it.each([
    ['belongs to namespaces that share it', [['a', 'b']], ['a', 'b']],
    ['belongs to all where all share it', 'all' as const, ['a', 'b', 'c']],
  ])('%s', (_, shared, expected) => {
    const pods = [podOf('a', 'running'), podOf('b', 'none'), podOf('c', 'none')];
    expect(ownersOf(pods, { shared })).toEqual(expected);
  });
});

describe('a Pod with several modules', () => {
  const many = (namespace: string, modules: string[], status: object = STATUSES.none, more: PodOptions = {}): VPod =>
    makePod({ namespace, name: namespace, modules, status, ...more } as PodOptions);
  const running = (...keys: string[]) => ({
    phase: 'Running',
    containerStatuses: keys.map((key) => runningStatus(key)),
  });
  const specs = (pods: readonly VPod[]): string[][] => {
    const owners = new NameOwners({
      pods,
      pendingRemovals: new Map(),
      isLeft: () => true,
      ownerOf: ownerOfNamespaces([]),
    });
    return pods.map((pod) => owners.specsOf(pod).map(({ name }) => name));
  };

  /** Those with all of their names run now. */
  const begin = (pods: readonly VPod[]): VPod[] => {
    const begun = specs(pods);
    return pods.map((pod, index) => {
      const wanted = moduleSpecsOf(pod).map(({ name }) => name);
      if (begun[index]?.length === 0) return pod;
      expect(begun[index]).toEqual(wanted);
      return { ...pod, status: { ...pod.status, ...running(...wanted.map((name) => `${name}:1`)) } };
    });
  };

  it('begins nothing while one of its names belongs to another namespace, and holds none meanwhile', () => {
    const pods = [
      many('a', ['biz1:1', 'biz2:1'], undefined, { createdAt: OLD }),
      many('b', ['biz2:1'], running('biz2:1')),
      many('c', ['biz1:1'], undefined, { createdAt: NEW }),
    ];
    expect(specs(pods)).toEqual([[], ['biz2'], ['biz1']]);
  });

  it('keeps what it runs when it needs a name of another namespace', () => {
    const pods = [many('a', ['biz1:1', 'biz2:1'], running('biz1:1')), many('b', ['biz2:1'], running('biz2:1'))];
    expect(specs(pods)).toEqual([['biz1'], ['biz2']]);
  });

  it('has all of its names as soon as they are free, the oldest Pod first', () => {
    const pods = [
      many('b', ['biz2:1', 'biz1:1'], undefined, { createdAt: NEW }),
      many('a', ['biz1:1', 'biz2:1'], undefined, { createdAt: OLD }),
    ];
    expect(specs(pods)).toEqual([[], ['biz1', 'biz2']]);
  });

  it('never waits for a Pod that waits for it, whatever became free before', () => {
    const names = ['n0', 'n1', 'n2', 'n3'];
    const wish = fc.uniqueArray(fc.constantFrom(...names), { minLength: 1 });
    fc.assert(
      fc.property(fc.array(wish, { minLength: 2, maxLength: 5 }), fc.shuffledSubarray(names), (wishes, order) => {
        // Each name is held by a Pod of its own; these go one after the other, and whoever may begin, runs.
        let others = names.map((name) => many(`holder-${name}`, [`${name}:1`], running(`${name}:1`)));
        let pods = wishes.map((wanted, index) =>
          many(
            `ns-${index}`,
            wanted.map((name) => `${name}:1`),
            undefined,
            { createdAt: `2026-01-0${index + 1}T00:00:00Z` },
          ),
        );
        for (const free of [...order, ...names]) {
          others = others.filter(({ namespace }) => namespace !== `holder-${free}`);
          pods = begin([...others, ...pods]).slice(others.length);
        }
        const isRunning = (pod: VPod): boolean => pod.status.phase === 'Running';
        const taken = new Set(pods.filter(isRunning).flatMap((pod) => moduleSpecsOf(pod).map(({ name }) => name)));
        for (const pod of pods) {
          // A Pod that does not run waits for a name of a Pod that does.
          if (!isRunning(pod)) expect(moduleSpecsOf(pod).some(({ name }) => taken.has(name))).toBe(true);
        }
      }),
    );
  });
});

const KEYS = ['biz1:1', 'biz1:2', 'biz2:1'];
const TIMES = [OLD, MIDDLE, NEW];
const TAKEN = 'ModuleNameTaken';

function statusesOf(key: string, kind: string): ContainerStatus[] {
  if (kind === 'none') return [];
  return [kind === 'running' ? runningStatus(key) : waiting(kind, { name: idOf(key).name })];
}

const ownPod = fc
  .record({
    modules: fc.uniqueArray(fc.constantFrom(...KEYS), { minLength: 1, selector: (key) => idOf(key).name }),
    args: fc.constantFrom<string[]>([], ['--x']),
    deleting: fc.boolean(),
    phase: fc.constantFrom('Pending', 'Running', 'Failed'),
    createdAt: fc.constantFrom(...TIMES),
    strategy: fc.constantFrom(undefined, 'uninstallThenInstall'),
    kind: fc.constantFrom('running', 'running', 'none', 'ErrImagePull'),
    index: fc.nat(),
  })
  .map(({ phase, strategy, kind, index, ...options }) => {
    const containerStatuses = options.modules.flatMap((key) => statusesOf(key, kind));
    const more = { name: `own-${index}`, namespace: 'victim', ...(strategy && { strategy }) };
    return makePod({ ...options, ...more, status: { phase, containerStatuses } });
  });

/** As a tenant may make it: with a status only where the controller wrote one. */
const foreignPod = fc
  .record({
    modules: fc.uniqueArray(fc.constantFrom(...KEYS, 'biz1:3'), { minLength: 1, selector: (key) => idOf(key).name }),
    args: fc.constantFrom<string[]>([], ['--x']),
    deleting: fc.boolean(),
    phase: fc.constantFrom('Pending', 'Failed'),
    createdAt: fc.constantFrom(...TIMES),
    sleepSeconds: fc.constantFrom(0, 3_600),
    strategy: fc.constantFrom(undefined, 'uninstallThenInstall', 'wrong'),
    kind: fc.constantFrom('none', TAKEN),
  })
  .map(({ phase, strategy, kind, ...options }) => {
    const containerStatuses = options.modules.flatMap((key) => statusesOf(key, kind));
    const more = { name: 'attack', namespace: 'mallory', ...(strategy && { strategy }) };
    return makePod({ ...options, ...more, status: { phase, containerStatuses } });
  });

const happening = fc.oneof(
  fc.uniqueArray(fc.constantFrom(...KEYS)).chain((keys) =>
    fc.constantFrom(...MODULE_STATES).map((state) => (ledger: ModuleLedger, now: number) => {
      ledger.takeList(makeList(...keys.map((key) => `${key} ${state}`)), {}, now);
    }),
  ),
  fc.constantFrom(...KEYS).map((key) => (ledger: ModuleLedger, now: number) => ledger.installSent(makeSpec(key), now)),
  fc.constantFrom(...KEYS).map((key) => (ledger: ModuleLedger, now: number) => {
    ledger.commandSent('uninstall', idOf(key), now);
    ledger.takeResult(makeResult('uninstall', key, { outcome: 'failed', message: 'in use' }), {}, now);
  }),
  fc
    .tuple(
      fc.constantFrom('install', 'uninstall', 'switch'),
      fc.constantFrom(...KEYS),
      fc.constantFrom('done', 'failed'),
    )
    .map(([command, key, outcome]) => (ledger: ModuleLedger, now: number) => {
      ledger.takeResult(makeResult(command, key, { outcome }), {}, now);
    }),
);

const world = fc.record({
  own: fc.array(ownPod, { minLength: 1, maxLength: 5 }),
  foreign: fc.array(foreignPod, { minLength: 1, maxLength: 4 }),
  happenings: fc.array(happening, { maxLength: 6 }),
  pendingRemovals: fc.uniqueArray(fc.constantFrom(...KEYS)),
  canSwitch: fc.boolean(),
  sleeps: fc.boolean(),
  unwritten: fc.uniqueArray(fc.constantFrom('biz1', 'biz2')),
});

/** Of the foreign Pods those that ask for nothing but names that the namespace `victim` has started. */
function attackers(own: readonly VPod[], foreign: readonly VPod[]): VPod[] {
  const started = new Set(
    own
      .filter((pod) => !isTerminal(pod))
      .flatMap(({ status }) => status.containerStatuses)
      .filter(({ containerID }) => containerID !== undefined)
      .map(({ name }) => name),
  );
  return foreign.filter((pod) => moduleSpecsOf(pod).every(({ name }) => started.has(name)));
}

const own = (pod: VPod): boolean => pod.namespace === 'victim';

/** All that a plan says of the Pods of the owner, and of the base. */
function victimsPart({
  views,
  finished,
  failedKills,
  isWanted,
  isOfFormerOwner,
  hasRivals,
  wakeAt: _wakeAt,
  ...rest
}: BasePlan) {
  return {
    ...rest,
    views: [...views].filter(([pod]) => own(pod)),
    finished: finished.filter(own),
    failedKills: [...failedKills].filter(([pod]) => own(pod)),
    wanted: [...KEYS, 'biz1:3'].filter(isWanted),
    lost: [...KEYS, 'biz1:3'].filter(isOfFormerOwner),
    hasRivals: hasRivals(),
  };
}

describe('whatever a tenant does with names of another namespace', () => {
  it('the plan of that namespace stays what it is, and the tenant learns no name of it', () => {
    let attacks = 0;
    fc.assert(
      fc.property(world, ({ own: victims, foreign, happenings, pendingRemovals, unwritten, canSwitch, sleeps }) => {
        const ledger = makeLedger();
        happenings.forEach((happen, index) => {
          happen(ledger, index * 1_000);
        });
        const now = happenings.length * 1_000;
        const input = {
          pendingRemovals: new Map(
            pendingRemovals.map((key, index) => [key, { ...idOf(key), ...(index === 0 && { namespace: 'victim' }) }]),
          ),
          ledger,
          canSwitch,
          unwritten: new Set(unwritten),
          sleepUntil: new Map(foreign.map(({ uid }) => [uid, sleeps ? now + 1 : 0])),
          unadmitted: new Map(),
          ownerOf: ownerOfNamespaces([]),
          now,
        };
        const strangers = attackers(victims, foreign);
        if (strangers.length > 0) attacks++;
        const alone = planBase({ ...input, pods: victims });
        const both = planBase({ ...input, pods: [...strangers, ...victims] });
        expect(victimsPart(both)).toEqual(victimsPart(alone));
        const shown = [...both.views].filter(([pod]) => !own(pod)).flatMap(([, views]) => views);
        const expected = ledger.isKnown ? { kind: 'Waiting', reason: TAKEN } : { kind: 'Unknown' };
        for (const { view } of shown) expect(view).toMatchObject(expected);
        expect(JSON.stringify(shown)).not.toMatch(/victim|own-/);
        expect([...both.failedKills.keys()].filter((pod) => !own(pod))).toEqual([]);
        const leaving = strangers.filter((pod) => pod.isDeleting && !(sleeps && !isTerminal(pod)));
        expect(
          both.finished
            .filter((pod) => !own(pod))
            .map(({ uid }) => uid)
            .sort(),
        ).toEqual(leaving.map(({ uid }) => uid).sort());
      }),
      { numRuns: 1_000 },
    );
    expect(attacks).toBeGreaterThan(200);
  });

  it('a Pod that needs one of them waits with all that it asks for', () => {
    const ledger = makeLedger();
    ledger.takeList(makeList('biz1:1'), {}, 0);
    const pods = [podOf('victim', 'running'), makePod({ namespace: 'mallory', modules: ['biz1:2', 'biz2:1'] })];
    const rest = {
      pendingRemovals: new Map(),
      canSwitch: true,
      unwritten: new Set<string>(),
      sleepUntil: new Map(),
      unadmitted: new Map(),
      now: 0,
    };
    const { commands, views } = planBase({ ...rest, pods, ledger, ownerOf: ownerOfNamespaces([]) });
    expect(commands).toEqual([]);
    expect([...views.values()][1]).toMatchObject([
      { view: { reason: TAKEN, message: expect.stringMatching(/^the module name belongs/) } },
      { view: { reason: TAKEN, message: expect.stringMatching(/^another module name of this Pod/) } },
    ]);
  });
});
