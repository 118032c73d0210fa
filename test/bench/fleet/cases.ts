import { cpuSecondsOf } from '../../support/cost.ts';
import { restCostOf, untilAtRest } from '../at-rest.ts';
import { burst, COST_FIGURES } from '../scale/cost.ts';
import { busiestOf, endAndWatch } from '../sharding/succession.ts';
import { benchCase } from '../suite.ts';
import type { FleetStage } from './stage.ts';

/** How many times as many bases there are in the end. */
const GROWS_TO = 2.5;
const SLOW_RENEWALS = { LEASE_RENEW_INTERVAL_SECONDS: '20' };

const watched = (stage: FleetStage) => stage.replicas.living;
/** Without the event loop delay, which replicas do not report. */
const { loopDelay: _, ...COSTS } = COST_FIGURES;
const LOST = { text: 'Nodes that were ever not ready', unit: '', atMost: 0 };
const TWICE = { text: 'installs beyond one for each Pod', unit: '', atMost: 0 };
/** What a rollout reports besides its time. */
const ROLLOUT_FIGURES = {
  lost: LOST,
  twice: TWICE,
  ...COSTS,
  cpuEach: { text: 'CPU time of all replicas for each Pod', unit: 'ms' },
};
/** What a rest reports besides its requests. */
const REST_FIGURES = {
  mostCommands: { text: 'commands a minute to the base that gets the most', unit: '', atMost: 2 },
  cpu: { text: 'CPU of all replicas, of one core', unit: '%' },
};
const REQUESTS = { text: 'requests to the API server for each VNode and minute, by all', unit: '' };

/** All bases at one moment. */
export const ANNOUNCE = benchCase({
  name: 'announce',
  figures: {
    ready: { text: 'all bases at once until the last Node is ready', unit: 's' },
    ...COSTS,
    cpuEach: { text: 'CPU time of all replicas for each Node', unit: 'ms' },
  },
  async prepare(stage: FleetStage) {
    await stage.open();
  },
  watched,
  async measure({ world }) {
    const startedAt = Date.now();
    const { result, cost, details } = await burst(world, world.bases, () => world.announce());
    return { values: { ready: (result.lastReadyAt - startedAt) / 1000, ...shown(cost) }, details };
  },
});

/** A Deployment for each module, with a copy on each base. */
export const APPLY = benchCase({
  name: 'apply',
  figures: {
    ready: { text: 'until the last Pod is Ready', unit: 's' },
    ...ROLLOUT_FIGURES,
  },
  async prepare(stage: FleetStage) {
    await stage.shared();
  },
  watched,
  async measure(stage) {
    const { ready, values, details } = await rollOut(stage);
    return { values: { ready, ...values }, details };
  },
});

/** Two minutes in which nothing happens. */
export const REST = benchCase({
  name: 'rest',
  figures: {
    requests: { ...REQUESTS, atMost: 6.2 },
    ...REST_FIGURES,
  },
  async prepare(stage: FleetStage) {
    await untilAtRest(await stage.loaded());
  },
  watched,
  measure: restCost,
});

/** SIGKILL to the one of the replicas that leads most. */
export const KILL = benchCase({
  name: 'kill',
  figures: {
    led: { text: 'from SIGKILL until others lead all its leases', unit: 's', atMost: 5 },
    halfLed: { text: 'until they lead half of them', unit: 's' },
    leases: { text: 'leases it had', unit: '' },
    lost: LOST,
  },
  async prepare(stage: FleetStage) {
    await stage.loaded();
  },
  watched,
  async measure({ world, replicas }) {
    const victim = busiestOf(replicas);
    const { led, halfLed, leases } = await endAndWatch(replicas, { victim, signal: 'SIGKILL' });
    const { lost } = await world.observer.nodes();
    return { values: { led, halfLed, leases, lost: lost.length }, details: { lost } };
  },
  async finish(stage) {
    await (await stage.replicas.launch()).untilUp();
    await stage.untilShared();
  },
});

