import type { Clock } from '../../../clock.ts';
import { secondsTime } from '../../../kube/micro-time.ts';
import type { PodObject } from '../../../kube/objects.ts';
import { apiVersionOf, type ResourceClient } from '../../../kube/resource.ts';
import { ifFound, isForbidden, unlessGone } from '../../../kube/transport/api-error.ts';
import type { Permit } from '../../../kube/transport/rest-lane.ts';
import { type Informer, objectKey } from '../../../kube/watch/informer-types.ts';
import { type Result, UNWATCHED_AGAIN_MS } from '../../../reconcile/reconciler.ts';
import { type CatalogPod, moduleKeyOfLabels, moduleLabelsKey } from '../catalog-pod.ts';
import type { CachedModule } from '../module/cached-module.ts';
import { MODULES } from '../module/module.ts';
import { type Departure, Departures } from './departures.ts';
import { missingPods, patchOf, type RecordChange, recordChange, type Urgency, urgencyOf } from './exited-pods.ts';
import {
  type CachedExitedRecord,
  type ExitedPod,
  type ExitedRecordObject,
  projectExitedRecord,
} from './exited-record.ts';

export interface ExitedRecordControllerOptions {
  readonly modules: Informer<CachedModule>;
  readonly pods: Informer<CatalogPod>;
  readonly records: Informer<CachedExitedRecord>;
  readonly client: Pick<ResourceClient<ExitedRecordObject>, 'create' | 'jsonPatch' | 'delete'>;
  readonly podClient: Pick<ResourceClient<PodObject>, 'get'>;
  /** Maximum number of entries of a record in a namespace. */
  readonly limitOf: (namespace: string) => number;
  readonly permit: Permit;
  readonly clock: Clock;
}

/** Pods that live are written this long after they have changed. */
const LIVE_DELAY_MS = 10_000;
/** Minimum time between two writes of one record: 100 Pods that go at once are a few writes. */
const EXIT_INTERVAL_MS = 1_000;

interface Timing {
  readonly writtenAt?: number;
  /** Since when Pods that live differ from the record. */
  readonly changedAt?: number;
}

/**
 * Keeps the record of each Module: which of its Pods have gone. A key is that of the Module. Every write names the
 * version that it was decided from: what a lost answer has written is seen before anything is added to it.
 */
export class ExitedRecordController {
  readonly #options: ExitedRecordControllerOptions;
  readonly #departures: Departures;
  /** Times on the clock, by key. An entry goes with its Module. */
  readonly #timings = new Map<string, Timing>();

