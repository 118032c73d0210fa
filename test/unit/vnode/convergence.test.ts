import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CoreRig } from '../../support/core-rig.ts';
import { runsOf } from '../../support/property-runs.ts';

const POD_NAMES = ['p1', 'p2', 'p3', 'p4'];
const BASES = ['b1', 'b2'];
const MODULES = ['biz1:1', 'biz2:1'];

type Trouble = (rig: CoreRig) => void;

const name = fc.constantFrom(...POD_NAMES);
const identity = fc.constantFrom(...BASES);
const key = fc.constantFrom(...MODULES);

const trouble: fc.Arbitrary<Trouble> = fc.oneof(
  fc.tuple(name, identity, key).map(([pod, base, module]) => (rig: CoreRig) => {
    if (!rig.api.pod(pod)) rig.addPod({ name: pod, node: `vnode.${base}`, modules: [module] });
  }),
  name.map((pod) => (rig: CoreRig) => void (rig.api.pod(pod) && rig.deletePod(pod))),
  name.map((pod) => (rig: CoreRig) => void (rig.api.pod(pod) && rig.api.drop('pod', pod))),
  identity.map((base) => (rig: CoreRig) => rig.restart(base)),
  fc
    .tuple(identity, key, fc.constantFrom('STOPPED' as const, 'BROKEN' as const))
    .map(([base, module, state]) => (rig: CoreRig) => {
      const modules = rig.bases.get(base)?.modules;
      if (modules?.has(module)) modules.set(module, state);
      rig.list(base);
    }),
  fc
    .tuple(
      identity,
      fc.constantFrom('isSilent' as const, 'answersLists' as const, 'answersCommands' as const),
      fc.boolean(),
    )
    .map(([base, field, value]) => (rig: CoreRig) => {
      Object.assign(rig.bases.get(base) ?? {}, { [field]: value });
    }),
  fc.constant((rig: CoreRig) => rig.linkDown()),
  fc.constant((rig: CoreRig) => rig.linkUp()),
  fc
    .tuple(
      fc.constantFrom('patch', 'post', 'delete'),
      fc.constantFrom(500, 409, 404, 429),
      fc.integer({ min: 1, max: 4 }),
    )
    .map(
      ([request, status, times]) =>
        (rig: CoreRig) =>
          rig.api.fail(request, status, times),
    ),
  fc.constantFrom('patch', 'post', 'delete').map((request) => (rig: CoreRig) => rig.api.loseAnswer(request)),
  fc.tuple(fc.constantFrom('node' as const, 'lease' as const), identity).map(([kind, base]) => (rig: CoreRig) => {
    if (rig.api.objects.has(`${kind} vnode.${base}`)) rig.api.drop(kind, `vnode.${base}`);
  }),
  fc.boolean().map((isPaused) => (rig: CoreRig) => {
    for (const informer of [rig.nodeInformer, rig.podInformer, rig.leaseInformer]) {
      if (isPaused) informer.isPaused = true;
      else informer.resume();
    }
  }),
);

function heal(rig: CoreRig): void {
  rig.api.heal();
  for (const informer of [rig.nodeInformer, rig.podInformer, rig.leaseInformer]) informer.resume();
  for (const base of rig.bases.values()) {
    Object.assign(base, { isSilent: false, answersLists: true, answersCommands: true });
  }
  rig.linkUp();
}

/** What the world looks like, and what it should look like. */
function outcomeOf(rig: CoreRig) {
  const living = POD_NAMES.filter((pod) => rig.api.pod(pod));
  const wanted = (base: string): string[] => {
    const pods = living.map((pod) => rig.api.pod(pod)).filter((pod) => pod?.spec.nodeName === `vnode.${base}`);
    const keys = pods.flatMap((pod) => pod?.spec.containers.map(({ name: biz }) => `${biz}:1 ACTIVATED`) ?? []);
    return [...new Set(keys)].sort();
  };
  return {
    is: {
      pods: living.map((pod) => `${pod} ${rig.podState(pod)}`),
      modules: BASES.map((base) => [...(rig.bases.get(base)?.modules ?? [])].map((entry) => entry.join(' ')).sort()),
      nodes: BASES.map((base) => rig.condition(`vnode.${base}`, 'Ready')),
      deleting: living.filter((pod) => rig.api.pod(pod)?.metadata.deletionTimestamp),
    },
    should: {
      pods: living.map((pod) => `${pod} Running True`),
      modules: BASES.map(wanted),
      nodes: BASES.map(() => 'True KubeletReady'),
      deleting: [],
    },
  };
}

it('whatever happens within a minute, all is as it should be once it is over', { timeout: 60_000 }, async () => {
  const troubles = fc.array(fc.tuple(trouble, fc.constantFrom(0, 100, 1_000, 4_000)), { minLength: 1, maxLength: 14 });
  await fc.assert(
    fc.asyncProperty(troubles, async (steps) => {
      const rig = new CoreRig();
      await rig.start();
      for (const base of BASES) await rig.foundBase(base);
      for (const [happen, ms] of steps) {
        happen(rig);
        await rig.pass(ms);
      }
      heal(rig);
      await rig.pass(700_000);
      const { is, should } = outcomeOf(rig);
      expect(is).toEqual(should);
      rig.tunnel.take();
      rig.api.take();
      await rig.pass(280_000);
      expect(rig.tunnel.take().filter((line) => /install/.test(line))).toEqual([]);
      expect(rig.api.take('patch pod')).toEqual([]);
      expect([...rig.store.values()].map(({ pendingRemovals }) => pendingRemovals.size)).toEqual([0, 0]);
      await rig.stop();
    }),
    { numRuns: runsOf(25) },
  );
});
