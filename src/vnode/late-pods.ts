import type { Clock } from '../clock.ts';
import { messageOf } from '../errors.ts';
import type { KubeClient } from '../kube/client.ts';
import { type Informer, objectKey } from '../kube/informer-types.ts';
import type { Logger } from '../logger.ts';
import type { VPod } from '../pod/vpod.ts';
import type { CachedNode } from './vnode-object.ts';

export interface LatePodsOptions {
  readonly api: KubeClient;
  readonly informer: Informer<CachedNode>;
  readonly podInformer: Informer<VPod>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The scheduler's own watch may be this far behind after an outage of the API server, its back-off included. */
const REMEMBER_MS = 120_000;

/**
 * Pods that are bound to a Node which we have just deleted, by a scheduler that does not know it yet. Kubernetes' own
 * garbage collection takes a minute; here they go at once, so that their owners make others. Once is enough: what
 * cannot be deleted now is left to it.
 */
export class LatePods {
  readonly #options: LatePodsOptions;
  /** When we deleted a Node, oldest first. Emptied with time, at each use. */
  readonly #removedAt = new Map<string, number>();

  constructor(options: LatePodsOptions) {
    this.#options = options;
    options.podInformer.addHandler({
      onAdd: (pod) => this.#onPod(pod),
      onUpdate: (_old, pod) => this.#onPod(pod),
    });
  }

  noteRemoval(nodeName: string): void {
    this.#removedAt.delete(nodeName);
    this.#removedAt.set(nodeName, this.#options.clock.now());
  }

  #onPod(pod: VPod): void {
    if (this.#removedAt.size === 0 || pod.nodeName === undefined) return;
    const { informer, clock, api, logger } = this.#options;
    for (const [name, removedAt] of this.#removedAt) {
      if (clock.now() - removedAt < REMEMBER_MS) break;
      this.#removedAt.delete(name);
    }
    if (!this.#removedAt.has(pod.nodeName) || informer.get(pod.nodeName)) return;
    const fields = { node: pod.nodeName, pod: objectKey(pod) };
    logger.info(fields, 'pod was bound to a node that is deleted');
    api.forceDeletePod(pod.namespace, pod.name, pod.uid).catch((error: unknown) => {
      logger.debug({ ...fields, reason: messageOf(error) }, 'pod of a deleted node could not be deleted');
    });
  }
}
