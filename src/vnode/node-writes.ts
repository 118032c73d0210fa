import type { Traffic } from '../kube/transport/concurrency-limit.ts';
import { phaseOf } from '../queue/phase.ts';
import { TokenBucket } from '../token-bucket.ts';
import { NODE_STATUS_PERIOD_MS, type NodePlan } from './node-plan.ts';
import type { VNode } from './vnode.ts';

/** What this process has written of a Node, and when. */
export interface NodeWrite {
  statusWrittenAt: number;
  metaspaceWrittenAt: number;
  /** When it is the Node's turn to have its metaspace written, which has moved. */
  metaspaceTurnAt: number | undefined;
}

/** A Node's metaspace is written at most this often. */
const METASPACE_PERIOD_MS = 10_000;
/** This many Nodes at once have their metaspace written. */
const METASPACE_BURST = 20;
/**
 * Then the others, one after the other, all of them in the time after which an unchanged status is written too: each
 * write is work for the API server, the scheduler and everybody who watches Nodes. A small fleet needs less time.
 */
const METASPACE_ROUND_MS = NODE_STATUS_PERIOD_MS;
const LONGEST_TURN_MS = 600;
/** Turns of Nodes that have no memory yet: the scheduler gives them no Pod that requests some. */
const FIRST_TURNS = { burst: METASPACE_BURST, refillMs: 200 };
/** Time that metaspace that has moved waits for its turn while there is much else to write: it will move again. */
const BUSY_DELAY_MS = 30_000;
/** But no longer than this after the last time. */
const BUSY_AT_MOST_MS = 120_000;

export interface NodeWritesOptions {
  readonly traffic: Pick<Traffic, 'isCalm'>;
  readonly vnodeCount: () => number;
}

export class NodeWrites {
  /** Emptied when the VNode is removed, or has another leader. */
  readonly #byName = new Map<string, NodeWrite>();
  readonly #turns: TokenBucket;
  readonly #firstTurns: TokenBucket;
  readonly #traffic: Pick<Traffic, 'isCalm'>;

  constructor(now: number, { traffic, vnodeCount }: NodeWritesOptions) {
    this.#traffic = traffic;
    const refillMs = (): number => Math.min(LONGEST_TURN_MS, METASPACE_ROUND_MS / vnodeCount());
    this.#turns = new TokenBucket({ burst: METASPACE_BURST, refillMs }, now);
    this.#firstTurns = new TokenBucket(FIRST_TURNS, now);
  }

  /** `wasWritten`: another process has written the metaspace of the Node, nobody knows when. */
  of({ nodeName, life }: VNode, wasWritten = false): NodeWrite {
    const known = this.#byName.get(nodeName);
    if (known) return known;
    const { metAt } = life;
    const statusWrittenAt = spreadOf(nodeName, metAt);
    const metaspaceWrittenAt = wasWritten ? metAt : Number.NEGATIVE_INFINITY;
    const write = { statusWrittenAt, metaspaceWrittenAt, metaspaceTurnAt: undefined };
    this.#byName.set(nodeName, write);
    return write;
  }

  /**
   * When the metaspace of a Node that has moved may be written: a turn, which the Node keeps until the write, or the
   * time to ask for one.
   */
  turnOf(write: NodeWrite, now: number): number {
    const { metaspaceWrittenAt } = write;
    const isFirst = metaspaceWrittenAt === Number.NEGATIVE_INFINITY;
    const mayWait = now - metaspaceWrittenAt < BUSY_AT_MOST_MS;
    if (write.metaspaceTurnAt === undefined && mayWait && !this.#traffic.isCalm) return now + BUSY_DELAY_MS;
    const turns = isFirst ? this.#firstTurns : this.#turns;
    write.metaspaceTurnAt ??= Math.max(turns.reserve(now), metaspaceWrittenAt + METASPACE_PERIOD_MS);
    return write.metaspaceTurnAt;
  }

  /** Notes what a write of the status has brought. */
  noteWrite(write: NodeWrite, { status, writesMetaspace }: NodePlan, now: number): void {
    const written = (status?.status ?? {}) as Readonly<Record<string, unknown>>;
    if ('conditions' in written) write.statusWrittenAt = now;
    if (!writesMetaspace && !('capacity' in written)) return;
    write.metaspaceWrittenAt = now;
    write.metaspaceTurnAt = undefined;
  }

  forget(nodeName: string): void {
    this.#byName.delete(nodeName);
  }
}

/** Spreads the periodic reports of Nodes that come together. */
export function spreadOf(nodeName: string, now: number): number {
  return now - phaseOf(nodeName) * NODE_STATUS_PERIOD_MS;
}
