import { setTimeout as delay } from 'node:timers/promises';
import {
  byUserVerbAndResource,
  byVerbAndResource,
  type RequestCounts,
} from '../../../samples/control-plane/request-counts.ts';
import { commandsOfEach } from '../at-rest.ts';
import type { Figure, Measurement } from '../suite.ts';
import { rounded } from '../usage.ts';
import { CpuMeter, type CpuSeconds, stageShareOf } from './cpu.ts';
import { DEFAULT_RESOLUTION_MS } from './probe/probe.ts';
import type { ScaleWorld } from './scale-world.ts';
import type { ScaleStage } from './stage.ts';

/** What every case reports besides its own figures. */
export const COST_FIGURES = {
  requests: { text: 'requests to the API server, watches apart', unit: '' },
  controlPlaneCpu: { text: 'CPU time of the control plane', unit: 's' },
  stageShare: { text: 'CPU time of bases, observer and bench, of all', unit: '%' },
  mostCommands: { text: 'commands to the base that gets the most', unit: '' },
  loopDelay: { text: 'event loop delay, p99', unit: 'ms' },
} as const satisfies Record<string, Figure>;

/** What a burst of Nodes or Pods reports as well: CPU times hold on a busy machine, where times do not. */
export function burstFiguresOf(thing: 'Node' | 'Pod') {
  return {
    ...COST_FIGURES,
    stageShare: { ...COST_FIGURES.stageShare, atMost: 10 },
    cpuEach: { text: `CPU time for each ${thing}`, unit: 'ms', timesFloorAtMost: 2 },
    controlPlaneRequestsEach: {
      text: `requests of the control plane for each ${thing}, watches apart`,
      unit: '',
      timesFloorAtMost: 1.05,
    },
    controlPlaneCpuEach: { text: `CPU time of the control plane for each ${thing}`, unit: 'ms' },
  } as const satisfies Record<string, Figure>;
}

/** What comes after a burst: a controller may put off what does not matter until then, and no more than that. */
export const MINUTE_FIGURES = {
  minuteRequests: { text: 'requests for each VNode in the minute after', unit: '', atMost: 6.5 },
  minuteCpu: { text: 'CPU time in the minute after', unit: 's' },
} as const satisfies Record<string, Figure>;

export interface Cost {
  readonly requests: number;
  readonly controlPlaneCpu: number;
  readonly stageShare: number;
  readonly mostCommands: number;
  /** Absent of a subject that does not report it. */
  readonly loopDelay?: number;
}

export interface Costed<T, C = Cost> {
  readonly result: T;
  readonly cost: C;
  readonly details: Readonly<Record<string, unknown>>;
}

interface BurstCost extends Cost {
  readonly cpuEach: number;
  readonly controlPlaneRequestsEach: number;
  readonly controlPlaneCpuEach: number;
}

/** What it took the subject, and the bases, while `act` ran. */
export async function costing<T>(world: ScaleWorld, act: () => Promise<T>): Promise<Costed<T>> {
  return (await metered(world, act)).costed;
}

/** The same of a burst of `count` Nodes or Pods. */
export async function burst<T>(world: ScaleWorld, count: number, act: () => Promise<T>): Promise<Costed<T, BurstCost>> {
  const { costed, cpu, controlPlaneRequests } = await metered(world, act);
  const eachOf = (seconds: number): number => (1000 * seconds) / count;
  const cost = {
    ...costed.cost,
    cpuEach: eachOf(cpu.subject),
    controlPlaneRequestsEach: controlPlaneRequests.count() / count,
    controlPlaneCpuEach: eachOf(cpu.controlPlane),
  };
  return { ...costed, cost };
}

interface Metered<T> {
  readonly costed: Costed<T>;
  readonly cpu: CpuSeconds;
  readonly controlPlaneRequests: RequestCounts;
}

async function metered<T>(world: ScaleWorld, act: () => Promise<T>): Promise<Metered<T>> {
  const [since, mark] = await Promise.all([world.world.controlPlane.mark(), world.fleet.mark()]);
  await world.subject.probe?.watchLoopDelay(DEFAULT_RESOLUTION_MS);
  const meter = new CpuMeter(world);
  const result = await act();
  // Before anything is read: that is the bench's own work, after the burst.
  const cpu = meter.read();
  const loop = await world.subject.probe?.takeLoopDelay();
  const [answered, history] = await Promise.all([world.requestsSince(since), world.fleet.historySummary(mark)]);
  const requests = answered.withoutWatches();
  const controlPlaneRequests = (await world.controlPlaneRequestsSince(since)).withoutWatches();
  const cost: Cost = {
    requests: requests.count(),
    controlPlaneCpu: rounded(cpu.controlPlane),
    stageShare: stageShareOf(cpu),
    mostCommands: Math.max(0, ...commandsOfEach(history)),
    ...(loop ? { loopDelay: loop.p99 } : {}),
  };
  const details = {
    requests: byVerbAndResource(requests),
    controlPlaneRequests: byUserVerbAndResource(controlPlaneRequests),
    commands: history.commands,
    cpuSeconds: Object.fromEntries(Object.entries(cpu).map(([part, seconds]) => [part, rounded(seconds)])),
    ...(loop ? { longestLoopDelay: loop.max } : {}),
  };
  return { costed: { result, cost, details }, cpu, controlPlaneRequests };
}

/** What the minute after a burst costs. Nothing of a floor: it has nothing to put off, and renews leases only. */
export async function minuteAfter({ world }: ScaleStage): Promise<Measurement<keyof typeof MINUTE_FIGURES>> {
  if (world.subject.name.startsWith('floor')) return { values: {} };
  const since = await world.world.controlPlane.mark();
  const meter = new CpuMeter(world);
  await delay(60_000);
  const cpu = meter.read();
  const requests = (await world.requestsSince(since)).withoutWatches();
  return {
    values: { minuteRequests: requests.count() / world.bases, minuteCpu: rounded(cpu.subject) },
    details: { minuteAfter: byVerbAndResource(requests) },
  };
}

/** Of sorted values; NaN of none. */
export function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * part) - 1)] ?? Number.NaN;
}
