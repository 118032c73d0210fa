import { setTimeout as delay } from 'node:timers/promises';
import { cpuSecondsOf, residentMibOf } from '../../support/cost.ts';
import { untilAtRest } from '../at-rest.ts';
import { benchCase } from '../suite.ts';
import { COST_FIGURES, costing } from './cost.ts';
import type { ScaleWorld } from './scale-world.ts';
import type { ScaleStage } from './stage.ts';

const TIMES = 4;
const REST_MS = 60_000;

/** Four times as many bases, and what each further Node and Pod costs in memory. */
export const LARGE = benchCase({
  name: 'large',
  figures: {
    nodes: { text: `${TIMES} times as many bases: until the Nodes of the further ones are ready`, unit: 's' },
    pods: { text: 'their modules: until the last Pod is Ready', unit: 's' },
    lost: { text: 'Nodes that were ever not ready', unit: '', atMost: 0 },
    leaseAge: { text: 'age of a lease, looked at each second, p99', unit: 's', atMost: 15 },
    oldestLease: { text: 'oldest lease ever', unit: 's' },
    perVNode: { text: 'live memory for each further VNode', unit: 'KiB', atMost: 20 },
    perPod: { text: 'live memory for each further Pod', unit: 'KiB', atMost: 6 },
    resident: { text: 'memory with all of it', unit: 'MiB' },
    idleCpu: { text: 'CPU at rest with all of it, of one core', unit: '%' },
    ...COST_FIGURES,
  },

  async prepare(stage: ScaleStage) {
    const world = await stage.fresh();
    await world.announce();
    await world.place();
  },

  watched: (stage) => [stage.world.subject],

  async measure({ world }) {
    const { bases: basesBefore, pods: podsBefore } = world;
    const { result, cost, details } = await costing(world, () => growing(world));
    const { lost } = await world.observer.nodes();
    const { before, withNodes, withPods, ages } = result;
    return {
      values: {
        nodes: result.nodes / 1000,
        pods: result.pods / 1000,
        lost: lost.length,
        leaseAge: ages.p99,
        oldestLease: ages.max,
        perVNode: (withNodes - before) / 1024 / (world.bases - basesBefore),
        perPod: (withPods - withNodes) / 1024 / (world.pods - podsBefore),
        resident: residentMibOf(world.subject.pid),
        idleCpu: result.idleCpu,
        ...cost,
      },
      details: { ...details, lost, ages, live: { before, withNodes, withPods } },
    };
  },
});

async function growing(world: ScaleWorld) {
  const before = await liveBytesOf(world);
  await world.observer.watchLeases();
  const grownAt = performance.now();
  await world.grow((TIMES - 1) * world.bases);
  const nodes = performance.now() - grownAt;
  const withNodes = await liveBytesOf(world);
  const placedAt = performance.now();
  await world.place();
  const pods = performance.now() - placedAt;
  const withPods = await liveBytesOf(world);
  const idleCpu = await restingCpuOf(world);
  return { before, nodes, withNodes, pods, withPods, idleCpu, ages: await world.observer.takeLeaseAges() };
}

/** Percent of a core. */
async function restingCpuOf({ subject }: ScaleWorld): Promise<number> {
  const [cpuBefore, startedAt] = [cpuSecondsOf(subject.pid), performance.now()];
  await delay(REST_MS);
  return (100_000 * (cpuSecondsOf(subject.pid) - cpuBefore)) / (performance.now() - startedAt);
}

/** At rest: what is on its way is not counted. */
async function liveBytesOf(world: ScaleWorld): Promise<number> {
  await untilAtRest(world);
  const memory = await world.subject.probe?.memory();
  return memory ? memory.heapUsed + memory.external : Number.NaN;
}