/** A new version of every module, as Deployments roll by default. */
export const ROLL = benchCase({
  name: 'roll',
  figures: {
    done: { text: 'until all Pods are of the new version and Ready, and the old have gone', unit: 's' },
    ...ROLLOUT_FIGURES,
  },
  async prepare(stage: FleetStage) {
    await stage.loaded();
  },
  watched,
  async measure(stage) {
    const { ready, gone, values, details } = await rollOut(stage);
    return { values: { done: Math.max(ready, gone), ...values }, details };
  },
});

/** The same rest with half of the renewals, after a rolling update of the replicas to that setting. */
export const SLOW_REST = benchCase({
  name: 'rest with 20 s',
  figures: {
    requests: { ...REQUESTS, atMost: 3.3 },
    ...REST_FIGURES,
    lost: LOST,
  },
  async prepare(stage: FleetStage) {
    const world = await stage.loaded();
    await stage.replicas.replaceAll(SLOW_RENEWALS);
    await stage.untilShared();
    await untilAtRest(world);
  },
  watched,
  async measure(stage) {
    const { values, details } = await restCost(stage);
    const { lost } = await stage.world.observer.nodes();
    return { values: { ...values, lost: lost.length }, details };
  },
});

/** More bases, one after the other. */
export const GROW = benchCase({
  name: 'grow',
  figures: {
    bases: { text: 'bases in the end', unit: '' },
    behind: { text: 'from the heartbeat of the last one until the last Node is ready', unit: 's' },
    lost: LOST,
    leaseAge: { text: 'age of a lease, looked at each second, p99', unit: 's' },
    ...COSTS,
    cpuEach: { text: 'CPU time of all replicas for each further Node', unit: 'ms' },
  },
  async prepare(stage: FleetStage) {
    await stage.shared();
  },
  watched,
  async measure({ world, options: { minutes = 5 } }) {
    const further = Math.round((GROWS_TO - 1) * world.bases);
    await world.observer.watchLeases();
    const startedAt = Date.now();
    const { result, cost, details } = await burst(world, further, () =>
      world.grow(further, { overMs: minutes * 60_000 }),
    );
    const ages = await world.observer.takeLeaseAges();
    return {
      values: {
        bases: world.bases,
        behind: (result.lastReadyAt - startedAt) / 1000 - 60 * minutes,
        lost: result.lost.length,
        leaseAge: ages.p99,
        ...shown(cost),
      },
      details: { ...details, lost: result.lost, ages },
    };
  },
  async finish({ world }) {
    await world.observer.ignoreLeases();
  },
});

/** In seconds; `gone` is 0 where nothing was there before. */
async function rollOut({ world }: FleetStage) {
  const mark = await world.fleet.mark();
  const startedAt = Date.now();
  const { result, cost, details } = await burst(world, world.pods, () => world.rollOut());
  const secondsTo = (at: number | undefined): number => (at === undefined ? 0 : (at - startedAt) / 1000);
  const { lost } = await world.observer.nodes();
  return {
    ready: secondsTo(result.ready.last.ready),
    gone: secondsTo(result.gone?.last.gone),
    values: { lost: lost.length, twice: await world.extraInstalls(mark), ...shown(cost) },
    details: { ...details, lost },
  };
}

async function restCost({ world, replicas }: FleetStage) {
  const pids = replicas.living.map(({ pid }) => pid);
  const used = (): number => pids.reduce((sum, pid) => sum + cpuSecondsOf(pid), 0);
  const before = used();
  const { requestsPerVNodeMinute, mostCommands, minutes, details } = await restCostOf(world);
  const cpu = (100 * (used() - before)) / (60 * minutes);
  return {
    values: { requests: requestsPerVNodeMinute, mostCommands, cpu },
    details,
  };
}

type BurstCost = Awaited<ReturnType<typeof burst>>['cost'];

/** What {@link COSTS} names. */
function shown({
  controlPlaneCpuEach: _each,
  controlPlaneRequestsEach: _requests,
  loopDelay: _delay,
  ...cost
}: BurstCost) {
  return cost;
}
