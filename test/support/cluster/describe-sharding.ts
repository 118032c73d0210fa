import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../eventually.ts';
import { Cluster, type TunnelKind } from './cluster.ts';
import { countsOf, sum } from './lease-waits.ts';
import type { RollingDeployment } from './roller.ts';
import { checked, type FaultOf, onBases, play } from './scenario.ts';
import { scenariosOf } from './scenarios.ts';
import { createKeptPods, schedulable, settled } from './workload.ts';

const REPLICAS = 3;
const FIRST_BASES = 30;
const ROLLING = 3;
const SCENARIO_TIMEOUT_MS = 300_000;

export interface ShardingOptions {
  readonly tunnels: readonly TunnelKind[];
  readonly faultsOf: readonly FaultOf[];
  /** In all. Default 50. */
  readonly bases?: number;
  /** They come all at once. Default: 30 of them come first, within 10 s. */
  readonly comesAtOnce?: true;
  /** On that many of them Pods roll, one on each. Default: on all. */
  readonly rollingBases?: number;
  /** Pods on each base beside the one that rolls. Default 19. */
  readonly keptPerBase?: number;
}

/** For faults that need no more. */
export const SMALL = { bases: 36, comesAtOnce: true, rollingBases: 18, keptPerBase: 4 } as const;

/** What N replicas that share their bases promise. One world: one fault after the other. */
export function describeSharding(options: ShardingOptions): void {
  const { tunnels, faultsOf, bases: count = 50, rollingBases = count, keptPerBase = 19 } = options;
  const firstBases = options.comesAtOnce ? 0 : FIRST_BASES;
  const modules = keptPerBase * count + rollingBases;
  let cluster: Cluster;
  const rolling: RollingDeployment[] = [];

  beforeAll(async () => {
    cluster = await Cluster.start(tunnels);
    for (let index = 0; index < REPLICAS; index++) await (await cluster.add(`controller-${index}`)).start();
    for (const { process } of cluster.replicas) await process.line(({ msg }) => msg === 'tunnel is up');
  });

  afterAll(() => cluster?.stop());

  describe(`${REPLICAS} replicas over ${tunnels.join(' and ')}`, () => {
    if (firstBases > 0) {
      it(`A-004-7: ${FIRST_BASES} bases that come within 10 s are shared, 7 to 13 each`, async ({ annotate }) => {
        const fleets = await cluster.startFleets({ count: FIRST_BASES, announce: false });
        const startedAt = performance.now();
        for (const [index, base] of fleets.flatMap(({ bases }) => bases).entries()) {
          await delay(Math.max(0, (index * 9_500) / FIRST_BASES - (performance.now() - startedAt)));
          base.announce();
        }
        await eventually(() => expect(sum(countsOf(cluster, cluster.replicas))).toBe(FIRST_BASES), 20_000);
        const counts = countsOf(cluster, cluster.replicas);
        await annotate(`held by each: ${counts.join()}`);
        for (const count of counts) {
          expect(count).toBeGreaterThanOrEqual(7);
          expect(count).toBeLessThanOrEqual(13);
        }
      });
    }

    it(`${count} bases with ${modules} modules are shared`, async () => {
      await cluster.startFleets({ count: count - firstBases, identityPrefix: 'more-' });
      await schedulable(cluster, count);
      const bases = cluster.fleets.flatMap((fleet) => fleet.bases.map(({ identity }) => identity));
      await createKeptPods(cluster, bases, keptPerBase);
      const spread = bases.filter((_, at) => (at * rollingBases) % count < rollingBases);
      for (let index = 0; index < ROLLING; index++) {
        const share = spread.filter((_, at) => at % ROLLING === index);
        const deployment = onBases(cluster, `rolling${index}`, share);
        rolling.push(deployment);
        await deployment.next();
      }
      await settled(cluster, 150_000);
      expect((await checked(cluster)).report).toBe('');
    }, 200_000);

    for (const scenario of scenariosOf({ tunnels, faultsOf })) {
      it(
        scenario.name,
        async ({ annotate }) => {
          const { notes, failure } = await play(cluster, scenario, rolling);
          for (const note of notes) await annotate(note);
          if (failure) throw failure;
        },
        SCENARIO_TIMEOUT_MS,
      );
    }
  });
}
