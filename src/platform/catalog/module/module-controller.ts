import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../../clock.ts';
import { ControllerError, messageOf } from '../../../errors.ts';
import type { EventRecorder } from '../../../kube/events/event-recorder.ts';
import { mergePatchOf } from '../../../kube/merge-patch.ts';
import { secondsTime } from '../../../kube/micro-time.ts';
import type { ResourceClient } from '../../../kube/resource.ts';
import { ApiError, ifFound, isConflict, isForbidden, isRetriable } from '../../../kube/transport/api-error.ts';
import type { Permit } from '../../../kube/transport/rest-lane.ts';
import type { Informer } from '../../../kube/watch/informer-types.ts';
import type { Logger } from '../../../logger.ts';
import type { EventDefinition } from '../../../reconcile/controller-definition.ts';
import type { Result } from '../../../reconcile/reconciler.ts';
import { type CatalogPod, moduleLabelsKey } from '../catalog-pod.ts';
import {
  type ComposedObject,
  type ComposedRelease,
  compose,
  composeService,
  replicaFaultsOf,
  selectorLabelsOf,
  workloadOf,
} from '../compose/compose.ts';
import { podCountsOf } from '../compose/composed-object.ts';
import type { Composed, Composer, Restored } from '../compose/composer.ts';
import type { CachedModuleRelease } from '../release/module-release.ts';
import { type CachedModule, moduleSubject } from './cached-module.ts';
import type { ModuleObject, WorkloadKind } from './module.ts';
import { MODULE_ROLLBACK_EVENTS, type ModuleRollbackOptions, rollBack } from './module-rollback.ts';
import { moduleStatusOf, type Outcome, problemsOf } from './module-status.ts';
import type { ModuleStatus } from './module-status-schema.ts';
import { releaseInForce } from './release-in-force.ts';

export interface ModuleControllerOptions {
  readonly modules: Informer<CachedModule>;
  readonly releases: Informer<CachedModuleRelease>;
  readonly workloads: Readonly<Record<WorkloadKind, Composer>>;
  readonly services: Composer;
  readonly pods: Informer<CatalogPod>;
  readonly client: Pick<ResourceClient<ModuleObject>, 'get' | 'mergePatch' | 'fieldManager'>;
  readonly permit: Permit;
  readonly recorder: EventRecorder;
  /** ENV of Modules that name none. */
  readonly env: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

export const MODULE_EVENTS: readonly EventDefinition[] = [
  ...MODULE_ROLLBACK_EVENTS,
  {
    about: 'Module',
    type: 'Normal',
    reasons: ['Released'],
    meaning: 'A release has come into force: the workload has its jar now.',
  },
  {
    about: 'Module',
    type: 'Warning',
    reasons: ['ReleaseMissing'],
    meaning: 'Nobody has published the release that the Module names. What was in force runs on.',
  },
  {
    about: 'Module',
    type: 'Warning',
    reasons: ['Restored'],
    meaning: 'Somebody else has changed a field that the Module composes. The change was undone.',
  },
  {
    about: 'Module',
    type: 'Warning',
    reasons: ['Contested'],
    meaning: 'Somebody else changes a field that the Module composes again and again. It is left alone for a minute.',
  },
  {
    about: 'Module',
    type: 'Warning',
    reasons: ['NotComposed'],
    meaning: 'The workload or the Service of a Module could not be written. The message says why.',
  },
];

/** A right that is missing may be granted at any time, and nothing shows that. */
const LOOK_AGAIN_MS = 30_000;
/** Many Pods that change one after the other are one write of the problems. */
const PROBLEMS_EVERY_MS = 5_000;
/** The number of failed tries after which the status says so. */
const SHOWN_FAILURES = 3;

interface Reconciled {
  readonly outcome: Outcome;
  /** Whether the workload is that of `release` now. */
  readonly isComposed: boolean;
  readonly error?: Error | undefined;
  /** The release in force. */
  readonly release?: ComposedRelease | undefined;
  readonly missing?: string | undefined;
  readonly contested?: string | undefined;
  readonly requeueAfterMs?: number | undefined;
}

interface Wanted {
  readonly outcome: Outcome;
  /** Undefined: it stays as it is. */
  readonly workload?: ComposedObject | 'Remove';
}

/** Brings the workload and the Service of each Module to what it says. A key is that of all three. */
export class ModuleController {
  readonly #options: ModuleControllerOptions;
  /** Times of the last status writes by key, on the clock. An entry goes with its Module. */
  readonly #reportedAt = new Map<string, number>();
  /** Numbers of tries in a row that got no answer, by key. An entry goes with a good one, and with its Module. */
  readonly #failures = new Map<string, number>();

