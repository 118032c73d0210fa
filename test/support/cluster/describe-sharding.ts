import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../eventually.ts';
import { Cluster, type TunnelKind } from './cluster.ts';
import { countsOf, sum } from './lease-waits.ts';
import type { RollingDeployment } from './roller.ts';
import { checked, onBases, play } from './scenario.ts';
import { SCENARIOS } from './scenarios.ts';
import { createKeptPods, schedulable, settled } from './workload.ts';

const REPLICAS = 3;
const FIRST_BASES = 30;
const BASES = 50;
/** With those that roll, 20 on each base. */
const KEPT_PER_BASE = 19;
const ROLLING = 3;
const SCENARIO_TIMEOUT_MS = 300_000;

/** What N replicas that share their bases promise, over one tunnel. One world: one fault after the other. */
export function describeSharding(tunnel: TunnelKind): void {
  let cluster: Cluster;
  const rolling: RollingDeployment[] = [];

  beforeAll(async () => {
    cluster = await Cluster.start(tunnel);
    for (let index = 0; index < REPLICAS; index++) await (await cluster.add(`controller-${index}`)).start();
    for (const { process } of cluster.replicas) await process.line(({ msg }) => msg === 'tunnel is up');
  });

  afterAll(() => cluster?.stop());

  describe(`${REPLICAS} replicas over ${tunnel}`, () => {
    it(`A-004-7: ${FIRST_BASES} bases that come within 10 s are shared, 7 to 13 each`, async ({ annotate }) => {
      const fleet = await cluster.startFleet({ count: FIRST_BASES, announce: false });
      const startedAt = performance.now();
      for (const [index, base] of fleet.bases.entries()) {
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

    it(`and so are ${BASES}, with 1,000 modules`, async () => {
      await cluster.startFleet({ count: BASES - FIRST_BASES, identityPrefix: 'more-' });
      await schedulable(cluster, BASES);
      const bases = cluster.fleets.flatMap((fleet) => fleet.bases.map(({ identity }) => identity));
      await createKeptPods(cluster, bases, KEPT_PER_BASE);
      for (let index = 0; index < ROLLING; index++) {
        const share = bases.filter((_, at) => at % ROLLING === index);
        const deployment = onBases(cluster, `rolling${index}`, share);
        rolling.push(deployment);
        await deployment.next();
      }
      await settled(cluster, 150_000);
      expect((await checked(cluster)).report).toBe('');
    }, 200_000);

    for (const scenario of SCENARIOS.filter(({ over = tunnel }) => over === tunnel)) {
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
