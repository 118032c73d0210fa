import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../clock.ts';
import { subjectOf } from '../../kube/events/event-object.ts';
import type { EventRecorder } from '../../kube/events/event-recorder.ts';
import { secondsTime } from '../../kube/micro-time.ts';
import type { KubeObject, OwnerReference, ServiceObject } from '../../kube/objects.ts';
import { apiVersionOf, type ResourceClient, SERVICES } from '../../kube/resource.ts';
import { ifFound, isConflict, isNotFound } from '../../kube/transport/api-error.ts';
import type { Informer } from '../../kube/watch/informer-types.ts';
import type { Logger } from '../../logger.ts';
import type { Metrics } from '../../metrics.ts';
import type { Result } from '../../reconcile/reconciler.ts';
import {
  type CachedExportService,
  EXPORT_SERVICES,
  type ExportServiceObject,
  projectExportService,
} from './export-service.ts';
import type { ExportEntry, ExportTable } from './export-table.ts';
import { exportStatusOf } from './export-view.ts';
import { exportSettingsOf } from './exported-service.ts';

export interface ExportControllerOptions {
  readonly table: ExportTable;
  readonly exports: Informer<CachedExportService>;
  readonly client: ResourceClient<ExportServiceObject>;
  readonly services: Pick<ResourceClient<KubeObject>, 'get'>;
  readonly permit: () => boolean;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'exportWrites'>;
}

/** Each object is written once in this time at most. */
const WRITE_EVERY_MS = 1_000;
/** A cache that is behind is looked at again this soon. */
const LOOK_AGAIN_MS = 1_000;

/** Keeps one ExportService for each exported Service. A key is that of both. */
export class ExportController {
  readonly #options: ExportControllerOptions;
  /** When the status of an object was last written, by key. */
  readonly #writtenAt = new Map<string, number>();

  constructor(options: ExportControllerOptions) {
    this.#options = options;
  }

  async reconcile(key: string): Promise<Result | undefined> {
    const { table, exports } = this.#options;
    // What is written says who has a host from now on, so it has to rest on all that is stored.
    if (!table.isCurrent()) return { requeueAfterMs: LOOK_AGAIN_MS };
    const entry = table.get(key);
    const stored = exports.get(key);
    if (entry === undefined && stored === undefined) this.#writtenAt.delete(key);
    if (stored?.isDeleting) return undefined;
    try {
      if (entry === undefined) return stored && (await this.#remove(key, stored));
      if (stored === undefined) return await this.#create(entry);
      if (stored.controller?.uid === entry.uid && stored.serviceName === entry.name) {
        return await this.#write(entry, stored);
      }
      return isOwn(entry, stored) ? await this.#restore(entry, stored) : await this.#replace(entry, stored);
    } catch (error) {
      // Somebody else was faster: the caches are behind.
      if (!isConflict(error) && !isNotFound(error)) throw error;
      return { requeueAfterMs: LOOK_AGAIN_MS };
    }
  }

  async #create(entry: ExportEntry): Promise<Result | undefined> {
    const { client, exports, permit, logger } = this.#options;
    const { namespace, name, uid, key } = entry;
    const created = await client.create(
      {
        metadata: {
          namespace,
          name,
          ownerReferences: [ownerReferenceTo({ name, uid })],
        },
        spec: { serviceRef: { name } },
      },
      { permit },
    );
    logger.info({ exportService: key }, 'Service is exported');
    exports.upsert(created);
    return this.#write(entry, projectExportService(created));
  }

