import type { Clock } from '../clock.ts';
import type { Config } from '../config/config.ts';
import type { KubeObject, OwnerReference } from '../kube/objects.ts';
import type { RestLane } from '../kube/transport/rest-lane.ts';
import { SharedInformer } from '../kube/watch/informer.ts';
import type { CachedObject } from '../kube/watch/informer-types.ts';
import type { Logger } from '../logger.ts';
import { aborted, type Runnable } from '../manager.ts';
import type { Metrics } from '../metrics.ts';

/** What a controller watches: one constant for each watch, which also finds the informer. */
export interface WatchedKind<T extends CachedObject> {
  /** Names the cache in metrics and logs. */
  readonly kind: string;
  /** Path of the collection, e.g. `/api/v1/pods`. */
  readonly path: string;
  readonly labelSelector?: (config: Config) => string;
  readonly fieldSelector?: string;
  /** Keeps what is needed of an object. */
  readonly project: (raw: KubeObject, config: Config) => T;
  readonly indexers?: Readonly<Record<string, (object: T) => string | undefined>>;
  /** Number of objects in a page of a list that is not streamed. Default: see `listPages`. */
  readonly pageSize?: number;
  /** How long a watch may bring nothing before it is replaced, ms. Default: see `Reflector`. */
  readonly silenceMs?: (config: Config) => number | undefined;
}

/** Finds objects by their controller (`controlledBy`), and those of a namespace that have none. */
export const OWNER_INDEXERS = {
  controller: ({ namespace, controller }: Owned) => controller && controlledBy({ namespace, uid: controller.uid }),
  orphanNamespace: ({ controller, namespace }: Owned) => (controller === undefined ? namespace : undefined),
};

/**
 * The key of the index `controller`. An owner is in the namespace of what it owns; anybody who knows its UID could write
 * that into an object of another namespace.
 */
export function controlledBy({ namespace, uid }: OwnerKey): string {
  return `${namespace}/${uid}`;
}

/** The object that controls others. */
export type OwnerKey = Pick<CachedObject, 'namespace' | 'uid'>;

interface Owned {
  readonly namespace: string;
  readonly controller: OwnerReference | undefined;
}

export interface InformersOptions {
  readonly config: Config;
  readonly lane: RestLane;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** One informer for each watched kind of the process, however many controllers read it. */
export class Informers {
  readonly #options: InformersOptions;
  /** Each informer is of the type of its key. */
  readonly #byKind = new Map<object, SharedInformer<CachedObject>>();

  constructor(options: InformersOptions) {
    this.#options = options;
  }

  /** The informer of a kind; the first call makes it. */
  get<T extends CachedObject>(watched: WatchedKind<T>): SharedInformer<T> {
    const known = this.#byKind.get(watched);
    if (known) return known as unknown as SharedInformer<T>;
    const informer = this.#create(watched);
    this.#byKind.set(watched, informer as unknown as SharedInformer<CachedObject>);
    return informer;
  }

  hasSynced(): boolean {
    return [...this.#byKind.values()].every((informer) => informer.hasSynced());
  }

  /** Why caches are not whole yet: a line for each that an answer of the API server has said something about. */
  failures(): string[] {
    return [...this.#byKind.values()]
      .filter((informer) => !informer.hasSynced())
      .flatMap(({ kind, listFailure }) => (listFailure === undefined ? [] : [`${kind}: ${listFailure}`]));
  }

  /** All informers that exist. `gateOf`: what one has to wait for, by its path; undefined: nothing. */
  runnables(gateOf: (path: string) => Promise<unknown> | undefined = () => undefined): Runnable[] {
    return [...this.#byKind].map(([watched, informer]) => ({
      name: `${informer.kind} informer`,
      run: async (signal) => {
        const gate = gateOf((watched as WatchedKind<CachedObject>).path);
        if (gate !== undefined) await Promise.race([gate, aborted(signal)]);
        await informer.run(signal);
      },
    }));
  }

  /** See `Informer.wasRolledBack`: what one request shows is true of all kinds. */
  wasRolledBack(): void {
    for (const informer of this.#byKind.values()) informer.wasRolledBack();
  }

  #create<T extends CachedObject>(watched: WatchedKind<T>): SharedInformer<T> {
    const { config, ...shared } = this.#options;
    const { labelSelector, silenceMs, project, ...kind } = watched;
    return new SharedInformer({
      ...kind,
      ...shared,
      ...(labelSelector && { labelSelector: labelSelector(config) }),
      silenceMs: silenceMs?.(config),
      project: (raw) => project(raw, config),
    });
  }
}
