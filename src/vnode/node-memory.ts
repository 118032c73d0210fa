import { phaseOf } from '../queue/phase.ts';
import { NODE_STATUS_PERIOD_MS } from './node-plan.ts';
import type { VNode } from './vnode.ts';
import type { CachedNode } from './vnode-object.ts';

/** What we know of our own writes of a Node. */
export interface NodeMemory {
  /** The Node as our own POST returned it, until the watch brings it. */
  created: CachedNode | undefined;
  statusWrittenAt: number;
  memoryWrittenAt: number;
}

export class NodeMemories {
  /** Emptied when the VNode is removed, or has another leader. */
  readonly #byName = new Map<string, NodeMemory>();

  get(nodeName: string): NodeMemory | undefined {
    return this.#byName.get(nodeName);
  }

  of({ nodeName, metAt }: VNode): NodeMemory {
    const known = this.#byName.get(nodeName);
    if (known) return known;
    const statusWrittenAt = spreadOf(nodeName, metAt);
    const memory = { created: undefined, statusWrittenAt, memoryWrittenAt: Number.NEGATIVE_INFINITY };
    this.#byName.set(nodeName, memory);
    return memory;
  }

  forget(nodeName: string): void {
    this.#byName.delete(nodeName);
  }
}

/** The periodic reports of Nodes that come to us together are each at a moment of its own. */
export function spreadOf(nodeName: string, now: number): number {
  return now - phaseOf(nodeName) * NODE_STATUS_PERIOD_MS;
}
