import type { Clock } from '../clock.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Traffic } from '../kube/transport/concurrency-limit.ts';
import { objectKey } from '../kube/watch/informer-types.ts';
import type { Leadership } from '../leadership.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from '../metrics.ts';
import { WorkQueue } from '../queue/work-queue.ts';
import { TokenBucket } from '../token-bucket.ts';
import type { VNodeStore } from './vnode.ts';

export interface BasePodsOptions {
  readonly api: Pick<KubeClient, 'listPodsAt'>;
  readonly store: Pick<VNodeStore, 'get'>;
  readonly leadership: Pick<Leadership, 'isHeld'>;
  /** Traffic of other requests to the API server. */
  readonly traffic: Pick<Traffic, 'isCalm'>;
  /** The base runs in a Pod, which the VNode knows now. */
  readonly onFound: (nodeName: string) => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** The kubelet of a Pod may report its address later than the base that runs in it speaks. */
const FIRST_AFTER_MS = 5_000;
/**
 * Each question is a scan of all Pods in the memory of the API server. So there are few at a time, each base that runs in
 * no Pod takes one away, and a fleet of such bases costs no more than these.
 */
const QUESTIONS = { burst: 5, refillMs: 3_600_000 };
/** Delay of a question while there are many other requests. */
const BUSY_DELAY_MS = 10_000;

/**
 * Finds the Pod that a base runs in, by its address, so that its Node can name it. Asks once for each address of a
 * base, and not while bases of late ran in none; a failed question is asked again, and what is not known is not said.
 */
export class BasePods {
  readonly #options: BasePodsOptions;
  readonly #queue: WorkQueue;
  readonly #questions: TokenBucket;
  /** Nodes in the queue. Emptied by the answer, or when the VNode is removed. */
  readonly #wanted = new Set<string>();

  constructor(options: BasePodsOptions) {
    this.#options = options;
    this.#questions = new TokenBucket(QUESTIONS, options.clock.now());
    this.#queue = new WorkQueue({ ...options, name: 'base-pods', workers: 1, sync: (key) => this.#sync(key) });
  }

  /** Called again and again, for a base whose Pod is not known: there may be no question left for it now. */
  want(nodeName: string): void {
    if (this.#wanted.has(nodeName) || !this.#questions.tryTake(this.#options.clock.now())) return;
    this.#wanted.add(nodeName);
    this.#queue.addAfter(nodeName, FIRST_AFTER_MS);
  }

  forget(nodeName: string): void {
    if (this.#wanted.delete(nodeName)) this.#questions.refund();
    this.#queue.forget(nodeName);
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#queue.run(signal);
  }

  async #sync(nodeName: string): Promise<void> {
    const { api, store, leadership, traffic, onFound, logger } = this.#options;
    const vnode = store.get(nodeName);
    if (vnode === undefined || !leadership.isHeld(nodeName)) {
      this.forget(nodeName);
      return;
    }
    if (!traffic.isCalm) {
      this.#queue.addAfter(nodeName, BUSY_DELAY_MS);
      return;
    }
    const { ip } = vnode.place.base;
    const pods = await api.listPodsAt(ip);
    // Removed meanwhile, and its question given back: whoever has the name now gets a question of its own.
    if (store.get(nodeName) !== vnode) return;
    this.#wanted.delete(nodeName);
    // Two with one address: neither is known to be it.
    const [pod] = pods.length === 1 ? pods : [];
    const name = pod && objectKey({ namespace: pod.metadata.namespace ?? '', name: pod.metadata.name });
    vnode.process.foundIn({ ip, name });
    if (name === undefined) return;
    this.#questions.refund();
    logger.debug({ node: nodeName, pod: name }, 'pod of a base found');
    onFound(nodeName);
  }
}
