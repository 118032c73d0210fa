import type { Traffic } from '../kube/concurrency-limit.ts';
import { phaseOf } from '../queue/phase.ts';
import { TokenBucket } from '../token-bucket.ts';
import { NODE_STATUS_PERIOD_MS, type NodePlan } from './node-plan.ts';
import type { VNode } from './vnode.ts';

/** What we know of our own writes of a Node. */
export interface NodeMemory {
  statusWrittenAt: number;
  memoryWrittenAt: number;
  /** When it is its turn to tell its memory, which has moved. */
  memoryTurnAt: number | undefined;
}

/** A Node's metaspace is written at most this often. */
const MEMORY_PERIOD_MS = 10_000;
/**
 * So many Nodes at once, and then one each 200 ms: each such write is work for the API server, the scheduler and all
 * that watch Nodes, and when modules come to all bases it is not what anybody waits for.
 */
const MEMORY_TURNS = { burst: 20, refillMs: 200 };
/** What moves while there is much else to write is told so much later: it will move again. */
const BUSY_DELAY_MS = 30_000;

export class NodeMemories {
  /** Emptied when the VNode is removed, or has another leader. */
  readonly #byName = new Map<string, NodeMemory>();
  readonly #turns: TokenBucket;
  readonly #traffic: Pick<Traffic, 'isCalm'>;

  constructor(now: number, traffic: Pick<Traffic, 'isCalm'>) {
    this.#traffic = traffic;
    this.#turns = new TokenBucket(MEMORY_TURNS, now);
  }

  of({ nodeName, metAt }: VNode): NodeMemory {
    const known = this.#byName.get(nodeName);
    if (known) return known;
    const statusWrittenAt = spreadOf(nodeName, metAt);
    const memoryWrittenAt = Number.NEGATIVE_INFINITY;
    const memory = { statusWrittenAt, memoryWrittenAt, memoryTurnAt: undefined };
    this.#byName.set(nodeName, memory);
    return memory;
  }

  /** When a Node whose memory has moved may tell it: a turn, which it keeps until it has told it. */
  turnOf(memory: NodeMemory, now: number): number {
    memory.memoryTurnAt ??= this.#nextTurnOf(memory, now);
    return memory.memoryTurnAt;
  }

  #nextTurnOf({ memoryWrittenAt }: NodeMemory, now: number): number {
    // A Node that has none yet gets no Pod that requests memory.
    const isFirst = memoryWrittenAt === Number.NEGATIVE_INFINITY;
    const delayMs = isFirst || this.#traffic.isCalm ? 0 : BUSY_DELAY_MS;
    return Math.max(this.#turns.reserve(now) + delayMs, memoryWrittenAt + MEMORY_PERIOD_MS);
  }

  /** What a status that was written has told. */
  noteWrite(memory: NodeMemory, { status, writesMemory }: NodePlan, now: number): void {
    const told = (status?.status ?? {}) as Readonly<Record<string, unknown>>;
    if ('conditions' in told) memory.statusWrittenAt = now;
    if (!writesMemory && !('capacity' in told)) return;
    memory.memoryWrittenAt = now;
    memory.memoryTurnAt = undefined;
  }

  forget(nodeName: string): void {
    this.#byName.delete(nodeName);
  }
}

/** The periodic reports of Nodes that come to us together are each at a moment of its own. */
export function spreadOf(nodeName: string, now: number): number {
  return now - phaseOf(nodeName) * NODE_STATUS_PERIOD_MS;
}
