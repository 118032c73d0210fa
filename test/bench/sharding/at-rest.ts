import { setTimeout as delay } from 'node:timers/promises';
import type { RequestCounts } from '../../../samples/control-plane/request-counts.ts';
import type { ReplicaWorld } from './replica-world.ts';

const QUIET_MINUTES = 2;

export interface RestCost {
  /** To the API server, by all replicas; watches apart. */
  readonly requestsPerVNodeMinute: number;
  /** To each base, each minute. */
  readonly mostCommands: number;
  readonly meanCommands: number;
  readonly details: Readonly<Record<string, unknown>>;
}

/** What a world costs in two minutes in which nothing happens. */
export async function restCostOf(replicas: ReplicaWorld): Promise<RestCost> {
  const { fleet, bases, world } = replicas;
  const [asked, told] = await Promise.all([stamped(world.controlPlane.mark()), stamped(fleet.mark())]);
  await delay(QUIET_MINUTES * 60_000);
  const [requests, history] = await Promise.all([
    stamped(replicas.requestsSince(asked.value)),
    stamped(fleet.historySummary(told.value)),
  ]);
  const [minutes, minutesOfFleet] = [minutesBetween(asked, requests), minutesBetween(told, history)];
  const { perBase, commands } = history.value;
  const perMinute = Object.values(perBase).map((counts) => sum(Object.values(counts)) / minutesOfFleet);
  const watches = requests.value.count({ verb: 'watch' });
  return {
    requestsPerVNodeMinute: (requests.value.count() - watches) / bases / minutes,
    mostCommands: Math.max(0, ...perMinute),
    meanCommands: sum(perMinute) / bases,
    details: {
      minutes,
      requests: byVerbAndResource(requests.value),
      watches,
      commands,
      held: replicas.counts(),
    },
  };
}

interface Stamped<T> {
  readonly value: T;
  /** When we had it, monotonic, ms. */
  readonly at: number;
}

/** On a busy machine an answer may take seconds: a count belongs to the time at which it came. */
async function stamped<T>(asking: Promise<T>): Promise<Stamped<T>> {
  return { value: await asking, at: performance.now() };
}

/** A timer may be early by a millisecond. */
function minutesBetween(from: Stamped<unknown>, to: Stamped<unknown>): number {
  return Math.max(QUIET_MINUTES, (to.at - from.at) / 60_000);
}

/** `patch leases 200`: how many. */
function byVerbAndResource(requests: RequestCounts): Record<string, number> {
  const entries = requests.entries().filter(({ verb }) => verb !== 'watch');
  return Object.fromEntries(entries.map(({ verb, resource, code, count }) => [`${verb} ${resource} ${code}`, count]));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
