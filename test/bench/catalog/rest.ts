import { setTimeout as delay } from 'node:timers/promises';
import { byVerbAndResource } from '../../../samples/control-plane/request-counts.ts';
import { residentMibOf } from '../../support/cost.ts';
import { metricOf } from '../../support/metric-text.ts';
import { benchCase } from '../suite.ts';
import { type CatalogWorld, withoutLeases } from './catalog-world.ts';
import { costing } from './cost.ts';
import type { CatalogStage } from './stage.ts';

const REST_MS = 60_000;

/** A minute in which nothing happens, with the catalog. */
export const REST = benchCase({
  name: 'rest',
  figures: {
    requests: {
      text: 'requests of catalog and rollout in a minute, without those of Leases and watches',
      unit: '',
      atMost: 0,
    },
    ownRequests: { text: 'all of their requests by their own metric', unit: '' },
    leases: { text: 'those of Leases', unit: '' },
    watches: { text: 'watches that were opened', unit: '' },
    catalogCpu: { text: 'CPU of the catalog, of one core', unit: '%' },
    rolloutCpu: { text: 'CPU of rollout, of one core', unit: '%' },
    catalogMemory: { text: 'memory of the catalog', unit: 'MiB' },
    rolloutMemory: { text: 'memory of rollout', unit: 'MiB' },
  },

  async prepare(stage: CatalogStage) {
    await stage.settled('catalog');
  },

  watched: ({ world }) => [{ name: 'catalog', pid: world.subject.pid }],

  async measure({ world }) {
    const [since, before] = [await world.world.controlPlane.mark(), await ownRequestsOf(world)];
    const { values, seconds } = await costing(world, () => delay(REST_MS));
    const after = await ownRequestsOf(world);
    const all = await world.allRequestsSince(since);
    const requests = all.withoutWatches();
    return {
      values: {
        requests: withoutLeases(requests).count(),
        ownRequests: after - before,
        leases: requests.count({ resource: 'leases' }),
        watches: all.count({ verb: 'watch' }),
        catalogCpu: (100 * values.subjectCpu) / seconds,
        rolloutCpu: (100 * values.rolloutCpu) / seconds,
        catalogMemory: residentMibOf(world.catalog.process),
        rolloutMemory: residentMibOf(world.rollout.process),
      },
      details: { requests: byVerbAndResource(all) },
    };
  },
});

async function ownRequestsOf({ catalog, rollout }: CatalogWorld): Promise<number> {
  const texts = await Promise.all([catalog, rollout].map(({ process }) => process.metrics()));
  return texts.reduce((sum, text) => sum + metricOf(text, 'rest_client_requests_total'), 0);
}
