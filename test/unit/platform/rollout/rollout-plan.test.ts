import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type BaseSharing, sharingOf } from '../../../../src/kinds/module-pod.ts';
import type { EnvVar, PodObject } from '../../../../src/kube/objects.ts';
import { REVISION_LABEL } from '../../../../src/labels.ts';
import { limitsOf, type RolloutLimits } from '../../../../src/platform/rollout/rollout-limits.ts';
import { cannotShare } from '../../../../src/platform/rollout/rollout-template.ts';
import { RolloutWorld, type Template } from './rollout-world.ts';

const BASES = ['a', 'b', 'c'];
const V1: Template = { revision: 'r1', version: '1' };
const V2: Template = { revision: 'r2', version: '2' };
/** Only a variable differs: a base holds one of both. */
const V1_ENV: Template = { revision: 'r1b', version: '1' };
const BROKEN: Template = { ...V2, isBroken: true };

function settled(options: Partial<ConstructorParameters<typeof RolloutWorld>[0]> = {}): RolloutWorld {
  return RolloutWorld.settled({ bases: BASES, replicas: 3, ...options });
}

/** Runs until nothing happens any more. Returns the fewest Pods that were available on the way. */
function run(world: RolloutWorld, steps = 100): number {
  let least = world.available.length;
  for (let step = 0; step < steps; step++) {
    const hasActed = world.act();
    least = Math.min(least, world.available.length);
    const before = world.pods;
    world.uninstall();
    world.schedule();
    world.install();
    if (!hasActed && world.pods === before) return least;
  }
  throw new Error('never comes to rest');
}

function basesOf(world: RolloutWorld, revision: string): (string | undefined)[] {
  return world
    .of(revision)
    .map(({ nodeName }) => nodeName)
    .sort();
}

describe('a ModuleDeployment at rest', () => {
  it('has as many Pods as replicas, and creates none twice', () => {
    const world = new RolloutWorld({ bases: BASES, replicas: 3 });
    expect(world.plan().creations).toHaveLength(3);
    world.act();
    expect(world.plan()).toEqual({ deletions: [], creations: [], waiting: 0 });
    run(world);
    expect(basesOf(world, 'r1')).toEqual(BASES);
  });

  it('replaces a Pod that somebody deletes, at once', () => {
    const world = settled();
    const [pod] = world.pods;
    if (pod) world.change(pod, { isDeleting: true });
    expect(world.plan().creations).toEqual([{ revision: 'r1', place: undefined }]);
    run(world);
    expect(basesOf(world, 'r1')).toEqual(BASES);
  });

  it('grows and shrinks: what is not available goes first, then the youngest', () => {
    const world = settled({ replicas: 2 });
    world.replicas = 3;
    run(world);
    expect(world.available).toHaveLength(3);
    const [first, second] = world.pods;
    if (second) world.change(second, { isReady: false });
    world.replicas = 1;
    expect(world.plan().deletions).toMatchObject([
      { pod: { uid: second?.uid }, why: 'Surplus' },
      { pod: { uid: world.pods[2]?.uid } },
    ]);
    world.act();
    expect(world.live).toMatchObject([{ uid: first?.uid }]);
  });
});

