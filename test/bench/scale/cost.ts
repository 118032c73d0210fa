import { byVerbAndResource } from '../../../samples/control-plane/request-counts.ts';
import { COMPONENT_NAMES } from '../../../samples/control-plane/versions.ts';
import { cpuSecondsOf } from '../../support/cost.ts';
import { commandsOfEach } from '../at-rest.ts';
import type { Figure } from '../suite.ts';
import { rounded } from '../usage.ts';
import { DEFAULT_RESOLUTION_MS } from './probe/probe.ts';
import type { ScaleWorld } from './scale-world.ts';

/** What every case tells besides its own figures. */
export const COST_FIGURES = {
  requests: { text: 'requests to the API server, watches apart', unit: '' },
  controlPlaneCpu: { text: 'CPU time of the control plane', unit: 's' },
  mostCommands: { text: 'commands to the base that gets the most', unit: '' },
  loopDelay: { text: 'event loop delay, p99', unit: 'ms' },
} as const satisfies Record<string, Figure>;

export interface Cost {
  readonly requests: number;
  readonly controlPlaneCpu: number;
  readonly mostCommands: number;
  /** Absent of a subject that does not tell. */
  readonly loopDelay?: number;
}

export interface Costed<T> {
  readonly result: T;
  readonly cost: Cost;
  readonly details: Readonly<Record<string, unknown>>;
}

/** What it took the subject, and the bases, while `act` ran. */
export async function costing<T>(world: ScaleWorld, act: () => Promise<T>): Promise<Costed<T>> {
  const [since, mark] = await Promise.all([world.world.controlPlane.mark(), world.fleet.mark()]);
  await world.subject.probe?.watchLoopDelay(DEFAULT_RESOLUTION_MS);
  const cpuBefore = controlPlaneCpuOf(world);
  const result = await act();
  const controlPlaneCpu = rounded(controlPlaneCpuOf(world) - cpuBefore);
  const loop = await world.subject.probe?.takeLoopDelay();
  const [answered, history] = await Promise.all([world.requestsSince(since), world.fleet.historySummary(mark)]);
  const requests = answered.withoutWatches();
  const { commands } = history;
  return {
    result,
    cost: {
      requests: requests.count(),
      controlPlaneCpu,
      mostCommands: Math.max(0, ...commandsOfEach(history)),
      ...(loop ? { loopDelay: loop.p99 } : {}),
    },
    details: { requests: byVerbAndResource(requests), commands, ...(loop ? { longestLoopDelay: loop.max } : {}) },
  };
}

/** Seconds of all its components, of which each has started once. */
function controlPlaneCpuOf({ world }: ScaleWorld): number {
  const pids = COMPONENT_NAMES.map((name) => world.controlPlane.component(name).pid);
  return pids.reduce((sum: number, pid) => sum + (pid === undefined ? 0 : cpuSecondsOf(pid)), 0);
}

/** Of sorted values; NaN of none. */
export function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * part) - 1)] ?? Number.NaN;
}
