import type { Clock } from '../../../clock.ts';
import { secondsTime } from '../../../kube/micro-time.ts';
import type { Informer } from '../../../kube/watch/informer-types.ts';
import { type CatalogPod, livePodOf } from '../catalog-pod.ts';
import { RECORD_LIMIT } from '../platform-config/platform-config.ts';
import { type ExitedPod, MAX_LIVE } from './exited-record.ts';

/** A Pod that the watch no longer has. */
export interface Departure {
  readonly exit: ExitedPod;
  /** It was being deleted, or the API server was asked. A Pod that has lost its labels is no longer watched either. */
  readonly isCertain: boolean;
}

export interface DeparturesOptions {
  readonly informer: Informer<CatalogPod>;
  /** Whether there is a Module with these labels. */
  readonly isWanted: (labels: string) => boolean;
  readonly clock: Clock;
}

/**
 * Pods that have gone and are in no record yet, in the order in which they went. A process that does not lead keeps
 * them too: the one that leads may end before it has written them.
 */
export class Departures {
  readonly #options: DeparturesOptions;
  /** Departures by the labels of the Module, then by UID. Emptied by `settle` and `forget`. */
  readonly #byModule = new Map<string, Map<string, Departure>>();

  constructor(options: DeparturesOptions) {
    this.#options = options;
    options.informer.addHandler({
      onAdd: ({ module = '', uid }) => this.cancel(module, uid),
      onUpdate: (_old, { module = '', uid }) => this.cancel(module, uid),
      onDelete: (pod, isForgotten) => {
        if (!isForgotten) this.#add(pod);
      },
    });
  }

  /** The newest is last. */
  of(labels: string): Departure[] {
    return [...(this.#byModule.get(labels)?.values() ?? [])];
  }

  /** The API server has been asked: the Pod has gone. */
  confirm(labels: string, uid: string): void {
    const departures = this.#byModule.get(labels);
    const found = departures?.get(uid);
    if (found !== undefined) departures?.set(uid, { ...found, isCertain: true });
  }

  /** The Pod lives. */
  cancel(labels: string, uid: string): void {
    const departures = this.#byModule.get(labels);
    departures?.delete(uid);
    if (departures?.size === 0) this.#byModule.delete(labels);
  }

  /**
   * A record with these UIDs was written. It holds all that went before the newest of them: its writer has seen them
   * in the same order, and what it has not kept was too much for it.
   */
  settle(labels: string, recorded: ReadonlySet<string>): void {
    const all = this.of(labels).map(({ exit }) => exit.uid);
    const newest = all.findLastIndex((uid) => recorded.has(uid));
    for (const uid of all.slice(0, newest + 1)) this.cancel(labels, uid);
  }

  forget(labels: string): void {
    this.#byModule.delete(labels);
  }

  #add(pod: CatalogPod): void {
    const { isWanted, clock } = this.#options;
    const { module: labels, isDeleting, exit } = pod;
    if (labels === undefined || !isWanted(labels)) return;
    const departures = this.#byModule.get(labels) ?? new Map<string, Departure>();
    this.#byModule.set(labels, departures);
    const deleteTime = secondsTime(clock.wallTime());
    departures.set(pod.uid, { exit: { ...livePodOf(pod), deleteTime, ...exit }, isCertain: isDeleting });
    if (departures.size > MAX_LIVE) departures.delete(surplusOf(departures));
  }
}

/**
 * UID of the departure that is worth the least: the oldest certain one where a record can have all the others, else the
 * oldest that may be of a Pod which lives. A record loses no entry to Pods that have only lost their labels.
 */
function surplusOf(departures: ReadonlyMap<string, Departure>): string {
  const all = [...departures];
  const certain = all.filter(([, { isCertain }]) => isCertain);
  const uncertain = all.filter(([, { isCertain }]) => !isCertain);
  const [surplus] = certain.length > RECORD_LIMIT.max ? certain : uncertain;
  return surplus?.[0] ?? '';
}
