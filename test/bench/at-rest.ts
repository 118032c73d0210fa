import { setTimeout as delay } from 'node:timers/promises';
import type { HistorySummary, RemoteFleet } from '../../samples/base-simulator/fleet-process.ts';
import { byVerbAndResource, type RequestCounts } from '../../samples/control-plane/request-counts.ts';
import { NODE_STATUS_PERIOD_MS } from '../../src/vnode/node-plan.ts';
import type { OwnWorld } from '../support/world.ts';

const REST_LOOK_MS = 5_000;
const REST_WITHIN_MS = 240_000;
/** Bases are asked for their metaspace within 4 s of the last operation, and Nodes tell of it within 10 s more. */
const SETTLED_AFTER_MS = 20_000;

const QUIET_MINUTES = 2;

/** Where it is measured. */
export interface RestingWorld {
  readonly fleet: RemoteFleet;
  readonly bases: number;
  readonly world: OwnWorld;
  /** Of all controllers. */
  requestsSince(since: RequestCounts): Promise<RequestCounts>;
}

export interface RestCost {
  readonly minutes: number;
  /** To the API server, by all controllers; watches apart. */
  readonly requestsPerVNodeMinute: number;
  /** To each base, each minute. */
  readonly mostCommands: number;
  readonly meanCommands: number;
  /** Watches apart. */
  readonly requests: RequestCounts;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Resolves when events have all been told and statuses written: leases are renewed, Nodes report, and nothing else. */
export async function untilAtRest({ world, bases, requestsSince }: RestingWorld): Promise<void> {
  const deadline = performance.now() + REST_WITHIN_MS;
  // Twice of what is spread evenly, and a few: Nodes tell their metaspace one after the other.
  const mostReports = 5 + (2 * bases * REST_LOOK_MS) / NODE_STATUS_PERIOD_MS;
  for (;;) {
    const since = await world.controlPlane.mark();
    await delay(REST_LOOK_MS);
    const requests = (await requestsSince(since)).withoutWatches();
    const reports = requests.count({ resource: 'nodes/status' });
    const others = requests
      .entries()
      .filter(({ resource }) => resource !== 'leases' && (resource !== 'nodes/status' || reports > mostReports));
    if (others.length === 0) break;
    if (performance.now() > deadline) throw new Error(`no rest: ${JSON.stringify(others)}`);
  }
  await delay(SETTLED_AFTER_MS);
}

/** What a world costs in two minutes in which nothing happens. */
export async function restCostOf({ fleet, bases, world, requestsSince }: RestingWorld): Promise<RestCost> {
  const [asked, told] = await Promise.all([stamped(world.controlPlane.mark()), stamped(fleet.mark())]);
  await delay(QUIET_MINUTES * 60_000);
  const [answered, history] = await Promise.all([
    stamped(requestsSince(asked.value)),
    stamped(fleet.historySummary(told.value)),
  ]);
  const [minutes, minutesOfFleet] = [minutesBetween(asked, answered), minutesBetween(told, history)];
  const requests = answered.value.withoutWatches();
  const perMinute = commandsOfEach(history.value).map((count) => count / minutesOfFleet);
  return {
    minutes,
    requestsPerVNodeMinute: requests.count() / bases / minutes,
    mostCommands: Math.max(0, ...perMinute),
    meanCommands: sum(perMinute) / bases,
    requests,
    details: { minutes, requests: byVerbAndResource(requests), commands: history.value.commands },
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

/** Of all kinds, to each base that got any. */
export function commandsOfEach({ perBase }: HistorySummary): number[] {
  return Object.values(perBase).map((counts) => sum(Object.values(counts)));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
