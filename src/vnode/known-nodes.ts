import type { CachedNode } from '../kinds/vnode-object.ts';
import type { Informer } from '../kube/watch/informer-types.ts';
import { NODE_TTL_ANNOTATION } from '../labels.ts';
import { ttlSecondsOf } from './node-object.ts';

/** The Nodes in the cache, and those that this process has just created, until the watch shows them. */
export class KnownNodes {
  readonly #informer: Informer<CachedNode>;
  /** Created Nodes, as the answer to the create returned them. Emptied by the watch, and by `forgetCreated`. */
  readonly #created = new Map<string, CachedNode>();
  /** How many are in the cache. */
  #cached = 0;
  /** TTL that a Node showed last. */
  #ttlSeconds = 0;

  constructor(informer: Informer<CachedNode>) {
    this.#informer = informer;
    // Before all later handlers: what the watch says now counts.
    const see = ({ name, annotations }: CachedNode): void => {
      this.forgetCreated(name);
      const seconds = Number(annotations[NODE_TTL_ANNOTATION] ?? Number.NaN);
      if (seconds >= 0) this.#ttlSeconds = seconds;
    };
    informer.addHandler({
      onAdd: (node) => {
        this.#cached++;
        see(node);
      },
      onUpdate: (_old, node) => see(node),
      onDelete: ({ name }) => {
        this.#cached--;
        this.forgetCreated(name);
      },
    });
  }

  /** See `ttlSecondsOf`. */
  ttlSecondsOfNext(): number {
    return ttlSecondsOf(this.#cached + this.#created.size + 1, this.#ttlSeconds);
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