describe('a rollout on the same bases', () => {
  it('never has fewer available than replicas, nor more than the surge above', () => {
    const world = settled();
    world.use(V2);
    let most = 0;
    for (let step = 0; step < 20; step++) {
      world.step();
      expect(world.available.length).toBeGreaterThanOrEqual(3);
      most = Math.max(most, world.live.length);
    }
    expect(most).toBe(4);
    expect(world.of('r1')).toEqual([]);
    expect(basesOf(world, 'r2')).toEqual(BASES);
  });

  it('puts each new Pod on the base of the Pod that it replaces, and deletes that one when the new one serves', () => {
    const world = settled();
    const places = new Map(world.pods.map(({ uid, nodeName }) => [uid, nodeName]));
    world.use(V2);
    const [creation] = world.plan().creations;
    expect(world.plan().deletions).toEqual([]);
    world.act();
    world.schedule();
    expect(world.of('r2')).toMatchObject([{ nodeName: creation?.place?.nodeName, replaces: creation?.place?.uid }]);
    expect(world.plan()).toEqual({ deletions: [], creations: [], waiting: 0 });
    world.install();
    expect(world.plan().deletions).toEqual([{ pod: creation?.place, why: 'Replaced' }]);
    run(world);
    for (const { replaces, nodeName } of world.of('r2')) {
      if (replaces !== undefined) expect(nodeName).toBe(places.get(replaces));
    }
  });

  it('takes the places of the oldest Pods first, one for each new Pod', () => {
    const world = settled({ limits: { maxSurge: 2 } });
    world.use(V2);
    const oldest = world.pods.slice(0, 2).map(({ uid }) => uid);
    expect(world.plan().creations.map(({ place }) => place?.uid)).toEqual(oldest);
    world.pods.reverse();
    expect(world.plan().creations.map(({ place }) => place?.uid)).toEqual(oldest);
  });

  it('keeps a Pod until the one in its place serves, also where some may be missing', () => {
    const world = settled({ limits: { maxUnavailable: 1 } });
    world.use(V2);
    world.act();
    world.schedule();
    expect(world.of('r2')).toHaveLength(1);
    expect(world.plan().deletions).toEqual([]);
  });

  it('lets one Pod go for each new one that serves, also where more may be missing', () => {
    const world = settled({ limits: { maxUnavailable: 1 } });
    world.use(V2);
    world.act();
    world.schedule();
    world.install();
    const [served] = world.of('r2');
    expect(world.plan().deletions).toMatchObject([{ pod: { uid: served?.replaces }, why: 'Replaced' }]);
  });

  it('lets none go for a new Pod in no place before that one serves, also where one may be missing', () => {
    const world = settled({ limits: { maxUnavailable: 1 } });
    world.use(V2);
    world.act();
    world.schedule();
    const [placeless] = world.of('r2');
    if (placeless) world.change(placeless, { replaces: 'gone' });
    expect(world.plan().deletions).toEqual([]);
    if (placeless) world.change(placeless, { isReady: true });
    expect(world.plan().deletions).toHaveLength(1);
  });

  it.each([
    [0, 1, 0],
    [1, 2, 1],
  ])(
    'with %i that may be missing and a new Pod that fails replaces, of %i old ones that fail, %i',
    (may, fail, gone) => {
      const world = settled({ limits: { maxUnavailable: may } });
      world.use(BROKEN);
      world.step();
      expect(world.of('r2')).toMatchObject([{ isReady: false }]);
      for (const pod of world.of('r1').slice(0, fail)) world.change(pod, { isReady: false });
      expect(world.plan().deletions).toHaveLength(gone);
    },
  );

  it('stops at the first Pod that never serves, and leaves every old one where it is', () => {
    const world = settled();
    world.use(BROKEN);
    expect(run(world)).toBe(3);
    expect(world.of('r1')).toHaveLength(3);
    expect(world.of('r2')).toHaveLength(1);
  });

  it('goes back when the template does, and needs no Pod that still serves the old one again', () => {
    const world = settled();
    world.use(BROKEN);
    run(world);
    const kept = world.of('r1').map(({ uid }) => uid);
    world.use(V1);
    expect(run(world)).toBe(3);
    expect(world.live.map(({ uid }) => uid)).toEqual(kept);
  });

  it('makes room first where a base cannot hold both, one at a time', () => {
    const world = settled();
    world.use(V1_ENV);
    expect(run(world)).toBe(2);
    expect(basesOf(world, 'r1b')).toEqual(BASES);
  });

  it.each([1, 3])(
    'with %i replicas takes no Pod back that has made room, whether its successor serves or not',
    (replicas) => {
      const world = settled({ replicas });
      world.use({ ...V1_ENV, isBroken: true });
      for (let step = 0; step < 20; step++) {
        world.act();
        expect(world.plan().creations.map(({ revision }) => revision)).not.toContain('r1');
        world.uninstall();
        world.schedule();
        world.install();
      }
      expect(world.of('r1b')).toHaveLength(1);
      expect(world.available).toHaveLength(replicas - 1);
      expect(world.plan()).toEqual({ deletions: [], creations: [], waiting: 0 });
    },
  );

  it('holds in a pause also when the template goes back to the last one that was everywhere', () => {
    const world = settled();
    world.use(V2);
    world.updatedLimit = 2;
    run(world);
    world.use(V1);
    world.updatedLimit = 1;
    expect(run(world)).toBe(3);
    expect([world.of('r1').length, world.of('r2').length]).toEqual([1, 2]);
    world.lose(world.of('r2')[0]);
    run(world);
    expect([world.of('r1').length, world.of('r2').length]).toEqual([2, 1]);
  });

  it('waits where somebody has written that none may be missing', () => {
    const world = settled({ limits: { isLossless: true } });
    world.use(V1_ENV);
    expect(run(world)).toBe(3);
    expect(world.of('r1')).toHaveLength(3);
    world.usable.add('d');
    expect(run(world)).toBe(3);
    expect(world.of('r1b')).toHaveLength(3);
  });

  it('without a surge vacates a place and fills it', () => {
    const world = settled({ limits: { maxSurge: 0, maxUnavailable: 1 } });
    world.use(V2);
    const { deletions, creations } = world.plan();
    expect(deletions).toMatchObject([{ why: 'Outdated' }]);
    expect(creations).toEqual([{ revision: 'r2', place: deletions[0]?.pod }]);
    expect(run(world)).toBe(2);
    expect(basesOf(world, 'r2')).toEqual(BASES);
  });

  it.each([{ placement: 'Any' }, { type: 'OnDelete' }, { type: 'Recreate' }] as const)(
    'takes no place where bases are not kept: %o',
    (limits) => {
      const world = settled({ limits: { maxUnavailable: 1, ...limits } });
      world.use(V2);
      for (const pod of world.pods) world.change(pod, { isDeleting: true });
      if (limits.type === 'Recreate') world.uninstall();
      const { creations } = world.plan();
      expect(creations).not.toEqual([]);
      for (const { place } of creations) expect(place).toBeUndefined();
    },
  );

  it('fills the place of a Pod that is on its way out, after a kill between both writes', () => {
    const world = settled({ limits: { maxSurge: 0, maxUnavailable: 1 } });
    world.use(V2);
    const pod = world.plan().deletions[0]?.pod;
    if (pod) world.change(pod, { isDeleting: true });
    expect(world.plan()).toMatchObject({ deletions: [], creations: [{ revision: 'r2', place: { uid: pod?.uid } }] });
  });

  it('lets go of a base that can take nothing more', () => {
    const world = settled();
    world.use(V2);
    world.act();
    const [pinned] = world.of('r2');
    world.usable.delete(pinned?.pinnedTo ?? '');
    expect(world.plan().deletions).toEqual([{ pod: pinned, why: 'Stranded' }]);
    world.act();
    expect(world.plan().creations[0]?.place?.nodeName).not.toBe(pinned?.pinnedTo);
  });

  it('leaves a Pod alone whose template names a base that can take nothing', () => {
    const world = settled();
    world.use(V2);
    world.act();
    const [pinned] = world.of('r2');
    if (pinned) world.change(pinned, { replaces: undefined });
    world.usable.delete(pinned?.pinnedTo ?? '');
    expect(world.plan().deletions.map(({ why }) => why)).not.toContain('Stranded');
  });

  it('takes Pods that do not serve before those that do', () => {
    const world = settled({ replicas: 3, limits: { maxUnavailable: 1 } });
    const failing = world.pods[1];
    if (failing) world.change(failing, { isReady: false });
    world.use(V2);
    expect(world.plan().deletions).toMatchObject([{ pod: { uid: failing?.uid }, why: 'Outdated' }]);
    run(world);
    expect(basesOf(world, 'r2')).toEqual(BASES);
  });
});

