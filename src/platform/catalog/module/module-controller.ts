import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../../clock.ts';
import { ControllerError, messageOf } from '../../../errors.ts';
import type { EventRecorder } from '../../../kube/events/event-recorder.ts';
import { secondsTime } from '../../../kube/micro-time.ts';
import { type ResourceClient, SERVICES } from '../../../kube/resource.ts';
import { ifFound } from '../../../kube/transport/api-error.ts';
import type { Permit } from '../../../kube/transport/rest-lane.ts';
import { type Informer, objectKey } from '../../../kube/watch/informer-types.ts';
import type { Logger } from '../../../logger.ts';
import type { Result } from '../../../reconcile/reconciler.ts';
import { type CatalogPod, moduleLabelsKey } from '../catalog-pod.ts';
import {
  type ComposedObject,
  type ComposedRelease,
  type Composition,
  type CompositionFault,
  compose,
  composeService,
  replicaFaultsOf,
  selectorLabelsOf,
  workloadOf,
} from '../compose/compose.ts';
import { type CachedComposed, configArgsIn, type PodCounts, podCountsOf } from '../compose/composed-object.ts';
import { type Composer, isOwnedBy } from '../compose/composer.ts';
import type { CachedModuleRelease } from '../release/module-release.ts';
import { type CachedModule, isSameModule, moduleSubject } from './cached-module.ts';
import {
  type ConfigInForce,
  type ConfigsInput,
  configsInForce,
  type KnownConfig,
  waitingText,
} from './configs-in-force.ts';
import { MODULES, type ModuleObject, type WorkloadKind } from './module.ts';
import { type Part, partOf } from './module-part.ts';
import { ModuleReports } from './module-reports.ts';
import { type ModuleRollbackOptions, rollBack } from './module-rollback.ts';
import { type ConfigFound, moduleStatusOf, type Outcome, problemsOf } from './module-status.ts';
import { releaseInForce } from './release-in-force.ts';

export interface ModuleControllerOptions {
  readonly modules: Informer<CachedModule>;
  readonly releases: Informer<CachedModuleRelease>;
  readonly workloads: Readonly<Record<WorkloadKind, Composer>>;
  readonly services: Composer;
  readonly pods: Informer<CatalogPod>;
  readonly configs: ModuleConfigs;
  readonly client: Pick<ResourceClient<ModuleObject>, 'get' | 'mergePatch' | 'fieldManager'>;
  readonly permit: Permit;
  readonly recorder: EventRecorder;
  /** ENV of Modules that name none. */
  readonly env: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What Modules find of ModuleConfigs. */
export interface ModuleConfigs {
  /** Undefined: there is no ModuleConfig of the name. */
  find(namespace: string, name: string): KnownConfig | undefined;
  /** Arguments for the versions of a configuration; or why there are none. Rejects where the API server does not answer. */
  argumentsOf(
    module: CachedModule,
    configs: readonly ConfigInForce[],
  ): Promise<{ readonly args: readonly string[] } | { readonly fault: string }>;
}

/** The configuration cannot be read now. */
interface Unavailable {
  readonly error: ControllerError;
}

/** A controller that is up sees a change of its workload in less. */
const UNOBSERVED_MS = 2_000;
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
  readonly configFound?: ConfigFound | undefined;
  readonly contested?: string | undefined;
  readonly altered?: string | undefined;
  /** The workload. Undefined: there is none, or nothing was written. */
  readonly live?: CachedComposed | undefined;
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
  readonly #reports: ModuleReports;
  /** Numbers of tries in a row that got no answer, by key. An entry goes with a good one, and with its Module. */
  readonly #failures = new Map<string, number>();
  /** Since when the controller of a workload has not seen it as it is, by key, on the clock. An entry goes when it has. */
  readonly #unobservedSince = new Map<string, number>();

  constructor(options: ModuleControllerOptions) {
    this.#options = options;
    this.#reports = new ModuleReports(options);
  }

