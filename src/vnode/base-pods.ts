import type { Clock } from '../clock.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Traffic } from '../kube/transport/concurrency-limit.ts';
import { objectKey } from '../kube/watch/informer-types.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from '../metrics.ts';
import { WorkQueue } from '../queue/work-queue.ts';
import { TokenBucket } from '../token-bucket.ts';
import type { VNodeStore } from './vnode.ts';

export interface BasePodsOptions {
  readonly api: Pick<KubeClient, 'listPodsAt'>;
  readonly store: Pick<VNodeStore, 'get'>;
  readonly leases: { isHeld(nodeName: string): boolean };
  /** Of other requests to the API server. */
  readonly traffic: Pick<Traffic, 'isCalm'>;
  /** The base runs in a Pod, which the VNode knows now. */
  readonly onFound: (nodeName: string) => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** The kubelet of a Pod may report its address later than the base that runs in it speaks. */
const FIRST_AFTER_MS = 5_000;
/** Each question is a scan of all Pods in the memory of the API server: a fleet that is found at once takes minutes. */
const TURNS = { burst: 5, refillMs: 3_000 };
/** While there are many other requests, nobody is asked about. */
const BUSY_DELAY_MS = 10_000;

/**
 * Finds the Pod that a base runs in, by its address, so that its Node can name it. Asks once for each address of a
 * base; a failed question is asked again, and what is not known is not said.
 */
export class BasePods {
  readonly #options: BasePodsOptions;
  readonly #queue: WorkQueue;
  readonly #turns: TokenBucket;
  /** Nodes in the queue. Emptied by the answer, or when the VNode is removed. */
  readonly #wanted = new Set<string>();

  constructor(options: BasePodsOptions) {
    this.#options = options;
    this.#turns = new TokenBucket(TURNS, options.clock.now());
    this.#queue = new WorkQueue({ ...options, name: 'base-pods', workers: 1, sync: (key) => this.#sync(key) });
  }

  want(nodeName: string): void {
    if (this.#wanted.has(nodeName)) return;
    this.#wanted.add(nodeName);
    const now = this.#options.clock.now();
    this.#queue.addAfter(nodeName, this.#turns.reserve(now) + FIRST_AFTER_MS - now);
  }

  forget(nodeName: string): void {
    this.#wanted.delete(nodeName);
    this.#queue.forget(nodeName);
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#queue.run(signal);
  }

  async #sync(nodeName: string): Promise<void> {
    const { api, store, leases, traffic, onFound, logger } = this.#options;
    const vnode = store.get(nodeName);
    if (vnode === undefined || !leases.isHeld(nodeName)) {
      this.#wanted.delete(nodeName);
      return;
    }
    if (!traffic.isCalm) {
      this.#queue.addAfter(nodeName, BUSY_DELAY_MS);
      return;
    }
    const { ip } = vnode.base;
    const pods = await api.listPodsAt(ip);
    this.#wanted.delete(nodeName);
    // Two with one address: neither is known to be it.
    const [pod] = pods.length === 1 ? pods : [];
    const name = pod && objectKey({ namespace: pod.metadata.namespace ?? '', name: pod.metadata.name });
    vnode.basePod = { ip, name };
    if (name === undefined) return;
    logger.debug({ node: nodeName, pod: name }, 'pod of a base found');
    onFound(nodeName);
  }
}