  constructor(options: ExitedRecordControllerOptions) {
    this.#options = options;
    const { modules, pods, records, clock } = options;
    const isWanted = (labels: string): boolean => {
      const module = modules.get(moduleKeyOfLabels(labels));
      return module !== undefined && labelsOf(module) === labels;
    };
    this.#departures = new Departures({ informer: pods, isWanted, clock });
    const settle = (record: CachedExitedRecord): void => {
      const module = modules.get(objectKey(record));
      if (module === undefined || record.controller?.uid !== module.uid) return;
      this.#departures.settle(labelsOf(module), new Set(record.recorded?.uids));
    };
    records.addHandler({ onAdd: settle, onUpdate: (_old, record) => settle(record) });
    modules.addHandler({ onDelete: (module) => this.#departures.forget(labelsOf(module)) });
  }

  async reconcile(key: string): Promise<Result | undefined> {
    const module = this.#options.modules.get(key);
    if (module === undefined) this.#timings.delete(key);
    // The API server deletes the record with it.
    if (module === undefined || module.isDeleting) return undefined;
    try {
      return await this.#reconcile(key, module);
    } catch (error) {
      if (!isForbidden(error)) throw error;
      return { requeueAfterMs: UNWATCHED_AGAIN_MS };
    }
  }

  async #reconcile(key: string, module: CachedModule): Promise<Result | undefined> {
    const { pods, records, limitOf } = this.#options;
    const record = records.get(key);
    if (record !== undefined && (record.isDeleting || record.controller?.uid !== module.uid)) {
      // What the watch shows then brings the key again.
      if (!record.isDeleting) await this.#remove(record);
      return undefined;
    }
    const labels = labelsOf(module);
    const before = record?.recorded;
    // A Pod of a former Module of the name may still be there while it goes.
    const live = pods.byIndex('module', labels).filter((pod) => !pod.isDeleting || pod.createTime >= module.createdAt);
    const departures = this.#departuresOf(module, new Set(before?.live.map(({ uid }) => uid)));
    const exits = departures.map(({ exit }) => exit);
    const missing = missingPods({ before, pods: live, exits });
    const limit = limitOf(module.namespace);
    const all = [...missing.map((pod) => this.#foundMissing(pod)), ...exits];
    const waitMs = this.#waitMs(key, urgencyOf(before, recordChange({ before, pods: live, exits: all, limit })));
    if (waitMs > 0) return waitingFor(waitMs);
    const unproven = departures.filter(({ isCertain }) => !isCertain).map(({ exit }) => exit);
    const alive = await this.#aliveOf(module, [...missing, ...unproven]);
    for (const { uid } of unproven) {
      if (alive.has(uid)) this.#departures.cancel(labels, uid);
      else this.#departures.confirm(labels, uid);
    }
    const gone = all.filter(({ uid }) => !alive.has(uid));
    const change = recordChange({ before, pods: live, exits: gone, limit });
    const remainingMs = this.#waitMs(key, urgencyOf(before, change));
    if (remainingMs > 0) return waitingFor(remainingMs);
    await this.#write(key, record ?? (await this.#create(module)), change);
    return undefined;
  }

  /** Those of Pods that are younger than the Module, or that its record has: others were of a former Module of the name. */
  #departuresOf(module: CachedModule, known: ReadonlySet<string>): Departure[] {
    const labels = labelsOf(module);
    const isOwn = ({ exit }: Departure): boolean => exit.createTime >= module.createdAt || known.has(exit.uid);
    const all = this.#departures.of(labels);
    for (const departure of all) if (!isOwn(departure)) this.#departures.cancel(labels, departure.exit.uid);
    return all.filter(isOwn);
  }

  /** How long a write of the record has to wait, ms; Infinity: nothing is to be written. */
  #waitMs(key: string, urgency: Urgency): number {
    const now = this.#options.clock.now();
    const { writtenAt = Number.NEGATIVE_INFINITY, changedAt = now } = this.#timings.get(key) ?? {};
    const exitsAt = writtenAt + EXIT_INTERVAL_MS;
    if (urgency === 'None') {
      if (exitsAt > now) this.#timings.set(key, { writtenAt });
      else this.#timings.delete(key);
      return Number.POSITIVE_INFINITY;
    }
    this.#timings.set(key, { writtenAt, changedAt });
    return (urgency === 'Exits' ? exitsAt : changedAt + LIVE_DELAY_MS) - now;
  }

  /** UIDs of those that there still are: they have lost the labels by which the watch selects. */
  async #aliveOf(
    { namespace }: CachedModule,
    pods: readonly { readonly name: string; readonly uid: string }[],
  ): Promise<ReadonlySet<string>> {
    const { podClient } = this.#options;
    const found = await Promise.all(
      pods.map(async ({ name, uid }) => {
        const pod = await ifFound(podClient.get({ namespace, name }));
        return pod?.metadata.uid === uid ? [uid] : [];
      }),
    );
    return new Set(found.flat());
  }

  #foundMissing(pod: Omit<ExitedPod, 'deleteTime'>): ExitedPod {
    return { ...pod, deleteTime: secondsTime(this.#options.clock.wallTime()), foundMissing: true };
  }

  async #create({ namespace, name, uid, spec }: CachedModule): Promise<CachedExitedRecord> {
    const { client, permit, records } = this.#options;
    const owner = { apiVersion: apiVersionOf(MODULES), kind: MODULES.kind, name, uid, controller: true };
    const { app, module } = spec;
    const object: ExitedRecordObject = {
      metadata: { namespace, name, ownerReferences: [owner] },
      spec: { app, module },
    };
    const created = await client.create(object, { permit });
    records.upsert(created);
    return projectExitedRecord(created);
  }

  async #write(key: string, record: CachedExitedRecord, change: RecordChange): Promise<void> {
    const { namespace, name } = record;
    const { client, permit, records, clock } = this.#options;
    const patch = patchOf(record, change);
    const answer = await client.jsonPatch({ namespace, name }, patch, { subresource: 'status', permit });
    this.#timings.set(key, { writtenAt: clock.now() });
    records.upsert(answer);
  }

  /** A record of a former Module with the name. The API server would delete it too, some time. */
  async #remove({ namespace, name, uid }: CachedExitedRecord): Promise<void> {
    const { client, permit } = this.#options;
    await unlessGone(client.delete({ namespace, name }, { uid, permit }));
  }
}

function waitingFor(ms: number): Result | undefined {
  return ms === Number.POSITIVE_INFINITY ? undefined : { requeueAfterMs: ms };
}

function labelsOf({ namespace, spec }: CachedModule): string {
  return moduleLabelsKey(namespace, spec);
}
