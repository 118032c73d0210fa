import { byVerbAndResource, type RequestCounts } from '../../../samples/control-plane/request-counts.ts';
import { cpuSecondsOf, peakMibOf, resetPeak } from '../../support/cost.ts';
import type { Figure } from '../suite.ts';
import { rounded } from '../usage.ts';
import { type CatalogWorld, withoutLeases } from './catalog-world.ts';
import { monotonicMs } from './monotonic.ts';

/** Figures of what the parts of a world use while something happens. */
export const COST_FIGURES = {
  subjectCpu: { text: 'CPU time of the catalog', unit: 's' },
  rolloutCpu: { text: 'CPU time of rollout', unit: 's' },
  coreCpu: { text: 'CPU time of the core', unit: 's' },
  apiServerCpu: { text: 'CPU time of the API server', unit: 's' },
  subjectPeak: { text: 'peak memory of the catalog', unit: 'MiB' },
  rolloutPeak: { text: 'peak memory of rollout', unit: 'MiB' },
  corePeak: { text: 'peak memory of the core', unit: 'MiB' },
  apiServerPeak: { text: 'peak memory of the API server', unit: 'MiB' },
  stageShare: { text: 'CPU time of bases, observer and bench, of all', unit: '%' },
} as const satisfies Record<string, Figure>;

/** Figures of writes for each Module or each change, until no more come. */
export const WRITE_FIGURES = {
  workloadWrites: { text: 'writes of a workload', unit: '' },
  statusWrites: { text: 'writes of the status of a Module', unit: '' },
  workloadStatusWrites: { text: 'writes of the status of a workload', unit: '' },
  otherRequests: { text: 'other requests of catalog and rollout, without watches and Leases', unit: '' },
} as const satisfies Record<string, Figure>;

type Part = keyof CatalogWorld['pids'];

export interface Costed<T> {
  readonly result: T;
  readonly values: Readonly<Record<keyof typeof COST_FIGURES, number>>;
  readonly details: Readonly<Record<string, unknown>>;
  readonly seconds: number;
}

/** Runs `act`, and measures what each part uses meanwhile. */
export async function costing<T>(world: CatalogWorld, act: () => Promise<T>): Promise<Costed<T>> {
  const { pids } = world;
  const parts = Object.keys(pids) as Part[];
  const before = new Map(Object.values(pids).flatMap((of) => of.map((pid) => [pid, cpuSecondsOf(pid)])));
  const isPeakReset = parts.every((part) => pids[part].every((pid) => resetPeak(pid)));
  const startedAt = monotonicMs();
  const result = await act();
  const seconds = (monotonicMs() - startedAt) / 1000;
  const cpuOf = (part: Part): number =>
    pids[part].reduce((sum, pid) => sum + cpuSecondsOf(pid) - (before.get(pid) ?? 0), 0);
  const cpu = Object.fromEntries(parts.map((part) => [part, rounded(cpuOf(part))])) as Record<Part, number>;
  // What the kernel says may be of an earlier time.
  const peakOf = (part: Part): number =>
    isPeakReset ? Math.max(...pids[part].map((pid) => peakMibOf(pid))) : Number.NaN;
  const all = parts.reduce((sum, part) => sum + cpu[part], 0);
  return {
    result,
    seconds,
    values: {
      subjectCpu: cpu.subject,
      rolloutCpu: cpu.rollout,
      coreCpu: cpu.core,
      apiServerCpu: cpu.apiServer,
      subjectPeak: peakOf('subject'),
      rolloutPeak: peakOf('rollout'),
      corePeak: peakOf('core'),
      apiServerPeak: peakOf('apiServer'),
      stageShare: (100 * cpu.stage) / all,
    },
    details: { seconds: rounded(seconds), cpuSeconds: cpu },
  };
}

/** Writes of the platform and the floor, for each of so many things. */
export function writesEach(requests: RequestCounts, count: number) {
  const others = withoutLeases(requests);
  const patches = (resource: string): number => others.count({ verb: 'patch', resource });
  const [workloads, statuses, workloadStatuses] = [
    patches('moduledeployments'),
    patches('modules/status'),
    patches('moduledeployments/status'),
  ];
  return {
    values: {
      workloadWrites: workloads / count,
      statusWrites: statuses / count,
      workloadStatusWrites: workloadStatuses / count,
      otherRequests: (others.count() - workloads - statuses - workloadStatuses) / count,
    },
    details: { requests: byVerbAndResource(requests) },
  };
}
