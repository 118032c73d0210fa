import { setTimeout as delay } from 'node:timers/promises';
import { benchCase } from '../suite.ts';
import { countsAt, heldSince } from './lease-history.ts';
import { REPLICAS } from './replica-world.ts';
import { ratioOf } from './shares.ts';
import type { ShardingStage } from './stage.ts';

const LOOK_AFTER_MS = 30_000;
const CLAIMS = 'module_controller_lease_claims_total';

/** All bases announce themselves at one moment. */
export const BALANCE = benchCase({
  name: 'balance',
  figures: {
    ratio: { text: 'most over fewest leases of a replica 30 s after all bases came', unit: '', atMost: 1.15 },
    posts: { text: 'POST of a Lease for each base, by the audit log', unit: '', atMost: 1.2 },
    claims: { text: 'tries to take a lease for each base, by the metric', unit: '', atMost: 1.2 },
    heldAfter: { text: 'until every base had a leader', unit: 's' },
  },

  async prepare(stage: ShardingStage) {
    const replicas = await stage.open('mqtt');
    if (replicas.isAnnounced) throw new Error('balance needs bases that have said nothing yet');
    await replicas.scaleTo(REPLICAS);
  },

  watched: (stage) => stage.world('mqtt').living,

  async measure(stage) {
    const replicas = stage.world('mqtt');
    const { leases, bases, livingNames } = replicas;
    const mark = await replicas.world.controlPlane.mark();
    const since = Date.now();
    await replicas.announce();
    await delay(since + LOOK_AFTER_MS - Date.now());
    const held = countsAt(leases.history, livingNames, since + LOOK_AFTER_MS);
    const posts = (await replicas.requestsSince(mark)).of({ verb: 'create', resource: 'leases' });
    const results = ['ok', 'lost', 'error'] as const;
    const claims = await Promise.all(results.map((result) => replicas.metric(CLAIMS, `result="${result}"`)));
    return {
      values: {
        ratio: ratioOf(held),
        posts: posts.count() / bases,
        claims: claims.reduce((sum, count) => sum + count, 0) / bases,
        heldAfter: ((heldSince(leases.history, bases) ?? Number.NaN) - since) / 1000,
      },
      details: {
        held,
        posts: posts.entries().map(({ code, count }) => ({ code, count })),
        claims: Object.fromEntries(results.map((result, index) => [result, claims[index]])),
      },
    };
  },
});