describe('a base', () => {
  const sharing = (...modules: string[]) => ({
    modules: modules.map((text) => {
      const [name = '', version = '', content = ''] = text.split(':');
      return { name, version, content };
    }),
    labels: {},
    exclusions: [],
    isOnlyVersion: false,
  });

  it('cannot have two contents of one version, though the Pods have other modules too', () => {
    expect(cannotShare(sharing('a:1:x', 'b:1:x'), sharing('b:1:y', 'c:1:x'))).toBe(true);
    expect(cannotShare(sharing('a:1:x', 'b:1:x'), sharing('b:1:x', 'c:1:x'))).toBe(false);
    expect(cannotShare(sharing('a:1:x', 'b:1:x'), sharing('b:2:y', 'c:1:x'))).toBe(false);
  });

  it('can have the Pods of one template, though the API server drops from Pods what is empty', () => {
    const container = { name: 'a', image: 'https://repo.example/a.jar' };
    const variable = { name: 'BIZ_VERSION', value: '1' };
    const template = sharingOf({}, {
      containers: [{ ...container, args: [], env: [variable, { name: 'EMPTY', value: '' }] }],
    } as PodObject['spec']);
    const of = (env: EnvVar[]): BaseSharing =>
      sharingOf({}, { containers: [{ ...container, env }] } as PodObject['spec']);
    expect(cannotShare(of([variable, { name: 'EMPTY' }]), template)).toBe(false);
    expect(cannotShare(of([variable, { name: 'EMPTY', value: 'no' }]), template)).toBe(true);
    expect(cannotShare(of([variable]), template)).toBe(true);
  });

  it('has one version where either Pod asks for that', () => {
    const only = { ...sharing('b:2:y'), isOnlyVersion: true };
    expect(cannotShare(sharing('a:1:x', 'b:1:x'), only)).toBe(true);
    expect(cannotShare(only, sharing('a:1:x', 'b:1:x'))).toBe(true);
    expect(cannotShare(only, sharing('a:1:x'))).toBe(false);
  });
});

