import type { RequestCounts } from '../../../samples/control-plane/request-counts.ts';
import { commandsOfEach } from '../at-rest.ts';
import { benchCase } from '../suite.ts';
import { COST_FIGURES, costing, WRITE_FIGURES, writesEach } from './cost.ts';
import { monotonicMs } from './monotonic.ts';
import type { CatalogStage } from './stage.ts';

/** Marks from which the writes of a fill count. */
const marks = new WeakMap<CatalogStage, RequestCounts>();

/** All Modules are created at once, and get their Pods. */
export const FILL = benchCase({
  name: 'fill',
  figures: {
    ready: { text: 'from the first Module until all are Ready', unit: 's' },
    created: { text: 'until the API server has all Modules', unit: 's' },
    composed: { text: 'until all have their workload', unit: 's' },
    ...COST_FIGURES,
    ...WRITE_FIGURES,
  },

  async prepare(stage: CatalogStage) {
    const world = await stage.open();
    await world.untilQuiet();
    marks.set(stage, await world.world.controlPlane.mark());
  },

  watched: ({ world }) => [{ name: 'catalog', pid: world.subject.pid }],

  async measure(stage) {
    const startedAt = monotonicMs();
    const { result, values, details } = await costing(stage.world, () => stage.fill());
    const since = (at: number): number => (at - startedAt) / 1000;
    const { readyAt, createdAt, composedAt } = result;
    return {
      values: { ready: since(readyAt), created: since(createdAt), composed: since(composedAt), ...values },
      details,
    };
  },

  async afterwards(stage) {
    const { world } = stage;
    await world.untilQuiet();
    const mark = marks.get(stage);
    if (!mark) throw new Error('fill was not prepared');
    const { values, details } = writesEach(await world.requestsSince(mark), world.modules.length);
    const commands = commandsOfEach(await world.fleet.historySummary(0));
    return { values, details: { ...details, commandsOfBases: [Math.min(...commands), Math.max(...commands)] } };
  },
});
