import {
  type ClusterFacts,
  type CommandFact,
  type LeaseFact,
  NO_FACTS,
  type NodeFact,
  type OperationFact,
  type PodFact,
} from '../../support/cluster/facts.ts';

/** Hand-made histories: times in ms, and what a test does not care about filled in. */
const START = Date.parse('2026-01-01T00:00:00Z');

export const at = (ms: number): number => START + ms;

export function lease(ms: number, holder: string, more: Partial<LeaseFact> = {}): LeaseFact {
  return {
    base: 'b1',
    holder,
    acquiredAt: at(ms),
    renewedAt: at(ms),
    transitions: 0,
    resourceVersion: String(ms),
    at: at(ms + 5),
    isGone: false,
    ...more,
  };
}

export function command(ms: number, replica: string, more: Partial<CommandFact> = {}): CommandFact {
  return { replica, base: 'b1', command: 'installBiz', module: 'm:1', at: at(ms), ...more };
}

export function operation(ms: number, more: Partial<OperationFact> = {}): OperationFact {
  return {
    base: 'b1',
    command: 'installBiz',
    module: 'm:1',
    stateAtReceipt: '',
    outcome: 'executed',
    at: at(ms),
    finishedAt: at(ms + 50),
    ...more,
  };
}

export function pod(ms: number, more: Partial<PodFact> = {}): PodFact {
  return {
    name: 'p1',
    uid: 'uid-1',
    nodeName: 'vnode.b1',
    modules: ['m:1'],
    deletedAt: undefined,
    isOver: false,
    ready: 'True',
    at: at(ms),
    isGone: false,
    ...more,
  };
}

export function node(ms: number, ready: string, more: Partial<NodeFact> = {}): NodeFact {
  return { name: 'vnode.b1', uid: 'node-1', ready, reason: '', at: at(ms), isGone: false, ...more };
}

/** Renewals of all replicas each second, so that nobody is fenced. */
export function renewals(...replicas: string[]): ClusterFacts['renewals'] {
  return replicas.flatMap((replica) =>
    Array.from({ length: 120 }, (_, second) => ({ replica, at: at(second * 1_000) })),
  );
}

export function facts(some: Partial<ClusterFacts>): ClusterFacts {
  return { ...NO_FACTS, renewals: renewals('r0', 'r1', 'r2'), ...some };
}
