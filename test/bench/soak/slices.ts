import { identityOf } from '../../../src/labels.ts';
import type { ClusterFacts, OperationFact, PodFact } from '../../support/cluster/facts.ts';

/**
 * A history of hours is checked in slices, each with what came before it and is still needed, and then forgotten.
 * What is judged ends a little before now: what explains it may still be on its way.
 */

/** What happened later is known, but not judged yet. */
export function judgedUntil(facts: ClusterFacts, until: number): ClusterFacts {
  const isJudged = ({ at }: { readonly at: number }): boolean => at <= until;
  return {
    ...facts,
    commands: facts.commands.filter(isJudged),
    operations: facts.operations.filter(isJudged),
    writes: facts.writes.filter(isJudged),
  };
}

/** Bounded by the size of the world, and by what happens within the time from the horizon on. */
export function withoutPast(facts: ClusterFacts, horizon: number): ClusterFacts {
  const isRecent = ({ at }: { readonly at: number }): boolean => at >= horizon;
  const wanted = modulesOfRecentPods(facts.pods, horizon);
  const operations = facts.operations.filter((operation) => isRecent(operation) || wanted.has(keyOf(operation)));
  return {
    ...facts,
    leases: newestAndRecent(facts.leases, ({ base }) => base, horizon),
    nodes: newestAndRecent(facts.nodes, ({ name }) => name, horizon),
    renewals: facts.renewals.filter(isRecent),
    commands: facts.commands.filter(isRecent),
    operations,
    pods: podsWithout(facts.pods, wanted, horizon),
    writes: facts.writes.filter(isRecent),
    // A restart allows one more install of what was there before it.
    restarts: facts.restarts.filter((restart) => {
      return isRecent(restart) || operations.some(({ base, at }) => base === restart.base && at <= restart.at);
    }),
    pauses: facts.pauses.filter(({ to }) => to >= horizon),
    notes: facts.notes.filter(isRecent),
  };
}

/** The newest before the horizon says what was so when it began; of what was gone by then nothing is needed. */
function newestAndRecent<T extends { readonly at: number; readonly isGone: boolean }>(
  versions: readonly T[],
  keyOfOne: (version: T) => string,
  horizon: number,
): T[] {
  const newest = new Map<string, T>();
  for (const version of versions) if (version.at < horizon) newest.set(keyOfOne(version), version);
  return versions.filter((one) => one.at >= horizon || (newest.get(keyOfOne(one)) === one && !one.isGone));
}

/**
 * How often a module was installed on a base is compared with how many Pods asked for it: both are kept, or neither,
 * as long as one of the Pods is there or has only just gone.
 */
function modulesOfRecentPods(pods: readonly PodFact[], horizon: number): Set<string> {
  const gone = new Set(pods.filter(({ isGone, at }) => isGone && at < horizon).map(({ uid }) => uid));
  return new Set(pods.filter(({ uid }) => !gone.has(uid)).flatMap(keysOf));
}

/** Of each Pod when it was bound, when it ended, and what is recent. */
function podsWithout(pods: readonly PodFact[], wanted: ReadonlySet<string>, horizon: number): PodFact[] {
  const lives = Map.groupBy(pods, ({ uid }) => uid);
  const needed = new Set<PodFact>();
  for (const versions of lives.values()) {
    const isWanted = versions.some((version) => keysOf(version).some((key) => wanted.has(key)));
    const isOver = versions.some(({ isGone, at }) => isGone && at < horizon);
    if (isOver && !isWanted) continue;
    const bound = versions.find(({ nodeName }) => nodeName !== '');
    const end = versions.find((version) => version.deletedAt !== undefined || version.isOver || version.isGone);
    for (const version of [bound, end, versions.findLast(({ isGone }) => isGone), versions.at(-1)]) {
      if (version) needed.add(version);
    }
  }
  return pods.filter((pod) => needed.has(pod) || (pod.at >= horizon && lives.has(pod.uid)));
}

function keysOf({ nodeName, modules }: PodFact): string[] {
  return modules.map((module) => `${identityOf(nodeName) ?? ''} ${module}`);
}

function keyOf({ base, module }: OperationFact): string {
  return `${base} ${module}`;
}