describe('a rollout that is limited', () => {
  it('replaces as many as its batch, and makes others from the old template', () => {
    const world = settled();
    world.use(V2);
    world.updatedLimit = 1;
    run(world);
    expect([world.of('r1').length, world.of('r2').length]).toEqual([2, 1]);
    const [old] = world.of('r1');
    if (old) world.change(old, { isDeleting: true });
    run(world);
    expect([world.of('r1').length, world.of('r2').length]).toEqual([2, 1]);
    world.updatedLimit = 3;
    expect(run(world)).toBe(3);
    expect(world.of('r2')).toHaveLength(3);
  });

  it('with too many Pods deletes the youngest old one, not the new one', () => {
    const world = settled();
    world.use(V2);
    world.updatedLimit = 1;
    run(world);
    const youngest = world.of('r1').at(-1);
    world.replicas = 1;
    expect(world.plan().deletions).toEqual([{ pod: youngest, why: 'Surplus' }]);
  });

  it('deletes an old Pod beyond the replicas, not the new one that uses the surge', () => {
    const world = settled({ limits: { maxSurge: 2 } });
    world.use(V2);
    world.updatedLimit = 1;
    world.act();
    const youngest = world.of('r1').at(-1);
    world.replicas = 2;
    expect(world.plan().deletions).toEqual([{ pod: youngest, why: 'Surplus' }]);
  });

  it('leaves deletion to people with OnDelete', () => {
    const world = settled({ limits: { type: 'OnDelete' } });
    world.use(V2);
    expect(world.plan()).toEqual({ deletions: [], creations: [], waiting: 0 });
    const [old] = world.pods;
    if (old) world.change(old, { isDeleting: true });
    run(world);
    expect([world.of('r1').length, world.of('r2').length]).toEqual([2, 1]);
  });

  it('has nothing of two templates at a time with Recreate', () => {
    const world = settled({ limits: { type: 'Recreate' } });
    world.use(V2);
    world.act();
    expect(world.live).toEqual([]);
    expect(world.plan()).toEqual({ deletions: [], creations: [], waiting: 0 });
    run(world);
    expect(basesOf(world, 'r2')).toEqual(BASES);
  });
});