  constructor(options: ModuleControllerOptions) {
    this.#options = options;
  }

  async reconcile(key: string): Promise<Result | undefined> {
    const module = this.#options.modules.get(key);
    if (module === undefined) {
      this.#reportedAt.delete(key);
      this.#failures.delete(key);
    }
    // The API server deletes what it owns.
    if (module === undefined || module.isDeleting) return undefined;
    const result = await (module.spec.rollbackTo === undefined
      ? this.#compose(key, module)
      : this.#rollBack(key, module));
    // The watch brings what was written.
    if (result === undefined) return undefined;
    const { error } = result;
    const failures = error === undefined ? 0 : (this.#failures.get(key) ?? 0) + 1;
    if (failures === 0) this.#failures.delete(key);
    else this.#failures.set(key, failures);
    // A conflict or a lost answer is over with the next try. Only what lasts is shown.
    if (error !== undefined && failures < SHOWN_FAILURES) throw error;
    const waitMs = await this.#report(key, module, result);
    if (error !== undefined) throw error;
    const delays = [result.requeueAfterMs, waitMs].filter((ms) => ms !== undefined);
    return delays.length === 0 ? undefined : { requeueAfterMs: Math.min(...delays) };
  }

  /** Undefined: it was done. */
  async #rollBack(key: string, module: CachedModule): Promise<Reconciled | undefined> {
    const { client, permit, recorder, releases } = this.#options;
    const subject = moduleSubject(module);
    const published = releases.get(key)?.spec;
    const report: ModuleRollbackOptions['report'] = (...event) => recorder.event(subject, ...event);
    const part = await partOf(module, async () => {
      await rollBack(module, { client, published, permit, report });
      return undefined;
    });
    if (part.error !== undefined) throw part.error;
    if (part.problem === undefined) return undefined;
    const { requeueAfterMs } = part;
    return { outcome: part.problem, isComposed: false, release: module.status?.release, requeueAfterMs };
  }

  async #compose(key: string, module: CachedModule): Promise<Reconciled> {
    const { releases, env } = this.#options;
    const { spec, annotations, status } = module;
    const published = releases.get(key)?.spec;
    const inForce = releaseInForce({
      spec,
      annotations,
      before: status?.release,
      history: status?.history,
      published,
    });
    const missing = inForce.state === 'Missing' ? inForce.id : undefined;
    if (inForce.state === 'None') {
      const outcome: Outcome = { reason: 'NoRelease', message: 'release is not set: there are no Pods' };
      return this.#write(key, module, { outcome, workload: 'Remove' });
    }
    const { release } = inForce;
    if (release === undefined) {
      const message = `release ${missing} has no image, and no ModuleRelease ${module.name} has it`;
      return { ...(await this.#write(key, module, { outcome: { reason: 'ReleaseMissing', message } })), missing };
    }
    const composition = compose({ module, release, env });
    if ('fault' in composition) {
      const outcome: Outcome = { reason: 'NotComposable', message: composition.fault };
      return { ...(await this.#write(key, module, { outcome })), missing, release: status?.release };
    }
    const outcome: Outcome = { reason: 'Composed', message: '' };
    const written = await this.#write(key, module, { outcome, workload: composition.workload });
    const next = written.isComposed ? { ...release, version: composition.version } : status?.release;
    return { ...written, missing, release: next };
  }

  /** Writes the Service, and the workload unless it stays as it is. One that fails does not hold up the other. */
  async #write(key: string, module: CachedModule, { outcome, workload }: Wanted): Promise<Reconciled> {
    const { workloads, services } = this.#options;
    const composer = workloads[workloadOf(module.spec)];
    const service = composeService(module);
    const isWanted = () => this.#isWanted(module);
    const ofWorkload = await partOf(module, async () => {
      if (workload === 'Remove') await this.#remove(composer, key, module);
      else if (workload !== undefined) return composer.compose(workload, isWanted);
      return undefined;
    });
    const ofService = await partOf(module, async () => {
      if (service !== undefined) return services.compose(service, isWanted);
      await this.#remove(services, key, module);
      return undefined;
    });
    const parts = [ofWorkload, ofService];
    for (const { restored } of parts) if (restored !== undefined) this.#reportRestored(module, restored);
    const delays = parts.flatMap(({ requeueAfterMs }) => requeueAfterMs ?? []);
    const error = ofWorkload.error ?? ofService.error;
    const unavailable: Outcome | undefined =
      error === undefined ? undefined : { reason: 'Unavailable', message: `it is tried again: ${messageOf(error)}` };
    return {
      outcome: ofWorkload.problem ?? ofService.problem ?? unavailable ?? outcome,
      isComposed: outcome.reason === 'Composed' && ofWorkload.problem === undefined && ofWorkload.error === undefined,
      contested: ofWorkload.contested ?? ofService.contested,
      requeueAfterMs: delays.length === 0 ? undefined : Math.min(...delays),
      error,
    };
  }

  /** Whether there still is the Module. One without a status has composed nothing yet. */
  async #isWanted({ namespace, name, uid, status }: CachedModule): Promise<boolean> {
    if (status === undefined) return true;
    const found = await ifFound(this.#options.client.get({ namespace, name }));
    return found?.metadata.uid === uid && found.metadata.deletionTimestamp === undefined;
  }

  #reportRestored(module: CachedModule, { field, manager, what }: NonNullable<Part['restored']>): void {
    const message = `${manager} has changed ${field} of ${what}, which this Module composes: it was changed back`;
    this.#options.recorder.event(moduleSubject(module), 'Warning', 'Restored', message);
  }

  async #remove(composer: Composer, key: string, module: CachedModule): Promise<void> {
    const live = composer.find(key);
    if (live !== undefined) await composer.remove(live, module.uid);
  }

  /** Returns how long a change has to wait, ms; undefined: the status is as it should be. */
  async #report(key: string, module: CachedModule, result: Reconciled): Promise<number | undefined> {
    const { workloads, pods, clock, client, permit, modules } = this.#options;
    const kind = workloadOf(module.spec);
    const live = workloads[kind].find(key);
    const isOwn = live !== undefined && live.controller?.uid === module.uid;
    const { outcome, isComposed, release, missing, contested } = result;
    const status = moduleStatusOf({
      generation: module.generation,
      before: module.status,
      selector: selectorOf(module),
      outcome: withWarnings(outcome, module),
      counts: isOwn && live ? podCountsOf(kind, live) : undefined,
      isComposed,
      release,
      problems: problemsOf(pods.byIndex('module', moduleLabelsKey(module.namespace, module.spec))),
      missing,
      contested,
      now: secondsTime(clock.wallTime()),
    });
    if (isDeepStrictEqual(status, module.status)) return undefined;
    const { problems } = status;
    const isOfProblems = isDeepStrictEqual({ ...module.status, problems }, { ...status, problems });
    const waitMs = (this.#reportedAt.get(key) ?? Number.NEGATIVE_INFINITY) + PROBLEMS_EVERY_MS - clock.now();
    if (isOfProblems && waitMs > 0) return waitMs;
    const { namespace, name, uid } = module;
    const patch = { metadata: { uid }, status: mergePatchOf(module.status ?? {}, status) };
    const answer = await client.mergePatch({ namespace, name }, patch, { subresource: 'status', permit });
    this.#reportedAt.set(key, clock.now());
    modules.upsert(answer);
    this.#reportChange(module, status);
    return undefined;
  }

  /** Events for the changes between two statuses. */
  #reportChange(module: CachedModule, status: ModuleStatus): void {
    const { recorder } = this.#options;
    const subject = moduleSubject(module);
    const before = module.status;
    const { release } = status;
    if (release !== undefined && (release.id !== before?.release?.id || release.image !== before.release.image)) {
      recorder.event(subject, 'Normal', 'Released', `release ${release.id} is in force: ${release.image}`);
    }
    for (const { type, status: value, reason, message } of status.conditions) {
      const former = before?.conditions.find((condition) => condition.type === type);
      if (former?.status === value && former.reason === reason) continue;
      if (type === 'ReleaseFound' && value === 'False') recorder.event(subject, 'Warning', 'ReleaseMissing', message);
      if (type === 'Contested') recorder.event(subject, 'Warning', 'Contested', message);
      if (type === 'Ready' && ['NotComposable', 'NameTaken', 'NotPermitted', 'Refused'].includes(reason)) {
        recorder.event(subject, 'Warning', 'NotComposed', message);
      }
    }
  }
}

/** What has become of the workload or of the Service. */
interface Part {
  readonly problem?: Outcome;
  readonly restored?: Restored & { readonly what: string };
  readonly contested?: string;
  readonly requeueAfterMs?: number;
  /** It is to be tried again. */
  readonly error?: Error;
}

async function partOf(module: CachedModule, write: () => Promise<Composed | undefined>): Promise<Part> {
  const { name } = module;
  try {
    const result = await write();
    switch (result?.state) {
      case undefined:
        return {};
      case 'Taken': {
        const message = `another object has the name ${name}: rename it, or delete it`;
        return { problem: { reason: 'NameTaken', message }, requeueAfterMs: LOOK_AGAIN_MS };
      }
      case 'Deleting':
        return {
          problem: { reason: 'Deleting', message: 'its former workload or Service is still being deleted' },
          requeueAfterMs: LOOK_AGAIN_MS,
        };
      case 'Contested': {
        const what = `${result.live.object.kind} ${name}`;
        const contested = `somebody changes ${what} again and again: it is left as it is for a minute`;
        return { contested, requeueAfterMs: result.forMs };
      }
      case 'Current': {
        const what = `${result.live.object.kind} ${name}`;
        return result.restored === undefined ? {} : { restored: { ...result.restored, what } };
      }
    }
  } catch (error) {
    if (!(error instanceof ControllerError)) throw error;
    if (!(error instanceof ApiError) || isRetriable(error) || isConflict(error)) return { error };
    return { problem: refusalOf(error, module), requeueAfterMs: LOOK_AGAIN_MS };
  }
}

function refusalOf(error: ApiError, { namespace }: CachedModule): Outcome {
  if (!isForbidden(error)) return { reason: 'Refused', message: messageOf(error) };
  const how = `bind the ClusterRole module-platform-catalog to the platform in namespace ${namespace}, or see what else refuses it`;
  return { reason: 'NotPermitted', message: `the platform may not write there: ${how}: ${messageOf(error)}` };
}

function selectorOf({ spec }: CachedModule): string {
  return Object.entries(selectorLabelsOf(spec))
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
}

function withWarnings(outcome: Outcome, { annotations }: CachedModule): Outcome {
  const faults = replicaFaultsOf(annotations);
  if (faults.length === 0 || outcome.message !== '') return outcome;
  return { ...outcome, message: `without effect, since they are no counts: the annotations ${faults.join(', ')}` };
}
