import { identityOf } from '../../../src/labels.ts';
import { commandsOfOthers, writesOfOthers } from './check-leaders.ts';
import { executedTwice, uninstalledThoughWanted } from './check-modules.ts';
import type { ClusterFacts } from './facts.ts';
import type { CheckOptions, Violation } from './violation.ts';

/** Every promise of sharding that was not kept, in the order of time. */
export function violationsOf(facts: ClusterFacts, options: CheckOptions = {}): Violation[] {
  const checks = [commandsOfOthers, executedTwice, uninstalledThoughWanted, nodesNotReady, writesOfOthers];
  return checks.flatMap((check) => check(facts, options)).sort((a, b) => a.at - b.at);
}

/** No Node that was once Ready is anything else, or gone. */
export function nodesNotReady({ nodes }: ClusterFacts, { since = 0 }: CheckOptions = {}): Violation[] {
  const wasReady = new Set<string>();
  return nodes.flatMap(({ name, ready, reason, at, isGone }): Violation[] => {
    if (ready === 'True' && !isGone) wasReady.add(name);
    else if (wasReady.has(name) && at >= since) {
      const text = isGone ? `${name} was deleted` : `${name} was Ready=${ready} ${reason}`;
      return [{ kind: 'Node not Ready', at, base: identityOf(name) ?? '', text }];
    }
    return [];
  });
}
