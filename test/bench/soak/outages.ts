import { identityOf, nodeNameOf } from '../../../src/labels.ts';
import type { NodeFact } from '../../support/cluster/facts.ts';
import type { Violation } from '../../support/cluster/violation.ts';

/** A base was away: what its Node may show then is promised. Wall clock, ms. */
export interface Outage {
  readonly base: string;
  readonly from: number;
  /** Infinity: not yet. */
  readonly to: number;
}

/** docs/operate.md, "Silent bases": not Ready after 25 s, gone after 60 s; it may last have spoken a heartbeat before. */
const HEARTBEAT_MS = 10_000;
const NOT_READY_AFTER_MS = 25_000 - HEARTBEAT_MS;
const GONE_AFTER_MS = 60_000 - HEARTBEAT_MS;
/** A base that has just come back may be without a leader that hears it: one was killed. */
const BACK_WITHIN_MS = 15_000;

/** No Node that was once Ready is anything else, or gone, that the outages of its base do not explain. */
export function unexplainedNodes(
  nodes: readonly NodeFact[],
  outages: readonly Outage[],
  { since, until }: { since: number; until: number },
): Violation[] {
  const wasReady = new Set<string>();
  return nodes.flatMap(({ name, ready, reason, at, isGone }): Violation[] => {
    const base = identityOf(name) ?? '';
    const wasReadyBefore = wasReady.has(name);
    if (isGone) wasReady.delete(name);
    else if (ready === 'True') wasReady.add(name);
    if (!wasReadyBefore || at <= since || at > until || (ready === 'True' && !isGone)) return [];
    const afterMs = isGone ? GONE_AFTER_MS : NOT_READY_AFTER_MS;
    const isExplained = outages.some(
      (outage) => outage.base === base && outage.from + afterMs <= at && at <= outage.to + BACK_WITHIN_MS,
    );
    if (isExplained) return [];
    const text = isGone ? `${name} was deleted` : `${name} was Ready=${ready} ${reason}`;
    return [{ kind: 'Node not Ready', at, base, text }];
  });
}

/** Nodes that are there though their base has been away for good, and bases whose Node is missing. */
export function nodeDifferences(nodes: readonly string[], aliveBases: readonly string[]): string[] {
  const wanted = new Set(aliveBases.map(nodeNameOf));
  const there = new Set(nodes);
  return [
    ...nodes.filter((name) => !wanted.has(name)).map((name) => `${name} is there, its base is dead`),
    ...[...wanted].filter((name) => !there.has(name)).map((name) => `${name} is missing, its base lives`),
  ];
}