  /** Whether two versions differ in nothing that a reconcile has to look at: what it has written itself is not. */
  isSame(a: CachedModule, b: CachedModule): boolean {
    return isSameModule(a, b) && (isDeepStrictEqual(a.status, b.status) || this.#reports.isOwn(objectKey(b), b));
  }

  async reconcile(key: string): Promise<Result | undefined> {
    const module = this.#options.modules.get(key);
    if (module === undefined) {
      this.#reports.forget(key);
      this.#failures.delete(key);
      this.#unobservedSince.delete(key);
      for (const composer of [...Object.values(this.#options.workloads), this.#options.services]) composer.forget(key);
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
    const part = await partOf(module, MODULES.kind, async () => {
      const findConfig = (name: string) => this.#options.configs.find(module.namespace, name);
      await rollBack(module, { client, published, findConfig, permit, report });
      return undefined;
    });
    if (part.error !== undefined) throw part.error;
    if (part.problem === undefined) return undefined;
    const { requeueAfterMs } = part;
    return { outcome: part.problem, isComposed: false, release: module.status?.release, requeueAfterMs };
  }

  async #compose(key: string, module: CachedModule): Promise<Reconciled> {
    const { releases } = this.#options;
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
      return this.#write(module, { outcome, workload: 'Remove' });
    }
    const { release } = inForce;
    if (release === undefined) {
      const message = `release ${missing} has no image, and no ModuleRelease ${module.name} has it`;
      return { ...(await this.#write(module, { outcome: { reason: 'ReleaseMissing', message } })), missing };
    }
    const configured = await this.#configure(module, release);
    return { ...configured, missing };
  }

  /** Composes a release with the versions of its configuration. What is in force stays where these cannot be used. */
  async #configure(module: CachedModule, release: ComposedRelease): Promise<Reconciled> {
    const { spec, status } = module;
    const before = status?.release;
    const input: ConfigsInput = {
      wanted: spec.configs ?? [],
      before: before?.configs ?? [],
      isNewRelease: release.id !== before?.id || release.image !== before.image,
      find: (name) => this.#options.configs.find(module.namespace, name),
    };
    const wanted = configsInForce(input);
    if ('missing' in wanted) {
      const held = await this.#hold(module, 'ConfigMissing', wanted.missing);
      return { ...held, configFound: { status: 'False', reason: 'Missing', message: wanted.missing } };
    }
    const waiting = waitingText(input, wanted.configs);
    const configFound: ConfigFound | undefined =
      wanted.configs.length === 0
        ? undefined
        : { status: 'True', reason: waiting === '' ? 'Found' : 'Waiting', message: waiting };
    const { configs: _former, ...bare } = release;
    const whole: ComposedRelease = wanted.configs.length === 0 ? bare : { ...bare, configs: wanted.configs };
    const fault = inPlaceFault(module, whole);
    const composition = fault === undefined ? await this.#composition(module, whole) : { fault };
    if ('error' in composition) return { ...unavailable(module, composition), configFound };
    if ('fault' in composition) {
      return { ...(await this.#hold(module, 'NotComposable', composition.fault)), configFound };
    }
    const outcome: Outcome = { reason: 'Composed', message: '' };
    const written = await this.#write(module, { outcome, workload: composition.workload });
    const next = written.isComposed ? { ...whole, version: composition.version } : before;
    return { ...written, configFound, release: next };
  }

  async #composition(
    module: CachedModule,
    release: ComposedRelease,
  ): Promise<Composition | CompositionFault | Unavailable> {
    const { configs, env } = this.#options;
    try {
      const found = release.configs === undefined ? { args: [] } : await configs.argumentsOf(module, release.configs);
      return 'fault' in found ? found : compose({ module, release, configArgs: found.args, env });
    } catch (error) {
      if (error instanceof ControllerError) return { error };
      throw error;
    }
  }

  /** A release with the arguments of the workload, whose configuration may be gone. Undefined: the workload is of another one. */
  #compositionAsLive(module: CachedModule, release: ComposedRelease): Composition | undefined {
    const live = this.#options.workloads[workloadOf(module.spec)].find(objectKey(module));
    const configArgs = live && isOwnedBy(live, module.uid) ? configArgsIn(live, release.configs) : undefined;
    const composition = configArgs && compose({ module, release, configArgs, env: this.#options.env });
    return composition === undefined || 'fault' in composition ? undefined : composition;
  }

  /** What is in force stays, with all else that the Module says, such as the number of its copies. */
  async #hold(module: CachedModule, reason: 'NotComposable' | 'ConfigMissing', fault: string): Promise<Reconciled> {
    const release = module.status?.release;
    if (release === undefined) return this.#write(module, { outcome: { reason, message: fault } });
    const composition = this.#compositionAsLive(module, release) ?? (await this.#composition(module, release));
    if ('error' in composition) return unavailable(module, composition);
    if ('fault' in composition) {
      const message = `${fault}; the workload stays as it is, its replicas and its strategy too`;
      return { ...(await this.#write(module, { outcome: { reason, message } })), release };
    }
    const outcome: Outcome = { reason, message: `${fault}; release ${release.id} runs on` };
    return { ...(await this.#write(module, { outcome, workload: composition.workload })), release };
  }

  /** Writes the Service, and the workload unless it stays as it is. One that fails does not hold up the other. */
  async #write(module: CachedModule, { outcome, workload }: Wanted): Promise<Reconciled> {
    const { workloads, services } = this.#options;
    const composer = workloads[workloadOf(module.spec)];
    const service = composeService(module);
    const isWanted = () => this.#isWanted(module);
    const ofWorkload = await partOf(module, workloadOf(module.spec), async () => {
      if (workload === 'Remove') await composer.remove(module, module.status?.release !== undefined);
      else if (workload !== undefined) return composer.compose(workload, isWanted);
      return undefined;
    });
    const ofService = await partOf(module, SERVICES.kind, async () => {
      if (service !== undefined) return services.compose(service, isWanted);
      await services.remove(module, false);
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
      isComposed:
        outcome.reason === 'Composed' &&
        (ofWorkload.problem === undefined || ofWorkload.live !== undefined) &&
        ofWorkload.error === undefined,
      contested: ofWorkload.contested ?? ofService.contested,
      altered: ofWorkload.altered ?? ofService.altered,
      live: ofWorkload.live,
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

  /**
   * How long the report waits for the controller of the workload, ms: until that has seen its newest specification,
   * nobody knows whether Pods change. One that is away is waited for once.
   */
  #unobservedMs(key: string, { status }: CachedModule, counts: PodCounts | undefined): number {
    if (counts === undefined || counts.isObserved || status === undefined) {
      this.#unobservedSince.delete(key);
      return 0;
    }
    const now = this.#options.clock.now();
    const since = this.#unobservedSince.get(key) ?? now;
    this.#unobservedSince.set(key, since);
    return since + UNOBSERVED_MS - now;
  }

  /** Returns how long a change has to wait, ms; undefined: the status is as it should be. */
  async #report(key: string, module: CachedModule, result: Reconciled): Promise<number | undefined> {
    const { workloads, pods, clock } = this.#options;
    const kind = workloadOf(module.spec);
    const { outcome, isComposed, release, missing, configFound, contested, altered } = result;
    const live = workloads[kind].find(key) ?? result.live;
    const isOwn = live !== undefined && isOwnedBy(live, module.uid);
    const counts = isOwn && live ? podCountsOf(kind, live) : undefined;
    const unobservedMs = this.#unobservedMs(key, module, counts);
    if (unobservedMs > 0) return unobservedMs;
    const status = moduleStatusOf({
      generation: module.generation,
      before: module.status,
      selector: selectorOf(module),
      outcome: withWarnings(outcome, module),
      counts,
      isComposed,
      release,
      problems: problemsOf(pods.byIndex('module', moduleLabelsKey(module.namespace, module.spec))),
      missing,
      configFound,
      contested,
      altered,
      now: secondsTime(clock.wallTime()),
    });
    return this.#reports.report(key, module, status);
  }
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

/** Nothing is written; it is tried again. */
function unavailable({ status }: CachedModule, { error }: Unavailable): Reconciled {
  const outcome: Outcome = { reason: 'Unavailable', message: `it is tried again: ${messageOf(error)}` };
  return { outcome, isComposed: false, error, release: status?.release };
}

/**
 * Why a new configuration cannot come into force: a base cannot hold two installs of one version, so each base has to be
 * without the module for the time of one install.
 */
function inPlaceFault({ spec, status }: CachedModule, release: ComposedRelease): string | undefined {
  const before = status?.release;
  const isSameVersion = before?.id === release.id && before.image === release.image;
  if (!isSameVersion || isDeepStrictEqual(before.configs ?? [], release.configs ?? [])) return undefined;
  const { maxUnavailable, placement } = spec.deploy?.strategy?.rollingUpdate ?? {};
  const isLossless = maxUnavailable === 0 || maxUnavailable === '0%';
  if (workloadOf(spec) !== 'ModuleDeployment' || !isLossless || placement === 'Any') return undefined;
  return 'deploy.strategy.rollingUpdate.maxUnavailable: 0 does not let a new configuration come into force, since a base is without the module while it installs it again: allow 1, or publish a release together with it';
}
