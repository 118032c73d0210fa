import type { RequestCounts } from '../../../samples/control-plane/request-counts.ts';
import { benchCase, type Figure } from '../suite.ts';
import type { Changes } from './catalog-world.ts';
import { COST_FIGURES, costing, WRITE_FIGURES, writesEach } from './cost.ts';
import { type Latencies, latenciesOf } from './latencies.ts';
import type { CatalogStage } from './stage.ts';

/** Code that has run often is compiled: the floor is a new process, and the catalog has filled the world. */
const WARM_UP_SECONDS = 5;
const TIMES_FLOOR = 2;

const FIGURES = {
  p99: { text: 'from the event of a Module to that of its workload, p99', unit: 'ms' },
  p50: { text: 'the same, p50', unit: 'ms' },
  max: { text: 'the same, longest', unit: 'ms' },
  sentP99: { text: 'from the request of the change to the event of the workload, p99', unit: 'ms' },
  sentP50: { text: 'the same, p50', unit: 'ms' },
  lost: { text: 'changes that never came to their workload', unit: '', atMost: 0 },
  overtaken: { text: 'changes that a later one of the same Module has overtaken', unit: '' },
  rate: { text: 'changes of Modules that the API server has taken', unit: '/s' },
  pace: { text: 'the same, of those that were due', unit: '%', atLeast: 98 },
  lateP99: { text: 'what the bench was late with a change, p99', unit: 'ms' },
  answerP99: { text: 'from the request of the change to its answer, p99', unit: 'ms' },
  ...COST_FIGURES,
  ...WRITE_FIGURES,
} as const satisfies Record<string, Figure>;

interface Measured {
  readonly latencies: Latencies;
  readonly changes: Changes;
  readonly values: Readonly<Partial<Record<keyof typeof FIGURES, number>>>;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Marks from which the writes of a burst count. */
const marks = new WeakMap<CatalogStage, RequestCounts>();

async function prepare(stage: CatalogStage, subject: 'catalog' | 'floor'): Promise<void> {
  const world = await stage.settled(subject);
  await world.change({ ...stage.burst, seconds: WARM_UP_SECONDS });
  await world.untilQuiet();
  marks.set(stage, await world.world.controlPlane.mark());
}

async function measure({ world, burst }: CatalogStage): Promise<Measured> {
  const { result: changes, values, details } = await costing(world, () => world.change(burst));
  const latencies = latenciesOf(changes.sent, changes.seen);
  const { lateMax, ...figures } = latencies;
  return {
    latencies,
    changes,
    values: { ...figures, pace: (100 * latencies.rate) / burst.rate, ...values },
    details: { ...details, lateMaxMs: lateMax },
  };
}

async function writes(stage: CatalogStage) {
  const { world, burst } = stage;
  await world.untilQuiet();
  const mark = marks.get(stage);
  if (!mark) throw new Error('the burst was not prepared');
  return writesEach(await world.requestsSince(mark), burst.seconds * burst.rate);
}

/** Modules change, one after the other, in what their workloads get as it is. */
export const BURST = benchCase({
  name: 'burst',
  figures: FIGURES,
  prepare: (stage: CatalogStage) => prepare(stage, 'catalog'),
  watched: ({ world }) => [{ name: 'catalog', pid: world.subject.pid }],

  async measure(stage) {
    const { latencies, values, details } = await measure(stage);
    stage.ofCatalog = latencies;
    return { values, details };
  },

  afterwards: writes,
});

/** The same changes of the same Modules, with the floor in place of the catalog; `rollout` runs on. */
export const FLOOR = benchCase({
  name: 'floor',
  figures: {
    timesP99: {
      text: 'p99 of the catalog from event to event, times that of the floor',
      unit: '',
      atMost: TIMES_FLOOR,
    },
    timesP50: { text: 'the same of p50', unit: '' },
    ...FIGURES,
    subjectCpu: { ...FIGURES.subjectCpu, text: 'CPU time of the floor' },
    subjectPeak: { ...FIGURES.subjectPeak, text: 'peak memory of the floor' },
  },
  prepare: (stage: CatalogStage) => prepare(stage, 'floor'),
  // It has figures of its own: it is no replica.
  watched: () => [],

  async measure(stage) {
    const { latencies, values, details } = await measure(stage);
    const counters = await stage.world.floor.counters();
    if (counters.failed + counters.refused > 0) throw new Error(`the floor: ${JSON.stringify(counters)}`);
    const { ofCatalog } = stage;
    const ratios = ofCatalog && { timesP99: ofCatalog.p99 / latencies.p99, timesP50: ofCatalog.p50 / latencies.p50 };
    return { values: { ...ratios, ...values }, details: { ...details, counters } };
  },

  afterwards: writes,
});
