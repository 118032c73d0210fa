import { setTimeout as delay } from 'node:timers/promises';
import { COMPONENT_NAMES } from '../../../samples/control-plane/versions.ts';
import { AuditedRequests } from '../../support/cluster/audited-requests.ts';
import { cpuSecondsOf } from '../../support/cost.ts';
import type { Figure } from '../suite.ts';
import { rounded } from '../usage.ts';
import { type ExportReplica, type ExportWorld, PLATFORM_USER } from './export-world.ts';

/** What every case with two replicas reports besides its own figures. */
export const COST_FIGURES = {
  leaderCpu: { text: 'CPU of the leader, of one core', unit: '%' },
  followerCpu: { text: 'CPU of the other replica, of one core', unit: '%' },
  writes: { text: 'writes of ExportServices', unit: '/s' },
  writesOfObject: { text: 'writes of the object that is written most', unit: '/s', atMost: 1 },
  controlPlaneCpu: { text: 'CPU of the control plane, of one core', unit: '%' },
  benchCpu: { text: 'CPU of the bench itself, of one core', unit: '%' },
} as const satisfies Record<string, Figure>;

export interface Costed<T> {
  readonly result: T;
  readonly values: Readonly<Record<keyof typeof COST_FIGURES, number>>;
  readonly details: Readonly<Record<string, unknown>>;
}

/** What it took while `act` ran. */
export async function costing<T>(world: ExportWorld, act: () => Promise<T>): Promise<Costed<T>> {
  const leader = await world.leader();
  const followers = world.living.filter((one) => one !== leader);
  const { controlPlane } = world.world;
  const components = COMPONENT_NAMES.flatMap((name) => controlPlane.component(name).pid ?? []);
  const cpu = meterOf({
    leader: [leader.pid],
    follower: followers.map(({ pid }: ExportReplica) => pid),
    controlPlane: components,
    bench: [process.pid],
  });
  const [since, startedAt] = [Date.now(), performance.now()];
  const result = await act();
  const used = cpu();
  const [until, seconds] = [Date.now(), (performance.now() - startedAt) / 1000];
  const { writes, perObject, rateOfObject, shortestGapMs } = await writesOf(world, since, until);
  return {
    result,
    values: {
      leaderCpu: (100 * used.leader) / seconds,
      followerCpu: (100 * used.follower) / seconds,
      controlPlaneCpu: (100 * used.controlPlane) / seconds,
      benchCpu: (100 * used.bench) / seconds,
      writes: writes / seconds,
      writesOfObject: rateOfObject,
    },
    details: { seconds, cpuSeconds: used, writes, objects: perObject, shortestGapMs },
  };
}

type Part = 'leader' | 'follower' | 'controlPlane' | 'bench';

/** CPU seconds of each part since now. */
function meterOf(pids: Readonly<Record<Part, readonly number[]>>): () => Record<Part, number> {
  const secondsOf = (part: Part): number => pids[part].reduce((sum, pid) => sum + cpuSecondsOf(pid), 0);
  const parts = Object.keys(pids) as Part[];
  const before = new Map(parts.map((part) => [part, secondsOf(part)]));
  return () => {
    const used = parts.map((part) => [part, rounded(secondsOf(part) - (before.get(part) ?? 0))]);
    return Object.fromEntries(used) as Record<Part, number>;
  };
}

export interface Writes {
  readonly writes: number;
  /** How many were written. */
  readonly perObject: number;
  /** Of the object with the most writes, a second, from its first write to its last one; 0 of fewer than two. */
  readonly rateOfObject: number;
  /** Between two writes of one object. */
  readonly shortestGapMs: number | undefined;
}

/** Everything that the platform has written of ExportServices, by the audit log. */
export async function writesOf({ world }: ExportWorld, since: number, until: number): Promise<Writes> {
  const log = new AuditedRequests(world.controlPlane.directory);
  try {
    const all = (await log.read()).filter(
      ({ user, resource, at }) =>
        user === PLATFORM_USER && resource.startsWith('exportservices') && at >= since && at <= until,
    );
    const times = new Map<string, number[]>();
    for (const { resource, namespace, name, at } of all) {
      if (resource !== 'exportservices/status') continue;
      const key = `${namespace}/${name}`;
      times.set(key, [...(times.get(key) ?? []), at]);
    }
    const rates = [...times.values()].map(rateOf);
    const gaps = [...times.values()].flatMap((of) => of.slice(1).map((at, index) => at - (of[index] ?? 0)));
    return {
      writes: all.length,
      perObject: times.size,
      rateOfObject: Math.max(0, ...rates),
      shortestGapMs: gaps.length === 0 ? undefined : Math.min(...gaps),
    };
  } finally {
    await log.close();
  }
}

function rateOf(times: readonly number[]): number {
  const [first = 0, last = 0] = [times[0], times.at(-1)];
  return last > first ? (1000 * (times.length - 1)) / (last - first) : 0;
}

/** Resolves when nothing was written for that long. */
export async function untilNoWrites(world: ExportWorld, forMs: number, timeoutMs: number): Promise<void> {
  const endsAt = Date.now() + timeoutMs;
  while (Date.now() < endsAt) {
    await delay(forMs);
    const now = Date.now();
    if ((await writesOf(world, now - forMs, now)).writes === 0) return;
  }
  throw new Error(`ExportServices are written still after ${timeoutMs / 1000} s`);
}
