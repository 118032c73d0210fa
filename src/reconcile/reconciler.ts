import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../clock.ts';
import { ControllerError, type ErrorCode, messageOf } from '../errors.ts';
import type { Leader } from '../kube/leader.ts';
import type { CachedObject, Informer } from '../kube/watch/informer-types.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from '../metrics.ts';
import type { BackoffOptions } from '../queue/backoff.ts';
import { WorkQueue } from '../queue/work-queue.ts';

/** What a reconcile asks for. */
export interface Result {
  /**
   * Reconcile the key again after this long, ms, even if nothing happens. 0: there is more to do, and it is done when
   * the keys that wait have had their turn. Default: not before something happens.
   */
  readonly requeueAfterMs?: number;
}

/** When to look again at what no watch shows, such as a right that somebody grants, ms. */
export const UNWATCHED_AGAIN_MS = 30_000;

/** An error that no further try can mend: the key rests until its object, or what it depends on, changes. */
export class TerminalError extends ControllerError {
  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(code, message, options);
    this.name = 'TerminalError';
  }
}

/** Reconciles that follow each other in one turn of the event loop begin within this time. */
const TURN_MS = 10;

const RESULTS = ['success', 'requeue', 'error', 'terminal'] as const;
type Outcome = (typeof RESULTS)[number];

export interface ReconcilerOptions {
  /** In metrics and logs. */
  readonly name: string;
  /**
   * How many keys of one namespace are reconciled at a time; one key never twice at a time. Namespaces take turns and
   * share the workers. One without a key in work does not wait for the others: there are as many workers again for that.
   */
  readonly workers: number;
  /**
   * Brings the world of `key` to what it should be, from whatever state it is in. What it throws is tried again with a
   * growing delay, but for a TerminalError.
   */
  readonly reconcile: (key: string) => Promise<Result | undefined>;
  /**
   * Says whether this replica may act now. Default: always. Keys that come while it may not are dropped; when it comes
   * to lead, every key is looked at.
   */
  readonly leader?: Pick<Leader, 'isLeading' | 'addListener'>;
  /** Default 100 ms, doubled to 30 s. */
  readonly backoff?: BackoffOptions;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** Turns events about objects into keys. A key is `namespace/name`, or `name` of a cluster-scoped object. */
export interface KeySource<T extends CachedObject> {
  readonly informer: Informer<T>;
  /** The keys that an object concerns: its own, its owner's, those of objects that name it. */
  readonly keysOf: (object: T) => Iterable<string>;
  /** Whether an update changes nothing that a reconcile reads: it queues no key. Default: every update counts. */
  readonly isSame?: (old: T, object: T) => boolean;
}

/**
 * Reconciles the keys of one controller, level-triggered: an event only says which key to look at. Several events of
 * one key are one reconcile.
 */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #queue: WorkQueue;
  /** All keys that there are, for the start of a term. */
  readonly #allKeys: (() => Iterable<string>)[] = [];
  /** When the first reconcile of this turn of the event loop began. */
  #turnStartedAt: number | undefined;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({ ...options, groupOf: namespaceOf, sync: (key) => this.#sync(key) });
    for (const result of RESULTS) this.#count(result, 0);
    // Whatever happened before, every key is looked at.
    options.leader?.addListener({ onStarted: () => this.#enqueueAll(), onStopped: () => {} });
  }

  /** Queues the keys of each object that is added, changed or deleted, and of its former state. */
  watch<T extends CachedObject>({ informer, keysOf, isSame }: KeySource<T>): this {
    const enqueue = (object: T): void => {
      for (const key of keysOf(object)) this.enqueue(key);
    };
    informer.addHandler({
      onAdd: enqueue,
      onUpdate: (old, object) => {
        if (isSame?.(old, object)) return;
        enqueue(old);
        enqueue(object);
      },
      onDelete: enqueue,
    });
    return this.addKeys(() => informer.list().flatMap((object) => [...keysOf(object)]));
  }

  /** Keys that are looked at when this replica comes to lead, besides those of what is watched. */
  addKeys(keys: () => Iterable<string>): this {
    this.#allKeys.push(keys);
    return this;
  }

  enqueue(key: string): void {
    if (this.#isLeading()) this.#queue.add(key);
  }

  #enqueueAll(): void {
    for (const keys of this.#allKeys) for (const key of keys()) this.enqueue(key);
  }

  /** Works until `signal` is aborted; resolves when running work has ended. */
  run(signal: AbortSignal): Promise<void> {
    return this.#queue.run(signal);
  }

  /**
   * Whether a reconcile may begin in this turn of the event loop. Thousands that wait for nothing would otherwise keep
   * it from everything else: renewals of Leases, watches, probes.
   */
  #mayBegin(): boolean {
    const now = this.#options.clock.now();
    if (this.#turnStartedAt === undefined) {
      this.#turnStartedAt = now;
      setImmediate(() => {
        this.#turnStartedAt = undefined;
      });
    }
    return now - this.#turnStartedAt < TURN_MS;
  }

  async #sync(key: string): Promise<void> {
    while (!this.#mayBegin()) await nextTurn();
    // The replica that leads now looks at it.
    if (!this.#isLeading()) return;
    try {
      const { requeueAfterMs } = (await this.#options.reconcile(key)) ?? {};
      this.#count(requeueAfterMs === undefined ? 'success' : 'requeue');
      if (requeueAfterMs !== undefined) this.#queue.addAfter(key, requeueAfterMs);
    } catch (error) {
      if (!(error instanceof TerminalError)) {
        this.#count('error');
        throw error;
      }
      this.#count('terminal');
      const { name, logger } = this.#options;
      const fields = { controller: name, key, code: error.code, reason: messageOf(error) };
      logger.error(fields, 'reconcile failed for good: it is tried again when the object changes');
    }
  }

  #isLeading(): boolean {
    return this.#options.leader?.isLeading() ?? true;
  }

  #count(result: Outcome, by = 1): void {
    const { name, metrics } = this.#options;
    metrics.reconciles.inc({ controller: name, result }, by);
  }
}

/** Namespace of a key; keys of cluster-scoped objects are together one group. */
export function namespaceOf(key: string): string {
  return key.slice(0, Math.max(0, key.indexOf('/')));
}

export interface OwnerRef {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly controller?: boolean | undefined;
}

/** The key of the owner that controls an object, if that is of `group` and `kind`; its version may differ. */
export function controllerKeyOf(
  { namespace, owners }: { readonly namespace: string; readonly owners: readonly OwnerRef[] },
  { group, kind }: { readonly group: string; readonly kind: string },
): string | undefined {
  const owner = owners.find(({ controller }) => controller === true);
  if (owner?.kind !== kind || groupOf(owner.apiVersion) !== group) return undefined;
  return namespace === '' ? owner.name : `${namespace}/${owner.name}`;
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
}
