import type { VNode } from './vnode.ts';

/** The VNodes of this process, by node name. A VNode leaves when its base is dead and its Node is gone. */
export class VNodeStore {
  readonly #byName = new Map<string, VNode>();

  get(nodeName: string): VNode | undefined {
    return this.#byName.get(nodeName);
  }

  add(vnode: VNode): void {
    this.#byName.set(vnode.nodeName, vnode);
  }

  remove(vnode: VNode): void {
    if (this.#byName.get(vnode.nodeName) === vnode) this.#byName.delete(vnode.nodeName);
  }

  values(): IterableIterator<VNode> {
    return this.#byName.values();
  }

  get size(): number {
    return this.#byName.size;
  }
}
