import { expect } from 'vitest';
import { eventually } from '../eventually.ts';
import type { Cluster } from './cluster.ts';
import type { Replica } from './replica.ts';

/** What a reader of the leases may wait for. */

/** How many milliseconds after `since` every one of the bases had a holder among `by`; fails after `withinMs`. */
export async function takenOver(
  cluster: Cluster,
  bases: readonly string[],
  { by, since, withinMs }: { by: readonly Replica[]; since: number; withinMs: number },
): Promise<number> {
  const ids = by.map(({ clientId }) => clientId);
  const left = withinMs - (Date.now() - since);
  await eventually(() => {
    const leases = cluster.recorder.leases();
    const others = bases.map((base) => `${base} ${leases.get(base)?.holder}`);
    expect(others.filter((text) => !ids.some((id) => text.endsWith(` ${id}`))).join()).toBe('');
  }, left);
  return Date.now() - since;
}

/** Every base is held, and each of the replicas has its share, a quarter more or less. */
export async function balanced(cluster: Cluster, among: readonly Replica[], timeoutMs = 90_000): Promise<void> {
  await eventually(() => {
    const bases = cluster.recorder.leases().size;
    const fair = bases / among.length;
    const counts = countsOf(cluster, among);
    expect(sum(counts)).toBe(bases);
    for (const count of counts) {
      expect(count, counts.join()).toBeGreaterThanOrEqual(Math.floor(0.8 * fair));
      expect(count, counts.join()).toBeLessThanOrEqual(Math.ceil(1.25 * fair));
    }
  }, timeoutMs);
}

/** So balanced that no replica gives anything to another one, and nothing has moved for some seconds. */
export function atRest(cluster: Cluster): Promise<void> {
  return eventually(() => {
    const counts = countsOf(cluster, cluster.living);
    expect(sum(counts)).toBe(cluster.recorder.leases().size);
    expect(Math.max(...counts) - Math.min(...counts), counts.join()).toBeLessThanOrEqual(1);
    expect(Date.now() - cluster.recorder.movedAt).toBeGreaterThan(5_000);
  }, 90_000);
}

export function countsOf(cluster: Cluster, replicas: readonly Replica[]): number[] {
  return replicas.map((replica) => cluster.basesOf(replica).length);
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** `base holder` of every lease, sorted. */
export function holders({ recorder }: Cluster): string[] {
  return [...recorder.leases().values()].map(({ base, holder }) => `${base} ${holder}`).sort();
}

/** Every lease was renewed by its holder after that time. */
export function renewedSince(cluster: Cluster, since: number, timeoutMs = 60_000): Promise<void> {
  return eventually(() => {
    const leases = [...cluster.recorder.leases().values()];
    const stale = leases.filter(({ renewedAt, holder }) => renewedAt <= since || holder === '');
    expect(stale.map(({ base, holder }) => `${base} ${holder}`).join()).toBe('');
  }, timeoutMs);
}

/** `base from -> to` for each change of a holder since that mark. */
export function movesSince(cluster: Cluster, mark: number, before: readonly string[]): string[] {
  const holderOf = new Map(before.map((text) => text.split(' ') as [string, string]));
  return cluster.recorder.leasesSince(mark).flatMap(({ base, holder, isGone }) => {
    const from = holderOf.get(base);
    holderOf.set(base, isGone ? 'gone' : holder);
    return from === holder && !isGone ? [] : [`${base} ${from} -> ${isGone ? 'gone' : holder}`];
  });
}
