import type { Clock } from '../clock.ts';
import type { CachedNode } from '../kinds/vnode-object.ts';
import type { KubeClient } from '../kube/client.ts';
import { ifFound, unlessGone } from '../kube/transport/api-error.ts';
import { type Informer, objectKey } from '../kube/watch/informer-types.ts';
import type { Leadership } from '../leadership.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from '../metrics.ts';
import type { VPod } from '../pod/vpod.ts';
import { WorkQueue } from '../queue/work-queue.ts';
import type { VNodeStore } from './vnode.ts';

export interface LatePodsOptions {
  readonly api: Pick<KubeClient, 'getNode' | 'forceDeletePod'>;
  readonly informer: Informer<CachedNode>;
  readonly podInformer: Informer<VPod>;
  readonly store: VNodeStore;
  readonly leadership: Pick<Leadership, 'isMember'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** The scheduler's own watch may be this far behind after an outage of the API server, its back-off included. */
const REMEMBER_MS = 120_000;

/**
 * Deletes Pods that a scheduler with an old cache binds to a Node which this process has just deleted, so that their
 * owners make others at once; the garbage collection of Kubernetes takes a minute. A Node that stands again, or a base
 * that is heard again, keeps its Pods.
 */
export class LatePods {
  readonly #options: LatePodsOptions;
  readonly #queue: WorkQueue;
  /** When this process deleted a Node, oldest first. Emptied when the Node returns, and with time at each use. */
  readonly #removedAt = new Map<string, number>();

  constructor(options: LatePodsOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({
      ...options,
      name: 'late-pods',
      workers: 4,
      sync: (nodeName) => this.#sync(nodeName),
    });
    options.informer.addHandler({ onAdd: ({ name }) => void this.#removedAt.delete(name) });
    options.podInformer.addHandler({
      onAdd: (pod) => this.#onPod(pod),
      onUpdate: (_old, pod) => this.#onPod(pod),
    });
  }

  noteRemoval(nodeName: string): void {
    this.#removedAt.delete(nodeName);
    this.#removedAt.set(nodeName, this.#options.clock.now());
    this.#queue.add(nodeName);
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#queue.run(signal);
  }

  #onPod({ nodeName }: VPod): void {
    if (nodeName !== undefined && this.#removedAt.has(nodeName)) this.#queue.add(nodeName);
  }

  async #sync(nodeName: string): Promise<void> {
    this.#forgetOld();
    const { api, podInformer, leadership, logger } = this.#options;
    const pods = podInformer.byIndex('node', nodeName);
    if (pods.length === 0 || !this.#isGone(nodeName)) return;
    // The cache may lag behind another replica, or an admin, that has made the Node again.
    if (await this.#stands(nodeName)) {
      this.#removedAt.delete(nodeName);
      return;
    }
    const permit = (): boolean => leadership.isMember() && this.#isGone(nodeName);
    await Promise.all(
      pods.map((pod) => {
        logger.info({ node: nodeName, pod: objectKey(pod) }, 'pod was bound to a node that is deleted');
        return unlessGone(api.forceDeletePod(pod.namespace, pod.name, pod.uid, permit));
      }),
    );
  }

  /** Whether the Node is gone, as far as this process knows. */
  #isGone(nodeName: string): boolean {
    const { store, informer } = this.#options;
    return this.#removedAt.has(nodeName) && store.get(nodeName) === undefined && informer.get(nodeName) === undefined;
  }

  async #stands(nodeName: string): Promise<boolean> {
    return (await ifFound(this.#options.api.getNode(nodeName))) !== undefined;
  }

  #forgetOld(): void {
    for (const [name, removedAt] of this.#removedAt) {
      if (this.#options.clock.now() - removedAt < REMEMBER_MS) break;
      this.#removedAt.delete(name);
    }
  }
}