describe('a version that never serves', () => {
  const SIX = ['a', 'b', 'c', 'd', 'e', 'f'];

  /** Stuck with as many new Pods as it may try. */
  function stuck(
    options: Partial<ConstructorParameters<typeof RolloutWorld>[0]> = {},
    template = BROKEN,
  ): RolloutWorld {
    const world = settled({ bases: SIX, replicas: 6, limits: { maxUnavailable: 1 }, hasOneActive: true, ...options });
    world.use(template);
    run(world);
    return world;
  }

  it.each<[string, { limits?: Partial<RolloutLimits> }]>([
    ['a rolling update', {}],
    ['batches', { limits: { type: 'Batch' as const, maxUnavailable: 1 } }],
    ['the scheduler as the one who chooses bases', { limits: { placement: 'Any' as const, maxUnavailable: 1 } }],
    ['no Pod that may be missing', { limits: { maxUnavailable: 0, isLossless: true } }],
  ])('with %s loses one old Pod after the other, and each comes back as the old version', (_what, options) => {
    const world = stuck(options);
    const promised = options.limits?.isLossless ? 6 : 5;
    for (let lost = 0; lost < 8; lost++) {
      world.lose(world.of('r1')[lost % 3]);
      run(world);
      expect(world.available.length).toBeGreaterThanOrEqual(promised);
      expect(world.of('r1')).toEqual(world.available);
    }
  });

  it('is tried by as many Pods as surge and missing ones together', () => {
    const world = stuck({ limits: { maxSurge: 2, maxUnavailable: 2, placement: 'Any' } });
    expect([world.of('r1').length, world.of('r2').length]).toEqual([4, 4]);
  });

  it('stays where it is when it is stopped, and a larger number of Pods has the old version', () => {
    const world = stuck({ bases: BASES, replicas: 2, limits: { maxUnavailable: 0 } });
    world.updatedLimit = 1;
    world.replicas = 3;
    run(world);
    expect(world.available).toHaveLength(3);
    expect(world.of('r2')).toHaveLength(1);
  });

  it('gives way where it has the only base that a lost Pod could have', () => {
    const world = stuck({ limits: { maxUnavailable: 1, maxSurge: 0 } }, { ...BROKEN, isExclusive: true });
    const [tried] = world.of('r2');
    expect([world.available.length, world.of('r2').length]).toEqual([5, 1]);
    const lost = world.of('r1')[0];
    world.loseBase(lost?.nodeName ?? '');
    run(world);
    expect(world.of('r1')).toHaveLength(5);
    expect(world.available.map(({ nodeName }) => nodeName)).toContain(tried?.nodeName);
  });

  it('shares its base with a lost Pod where that can be', () => {
    const world = stuck({ limits: { maxUnavailable: 1, maxSurge: 0 } });
    const [tried] = world.of('r2');
    world.loseBase(world.of('r1')[0]?.nodeName ?? '');
    run(world);
    expect(world.available).toHaveLength(5);
    expect(world.of('r2')).toEqual([tried]);
    expect(world.available.map(({ nodeName }) => nodeName)).toContain(tried?.nodeName);
  });

  it('that no base fits takes nobody away, and is everywhere when bases of it come', () => {
    const world = stuck({}, { ...V2, fits: (base) => base.startsWith('new') });
    expect(world.available).toHaveLength(6);
    for (const base of SIX) world.usable.add(`new-${base}`);
    run(world);
    expect(world.of('r2').filter(({ isReady }) => isReady)).toHaveLength(6);
    expect(world.of('r1')).toEqual([]);
  });
});

