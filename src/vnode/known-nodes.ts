import type { Informer } from '../kube/informer-types.ts';
import type { CachedNode } from './vnode-object.ts';

/** The Nodes in the cache, and those that this process has just created, until the watch shows them. */
export class KnownNodes {
  readonly #informer: Informer<CachedNode>;
  /** As the answer to the create returned them. Emptied by the watch, and by `forgetCreated`. */
  readonly #created = new Map<string, CachedNode>();

  constructor(informer: Informer<CachedNode>) {
    this.#informer = informer;
    // Before all later handlers: what the watch says now counts.
    const forget = ({ name }: CachedNode): void => this.forgetCreated(name);
    informer.addHandler({ onAdd: forget, onUpdate: (_old, node) => forget(node), onDelete: forget });
  }

  get(nodeName: string): CachedNode | undefined {
    return this.#informer.get(nodeName) ?? this.#created.get(nodeName);
  }

  addCreated(node: CachedNode): void {
    this.#created.set(node.name, node);
  }

  /** The Node is gone, or another replica may have replaced it. */
  forgetCreated(nodeName: string): void {
    this.#created.delete(nodeName);
  }
}