  /**
   * Handles an ExportService that exists already. One of an earlier Service of this name is deleted; one that somebody
   * else has made stays, and is reported.
   */
  async #replace(entry: ExportEntry, stored: CachedExportService): Promise<Result | undefined> {
    const { controller } = stored;
    const isOfEarlierService = controller?.kind === SERVICES.kind && controller.apiVersion === apiVersionOf(SERVICES);
    if (isOfEarlierService) {
      await this.#delete(stored);
      return { requeueAfterMs: LOOK_AGAIN_MS };
    }
    const { namespace, name } = entry;
    this.#options.recorder.event(
      subjectOf(SERVICES, entry),
      'Warning',
      'OutControl',
      `${EXPORT_SERVICES.kind} ${namespace}/${name} already exists and does not belong to this Service: it is not changed`,
    );
    return undefined;
  }

  /** Somebody has removed the owner reference, or changed the Service that it names. */
  async #restore({ namespace, name, uid }: ExportEntry, { resourceVersion }: CachedExportService): Promise<undefined> {
    const { client, exports, permit } = this.#options;
    const metadata = { resourceVersion, ownerReferences: [ownerReferenceTo({ name, uid })] };
    exports.upsert(
      await client.mergePatch({ namespace, name }, { metadata, spec: { serviceRef: { name } } }, { permit }),
    );
  }

  async #write(entry: ExportEntry, stored: CachedExportService): Promise<Result | undefined> {
    const { client, exports, permit, clock, metrics } = this.#options;
    const { key, namespace, name } = entry;
    const status = exportStatusOf({
      view: entry.view,
      conflicts: entry.conflicts,
      guestAt: entry.guestAt,
      generation: stored.generation,
      stored: stored.status,
      nowText: secondsTime(clock.wallTime()),
    });
    if (isDeepStrictEqual(status, stored.status)) return undefined;
    const waitMs = (this.#writtenAt.get(key) ?? Number.NEGATIVE_INFINITY) + WRITE_EVERY_MS - clock.now();
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    const { resourceVersion } = stored;
    const object = { metadata: { namespace, name, resourceVersion }, spec: { serviceRef: { name } }, status };
    try {
      exports.upsert(await client.update(object, { subresource: 'status', permit }));
    } finally {
      // After the answer: a request that waited on its way is never closer than that to the next one.
      this.#writtenAt.set(key, clock.now());
    }
    metrics.exportWrites.inc();
    this.#reportConflicts(entry, stored);
    return undefined;
  }

  /** Once for each group that does not take the Service any more. */
  #reportConflicts(entry: ExportEntry, { status }: CachedExportService): void {
    for (const [group, { winner, what }] of entry.conflicts) {
      if (status?.leftOutOf.includes(group)) continue;
      this.#options.recorder.event(
        subjectOf(SERVICES, entry),
        'Warning',
        'ExportConflict',
        `group ${group} does not take the Service: ${winner} has ${what}`,
      );
    }
  }

  /** The cache may not know of a Service yet that the API server has. */
  async #remove(key: string, stored: CachedExportService): Promise<Result | undefined> {
    const { services, permit, logger } = this.#options;
    const { namespace, name, controller } = stored;
    if (controller?.kind !== SERVICES.kind) return undefined;
    const service = await this.#serviceOf({ namespace, name }, services);
    const isExported = service !== undefined && exportSettingsOf(service) !== undefined;
    if (isExported && service.metadata.uid === controller.uid) return { requeueAfterMs: LOOK_AGAIN_MS };
    if (!permit()) return undefined;
    await this.#delete(stored);
    logger.info({ exportService: key }, 'Service is no longer exported');
    return undefined;
  }

  async #serviceOf(
    ref: { readonly namespace: string; readonly name: string },
    services: ExportControllerOptions['services'],
  ): Promise<ServiceObject | undefined> {
    return (await ifFound(services.get(ref))) as ServiceObject | undefined;
  }

  async #delete({ namespace, name, uid }: CachedExportService): Promise<void> {
    await this.#options.client.delete({ namespace, name }, { uid, permit: this.#options.permit });
  }
}

function ownerReferenceTo({ name, uid }: Pick<ExportEntry, 'name' | 'uid'>): OwnerReference {
  const { kind } = SERVICES;
  return { apiVersion: apiVersionOf(SERVICES), kind, name, uid, controller: true, blockOwnerDeletion: true };
}

/** Whether it was written for the Service before: no user may write its status. */
function isOwn({ uid }: ExportEntry, { controller, status }: CachedExportService): boolean {
  return controller === undefined ? status !== undefined : controller.uid === uid;
}