describe('Pods of two versions', () => {
  const FOUR = ['a', 'b', 'c', 'd'];

  /** The first batch is done and waits. */
  function mixed(bases: readonly string[]): RolloutWorld {
    const world = settled({ bases, replicas: 4, hasOneActive: true });
    world.use(V2);
    world.updatedLimit = 2;
    run(world);
    expect(world.available).toHaveLength(4);
    return world;
  }

  it('take bases of their own when there are to be more of them', () => {
    const world = mixed([...FOUR, 'e', 'f']);
    world.replicas = 6;
    run(world);
    expect(world.available).toHaveLength(6);
    expect(new Set(world.available.map(({ nodeName }) => nodeName)).size).toBe(6);
  });

  it('wait where no such base is left, and displace nobody', () => {
    const world = mixed(FOUR);
    world.replicas = 6;
    run(world);
    expect(world.available).toHaveLength(4);
    expect(world.live).toHaveLength(4);
    expect(world.plan().waiting).toBe(2);
    world.usable.add('e');
    run(world);
    expect([world.available.length, world.plan().waiting]).toEqual([5, 1]);
  });

  it('part where one has displaced the other, as soon as a base is free', () => {
    const world = mixed(FOUR);
    const [old] = world.of('r1');
    const [updated] = world.of('r2');
    if (old && updated) world.change(old, { nodeName: updated.nodeName, isReady: false, isDeactivated: true });
    expect(world.plan().deletions).toEqual([{ pod: expect.objectContaining({ uid: old?.uid }), why: 'Displaced' }]);
    run(world);
    expect(world.available).toHaveLength(4);
  });
});

describe('a hand-over on one base', () => {
  /** The base has made the new version active; neither Pod is Ready for the moment. */
  function handingOver(limits: Partial<RolloutLimits> = {}) {
    const world = settled({ hasOneActive: true, limits });
    world.use(V2);
    world.act();
    world.schedule();
    const [successor] = world.of('r2');
    const former = world.pods.find(({ uid }) => uid === successor?.replaces);
    if (!successor || !former) throw new Error('no pair');
    world.change(former, { isReady: false, isDeactivated: true });
    return { world, successor, former };
  }

  it('makes neither of them surplus', () => {
    const { world, successor, former } = handingOver();
    expect(world.plan()).toEqual({ deletions: [], creations: [], waiting: 0 });
    world.replicas = 2;
    const deleted = world.plan().deletions.map(({ pod }) => pod.uid);
    expect(deleted).toContain(former.uid);
    expect(deleted).not.toContain(successor.uid);
  });

  it('loses a new Pod that has never run before an old one that is coming back', () => {
    const { world, successor, former } = handingOver();
    // Its base makes its version active again, after a rollout that was stopped before.
    world.change(former, { isReady: false, isDeactivated: false });
    world.updatedLimit = 0;
    expect(world.plan().deletions).toEqual([{ pod: expect.objectContaining({ uid: successor.uid }), why: 'Surplus' }]);
  });

  it('goes back when the template does, also where no Pod may be missing', () => {
    const { world, successor, former } = handingOver();
    world.install();
    expect(world.available.map(({ uid }) => uid)).toContain(successor.uid);
    world.use(V1);
    expect(world.plan().deletions).toEqual([{ pod: expect.objectContaining({ uid: successor.uid }), why: 'Outdated' }]);
    run(world);
    expect(world.available).toHaveLength(3);
    expect(world.available.map(({ uid }) => uid)).toContain(former.uid);
    expect(world.of('r2')).toEqual([]);
  });
});

