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
  /** In all; 30 of them come first. Default 50. */
  readonly bases?: number;
  /** Pods on each base beside the one that rolls. Default 19. */
  readonly keptPerBase?: number;
}

/** What N replicas that share their bases promise. One world: one fault after the other. */
export function describeSharding({ tunnels, faultsOf, bases: count = 50, keptPerBase = 19 }: ShardingOptions): void {
  let cluster: Cluster;
  const rolling: RollingDeployment[] = [];

  beforeAll(async () => {
    cluster = await Cluster.start(tunnels);
    for (let index = 0; index < REPLICAS; index++) await (await cluster.add(`controller-${index}`)).start();
    for (const { process } of cluster.replicas) await process.line(({ msg }) => msg === 'tunnel is up');
  });

  afterAll(() => cluster?.stop());

  describe(`${REPLICAS} replicas over ${tunnels.join(' and ')}`, () => {
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

    it(`and so are ${count}, with ${(keptPerBase + 1) * count} modules`, async () => {
      await cluster.startFleets({ count: count - FIRST_BASES, identityPrefix: 'more-' });
      await schedulable(cluster, count);
      const bases = cluster.fleets.flatMap((fleet) => fleet.bases.map(({ identity }) => identity));
      await createKeptPods(cluster, bases, keptPerBase);
      for (let index = 0; index < ROLLING; index++) {
        const share = bases.filter((_, at) => at % ROLLING === index);
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
