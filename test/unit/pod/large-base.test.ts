import { afterEach, describe, expect, it } from 'vitest';
import type { ModuleRecord } from '../../../src/module/module-record.ts';
import { type LedgerView, planBase } from '../../../src/pod/base-plan.ts';
import { podEventsOf } from '../../../src/pod/pod-events.ts';
import { computePodStatus } from '../../../src/pod/pod-status.ts';
import { sleepMsOf } from '../../../src/pod/pre-stop.ts';
import type { VPod } from '../../../src/pod/vpod.ts';
import { makeLedger, makeList, makePod, type PodOptions, runningStatus } from '../../support/builders.ts';
import { CoreRig } from '../../support/core-rig.ts';

let rig: CoreRig | undefined;

afterEach(() => rig?.stop());

type KeyOf = (index: number) => string;

/** A base with so many Pods that run, and how often a plan reads one of their records. */
function plannedReads(count: number, keyOf: KeyOf, more: Parameters<typeof makePod>[0] = {}): number {
  const pods: VPod[] = Array.from({ length: count }, (_, index) => {
    const status = { phase: 'Running', containerStatuses: [runningStatus(keyOf(index))] };
    return makePod({ name: `p${index}`, uid: `u${index}`, modules: [keyOf(index)], status, ...more });
  });
  const ledger = makeLedger();
  ledger.takeList(makeList(...pods.map((_, index) => keyOf(index))), {}, 0);
  let reads = 0;
  const counted = (record: ModuleRecord): ModuleRecord =>
    new Proxy(record, {
      get: (target, name) => {
        reads++;
        return Reflect.get(target, name);
      },
    });
  const view: LedgerView = {
    isKnown: true,
    askedAt: 0,
    installDeadlineMs: 300_000,
    activatesNew: undefined,
    get: (key) => {
      const record = ledger.get(key);
      return record && counted(record);
    },
    records: () => [...ledger.records()].map(counted),
  };
  const sleepUntil = new Map<string, number>();
  const ownerOf = (namespace: string): string => namespace;
  const rest = { pendingRemovals: new Map(), unadmitted: new Map(), sleepUntil, unwritten: new Set<string>(), ownerOf };
  planBase({ ...rest, pods, ledger: view, canSwitch: true, now: 1 });
  return reads;
}

describe('the work of one plan grows with the Pods of the base', () => {
  const oneName: KeyOf = (index) => `biz:${index}`;
  const ownNames: KeyOf = (index) => `biz${index}:1`;

  it.each<[string, KeyOf, Parameters<typeof makePod>[0]]>([
    ['of modules of their own', ownNames, {}],
    ['of versions of one module', oneName, {}],
    ['of versions that all replace each other', oneName, { strategy: 'uninstallThenInstall' }],
    ['that leave', ownNames, { deleting: true }],
  ])('(%s), not with their square', (_, keyOf, more) => {
    const [few, many] = [plannedReads(200, keyOf, more), plannedReads(1_600, keyOf, more)];
    // Sorting costs a little more than eight times as much.
    expect(many / few).toBeLessThan(14);
  });
});

/** How often a plan and what follows from it look at the name of a container's status, of one Pod with so many. */
function nameReads(count: number): number {
  const keys = Array.from({ length: count }, (_, index) => `biz${index}:1`);
  let reads = 0;
  const statuses = keys.map((key) => {
    const { name, ...status } = runningStatus(key);
    return {
      ...status,
      get name() {
        reads++;
        return name;
      },
    };
  });
  const pod = makePod({ modules: keys, sleepSeconds: 1, status: { phase: 'Running' } });
  const large: VPod = { ...pod, status: { ...pod.status, containerStatuses: statuses } };
  const ledger = makeLedger();
  ledger.takeList(makeList(...keys), {}, 0);
  const plan = planBase({
    pods: [large, makePod({ namespace: 'other', modules: ['other:1'] })],
    ledger,
    canSwitch: true,
    pendingRemovals: new Map(),
    unadmitted: new Map(),
    sleepUntil: new Map(),
    unwritten: new Set(),
    ownerOf: (namespace) => namespace,
    now: 1,
  });
  const views = plan.views.get(large) ?? [];
  const base = { identity: 'b1', ip: '10.0.0.1', isRoutable: true, unreachable: undefined };
  const next = computePodStatus({ pod: large, views, base, now: 1, nowText: '2026-01-01T00:00:00Z' });
  podEventsOf(large, next, views);
  sleepMsOf(large, 0);
  return reads;
}

it('the work of one plan grows with the containers of a Pod, not with their square', () => {
  expect(nameReads(300) / nameReads(30)).toBeLessThan(12);
});

describe('a base whose syncs take long', () => {
  const COST_MS = 20;

  /** How many syncs a Pod every 10 ms costs in a second, on a base with these Pods. */
  async function syncsWith(pods: readonly PodOptions[]): Promise<number> {
    rig = new CoreRig({ maxCommands: 10_000 });
    await rig.start();
    await rig.foundBase('b1');
    for (const pod of pods) rig.addPod(pod);
    await rig.pass(30_000);
    const { clock, podInformer } = rig;
    let syncs = 0;
    const { byIndex } = podInformer;
    podInformer.byIndex = (index, value) => {
      syncs++;
      clock.skip(COST_MS);
      return byIndex.call(podInformer, index, value);
    };
    for (let index = 0; index < 100; index++) {
      rig.pods.enqueue('vnode.b1');
      await rig.pass(10);
    }
    return syncs;
  }

  const podsOf = (count: number): PodOptions[] =>
    Array.from({ length: count }, (_, index) => ({ name: `p${index}`, modules: [`biz${index}:1`] }));
  const containers = Array.from({ length: 300 }, (_, index) => ({ name: `c${index}`, image: 'a.jar' }));

  it.each([
    ['has many Pods', podsOf(300)],
    ['has one Pod with many containers that name no version', [{ spec: { containers } }]],
  ])('is left alone for four times as long, when it %s', async (_, pods) => {
    const syncs = await syncsWith(pods);
    expect(syncs).toBeGreaterThan(10);
    expect(syncs).toBeLessThan(23);
  });

  it('is synced at once, when it is small', async () => {
    expect(await syncsWith(podsOf(3))).toBe(100);
  });
});
