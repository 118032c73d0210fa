import { nodeNameOf } from '../labels.ts';
import { addressOf } from './tunnel-claim.ts';
import { UnprovenBases } from './unproven-bases.ts';
import type { VNode } from './vnode.ts';

/** The VNodes of this process, by node name. A VNode leaves when its base is dead and its Node is gone. */
export class VNodeStore {
  /** Bases that are no VNodes yet. */
  readonly unproven = new UnprovenBases();
  readonly #byName = new Map<string, VNode>();
  /** Who was heard last at an address over HTTP; emptied with the VNode. */
  readonly #byAddress = new Map<string, VNode>();

  get(nodeName: string): VNode | undefined {
    return this.#byName.get(nodeName);
  }

  /** Whether the base of a Node was heard here not long ago. */
  isHeard(nodeName: string): boolean {
    const vnode = this.#byName.get(nodeName);
    return vnode?.wasHeard === true && vnode.liveness === 'Reachable';
  }

  /** Who a base is: one with a VNode, one that has to answer first, or anybody. */
  senderOf(identity: string): 'Known' | 'Asked' | 'Unknown' {
    const nodeName = nodeNameOf(identity);
    if (this.#byName.has(nodeName)) return 'Known';
    return this.unproven.get(nodeName) ? 'Asked' : 'Unknown';
  }

  add(vnode: VNode): void {
    this.unproven.delete(vnode.nodeName);
    this.#byName.set(vnode.nodeName, vnode);
  }

  remove(vnode: VNode): void {
    if (this.#byName.get(vnode.nodeName) === vnode) this.#byName.delete(vnode.nodeName);
    this.#leave(vnode);
  }

  /** Who was heard last at an address over HTTP. */
  heardAt(address: string | undefined): VNode | undefined {
    return address === undefined ? undefined : this.#byAddress.get(address);
  }

  /** The VNode was heard where it says it is. Returns the one that was heard there before, if that is another. */
  settle(vnode: VNode): VNode | undefined {
    const address = addressOf(vnode);
    if (address !== vnode.settledAt) this.#leave(vnode);
    if (address === undefined) return undefined;
    const before = this.#byAddress.get(address);
    if (before === vnode) return undefined;
    this.#byAddress.set(address, vnode);
    vnode.settledAt = address;
    return before;
  }

  values(): IterableIterator<VNode> {
    return this.#byName.values();
  }

  get size(): number {
    return this.#byName.size;
  }

  #leave(vnode: VNode): void {
    const { settledAt } = vnode;
    if (settledAt !== undefined && this.#byAddress.get(settledAt) === vnode) this.#byAddress.delete(settledAt);
    vnode.settledAt = undefined;
  }
}
