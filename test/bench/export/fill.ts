import { residentMibOf } from '../../support/cost.ts';
import { benchCase } from '../suite.ts';
import { EXPORTS, type ExportWorld } from './export-world.ts';
import { BACKENDS } from './objects.ts';
import type { ExportStage } from './stage.ts';

const WRITTEN_WITHIN_MS = 300_000;

/** A first process comes to a full cluster without ExportServices, and then a second one. */
export const FILL = benchCase({
  name: 'fill',
  figures: {
    fed: { text: 'from the start of a replica until its feed answers with everything', unit: 's' },
    fedSecond: { text: 'the same of a second one, while nothing changes', unit: 's' },
    written: { text: 'from the start of the first one until every ExportService has its status', unit: 's' },
    leaderMemory: { text: 'memory of the leader then', unit: 'MiB' },
    followerMemory: { text: 'memory of the other replica then', unit: 'MiB' },
  },

  async prepare(stage: ExportStage) {
    const world = await stage.open();
    if (world.living.length > 0) throw new Error('fill needs a cluster without a replica');
  },

  watched: (stage) => stage.world.living,

  async measure({ world }) {
    const startedAt = performance.now();
    const secondsSince = (since: number): number => (performance.now() - since) / 1000;
    const first = await world.launch();
    const writing = untilWritten(world);
    // Told below; until then nobody waits for it.
    writing.catch(() => {});
    await world.untilFed(first);
    const fed = secondsSince(startedAt);
    await writing;
    const written = secondsSince(startedAt);
    const secondAt = performance.now();
    const second = await world.launch();
    await world.untilFed(second);
    const fedSecond = secondsSince(secondAt);
    const [leaderMemory, followerMemory] = [residentMibOf(first.pid), residentMibOf(second.pid)];
    return { values: { fed, fedSecond, written, leaderMemory, followerMemory } };
  },
});

/** Every Service has an ExportService with all of its backends. */
async function untilWritten({ world: { admin }, services }: ExportWorld): Promise<void> {
  const written = new Set<string>();
  const all = Promise.withResolvers<void>();
  const watch = await admin.watch(`${EXPORTS}?resourceVersion=0`, ({ object: { metadata, status } }) => {
    if (status?.summary.backends === BACKENDS) written.add(`${metadata.namespace}/${metadata.name}`);
    if (written.size === services.length) all.resolve();
  });
  const timer = setTimeout(
    () => all.reject(new Error(`${written.size} of ${services.length} ExportServices are written`)),
    WRITTEN_WITHIN_MS,
  );
  try {
    await all.promise;
  } finally {
    clearTimeout(timer);
    watch.stop();
  }
}