describe('limits', () => {
  it('round surge up and missing Pods down', () => {
    expect(limitsOf({}, 3)).toMatchObject({
      type: 'RollingUpdate',
      placement: 'SameBase',
      maxSurge: 1,
      maxUnavailable: 0,
    });
    expect(limitsOf({}, 8)).toMatchObject({ maxSurge: 2, maxUnavailable: 2, isLossless: false });
    expect(limitsOf({ rollingUpdate: { maxSurge: '10%', maxUnavailable: 2 } }, 11)).toMatchObject({
      maxSurge: 2,
      maxUnavailable: 2,
    });
  });

  it('let one Pod be missing where both come to nothing', () => {
    expect(limitsOf({ rollingUpdate: { maxSurge: 0 } }, 3)).toMatchObject({ maxSurge: 0, maxUnavailable: 1 });
  });

  it('know who has written that none may be missing', () => {
    expect(limitsOf({ rollingUpdate: { maxUnavailable: 0 } }, 3).isLossless).toBe(true);
    expect(limitsOf({ rollingUpdate: { maxUnavailable: '0%' } }, 3).isLossless).toBe(true);
    expect(limitsOf({ rollingUpdate: { maxUnavailable: '10%' } }, 3)).toMatchObject({
      maxUnavailable: 0,
      isLossless: false,
    });
  });
});

describe('whatever happens in a rollout', () => {
  const limits = fc
    .record({
      placement: fc.constantFrom('SameBase' as const, 'Any' as const),
      maxSurge: fc.integer({ min: 0, max: 3 }),
      maxUnavailable: fc.integer({ min: 0, max: 3 }),
    })
    .filter(({ maxSurge, maxUnavailable }) => maxSurge + maxUnavailable > 0);
  const templates: Template[] = [V1, V2, V1_ENV, { revision: 'r3', version: '3', isExclusive: true }];
  const happening = fc.oneof(
    { weight: 2, arbitrary: fc.constant('act' as const) },
    fc.constantFrom('uninstall' as const, 'schedule' as const, 'install' as const),
    fc.record({ template: fc.constantFrom(...templates) }),
    fc.record({ replicas: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ kill: fc.nat(5) }),
  );

  function happen(world: RolloutWorld, what: typeof happening extends fc.Arbitrary<infer T> ? T : never): void {
    if (what === 'act') act(world);
    else if (typeof what === 'string') world[what]();
    else if ('template' in what) world.use(what.template);
    else if ('replicas' in what) world.replicas = what.replicas;
    else {
      const pod = world.pods[what.kill % Math.max(1, world.pods.length)];
      if (pod) world.change(pod, { isDeleting: true });
    }
  }

  function act(world: RolloutWorld): void {
    const { available, live, replicas, limits: strategy, hasExcluded } = world;
    world.act();
    const mayMiss = hasExcluded ? Math.max(1, strategy.maxUnavailable) : strategy.maxUnavailable;
    expect(world.available.length).toBeGreaterThanOrEqual(Math.min(available.length, replicas - mayMiss));
    expect(world.live.length).toBeLessThanOrEqual(Math.max(live.length, replicas + strategy.maxSurge));
  }

  it('no step of its own takes more than it may, and it ends with the newest template everywhere', () => {
    fc.assert(
      fc.property(
        limits,
        fc.integer({ min: 4, max: 6 }),
        fc.array(happening, { maxLength: 60 }),
        (drawn, count, all) => {
          const bases = Array.from({ length: count }, (_, index) => `base-${index}`);
          const world = RolloutWorld.settled({ bases, replicas: 3, limits: drawn });
          for (const what of all) happen(world, what);
          for (let step = 0; step < 80; step++) {
            act(world);
            world.uninstall();
            world.schedule();
            world.install();
          }
          expect(world.plan()).toEqual({ deletions: [], creations: [], waiting: 0 });
          const revisions = world.available.map(({ labels }) => labels[REVISION_LABEL]);
          expect(revisions).toEqual(Array.from({ length: world.replicas }, () => world.template.revision));
        },
      ),
      { numRuns: 300 },
    );
  });
});
