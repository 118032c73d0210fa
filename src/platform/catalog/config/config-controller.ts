import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../../clock.ts';
import { ControllerError, messageOf } from '../../../errors.ts';
import { subjectOf } from '../../../kube/events/event-object.ts';
import type { EventRecorder } from '../../../kube/events/event-recorder.ts';
import { mergePatchOf } from '../../../kube/merge-patch.ts';
import { secondsTime } from '../../../kube/micro-time.ts';
import type { ResourceClient } from '../../../kube/resource.ts';
import { isForbidden } from '../../../kube/transport/api-error.ts';
import type { Permit } from '../../../kube/transport/rest-lane.ts';
import { type Informer, objectKey } from '../../../kube/watch/informer-types.ts';
import { PLATFORM_GROUP } from '../../../labels.ts';
import type { EventDefinition } from '../../../reconcile/controller-definition.ts';
import { type Result, UNWATCHED_AGAIN_MS } from '../../../reconcile/reconciler.ts';
import { shortened } from '../../../shortened.ts';
import { configsOfText } from '../module/configs-in-force.ts';
import type { CachedModuleConfig } from './cached-module-config.ts';
import { causeIn, causeOf } from './change-cause.ts';
import { configStatusOf, isOnlyOfUsers } from './config-status.ts';
import type { ConfigStore } from './config-store.ts';
import type { ConfigUser, ConfigUses } from './config-uses.ts';
import { type EffectiveFault, effectiveOf, type Parent } from './effective.ts';
import { type HistoryInput, historyOf, presentVersion } from './history.ts';
import {
  type ConfigVersion,
  MAX_VERSIONS,
  MODULE_CONFIGS,
  type ModuleConfigObject,
  type ModuleConfigStatus,
} from './module-config.ts';
import { secretKeysOf } from './secrets.ts';
import { digestOf, knownVersion, type StoredVersion, sizeOf, sourceOf } from './version.ts';

export interface ConfigControllerOptions {
  readonly configs: Informer<CachedModuleConfig>;
  readonly uses: Pick<ConfigUses, 'of' | 'versionsOf'>;
  readonly client: Pick<ResourceClient<ModuleConfigObject>, 'get' | 'mergePatch'>;
  readonly store: Pick<ConfigStore, 'put' | 'get' | 'remove'>;
  /** Annotations by which the histories of the workloads in a namespace name versions. Asks the API server. */
  readonly namedByHistories: (namespace: string) => Promise<readonly string[]>;
  /** How many versions are kept in a namespace. */
  readonly limitOf: (namespace: string) => number;
  readonly permit: Permit;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
}

export const CONFIG_EVENTS: readonly EventDefinition[] = [
  {
    about: 'ModuleConfig',
    type: 'Normal',
    reasons: ['Activated'],
    meaning: 'A version has become active. Modules take it at once, or with their next release.',
  },
  {
    about: 'ModuleConfig',
    type: 'Warning',
    reasons: ['NotActivated'],
    meaning: 'The content, its parent or `activeVersion` cannot be used. The active version stays.',
  },
  {
    about: 'ModuleConfig',
    type: 'Normal',
    reasons: ['ParentChanged'],
    meaning: 'A version waits that is made of another version of the parent.',
  },
  {
    about: 'ModuleConfig',
    type: 'Warning',
    reasons: ['SecretSuspected'],
    meaning: 'Keys of the content look like secrets. Whoever may read the ModuleConfig or its versions sees them.',
  },
  {
    about: 'ModuleConfig',
    type: 'Warning',
    reasons: ['DeletionWaits'],
    meaning: 'The ModuleConfig is being deleted, and somebody uses it. It goes when nobody does.',
  },
];

/** Holds up the deletion of a ModuleConfig while somebody uses it. */
export const CONFIG_FINALIZER = `${PLATFORM_GROUP}/config-in-use`;
/** Many objects that begin to use it one after the other are one write. */
const USERS_EVERY_MS = 5_000;
const MAX_MESSAGE_LENGTH = 512;

/** What the present content and its parents amount to. */
interface Present {
  /** Generation of the specification that was read. */
  readonly generation: number;
  readonly version: ConfigVersion | { readonly fault: EffectiveFault };
  readonly cause: ModuleConfigStatus['lastCause'];
  readonly secretKeys: readonly string[];
}

/** Keeps the versions of each ModuleConfig, and says which one is in force. A key is that of a ModuleConfig. */
export class ConfigController {
  readonly #options: ConfigControllerOptions;
  /** Times of the last writes of statuses by key, on the clock. An entry goes with its ModuleConfig. */
  readonly #reportedAt = new Map<string, number>();
  /** Keys of ModuleConfigs of which a version has lost its content. */
  readonly #lost = new Set<string>();
  /** Versions that were stored, by key: no status is known to have them. An entry goes when one has, or they are removed. */
  readonly #stored = new Map<string, StoredVersion[]>();

  constructor(options: ConfigControllerOptions) {
    this.#options = options;
  }

  /** The content of a version of this ModuleConfig was deleted: its present content is stored again. */
  wasLost(key: string): void {
    this.#lost.add(key);
  }

  async reconcile(key: string): Promise<Result | undefined> {
    const config = this.#options.configs.get(key);
    if (config === undefined) {
      this.#reportedAt.delete(key);
      this.#lost.delete(key);
      this.#stored.delete(key);
      return undefined;
    }
    try {
      return config.isDeleting ? await this.#leave(key, config) : await this.#follow(key, config);
    } catch (error) {
      const isTaken = error instanceof ControllerError && error.code === 'Catalog.NameTaken';
      if (!isTaken && !isForbidden(error)) throw error;
      const status = isTaken
        ? this.#statusWith(config, 'NameTaken', error.message)
        : this.#statusWith(
            config,
            'NotPermitted',
            `the platform may not keep versions in namespace ${config.namespace}: ${messageOf(error)}`,
          );
      await this.#write(key, config, status);
      return { requeueAfterMs: UNWATCHED_AGAIN_MS };
    }
  }

  /** Removes the finalizer when nobody uses the ModuleConfig. The API server then deletes it, and its versions with it. */
  async #leave(key: string, config: CachedModuleConfig): Promise<Result | undefined> {
    if (!config.finalizers.includes(CONFIG_FINALIZER)) return undefined;
    const users = this.#usersOf(key);
    if (users.length === 0) {
      await this.#setFinalizers(
        config,
        config.finalizers.filter((one) => one !== CONFIG_FINALIZER),
      );
      return undefined;
    }
    const names = users.map(({ kind, name }) => `${kind} ${name}`).join(', ');
    const message = shortened(`it is deleted when nobody uses it: ${names}`, MAX_MESSAGE_LENGTH);
    return this.#write(key, config, this.#statusWith(config, 'InUse', message));
  }

  async #follow(key: string, config: CachedModuleConfig): Promise<Result | undefined> {
    const { uses, limitOf, clock, store } = this.#options;
    if (!config.finalizers.includes(CONFIG_FINALIZER)) {
      await this.#setFinalizers(config, [...config.finalizers, CONFIG_FINALIZER]);
      // The answer is in the cache, and brings the key again.
      return undefined;
    }
    const before = config.status;
    const present = this.#known(key, config) ?? (await this.#read(key, config));
    const input: HistoryInput = {
      versions: before?.versions ?? [],
      inForce: before?.activeVersion,
      present: present.version,
      activation: config.spec.activation ?? 'Automatic',
      wanted: config.spec.activeVersion ?? '',
      inUse: uses.versionsOf(key),
      limit: limitOf(config.namespace),
      now: clock.wallTime().getTime(),
    };
    const history = historyOf(input);
    const whole =
      history.prune.length === 0 ? history : historyOf({ ...input, inUse: await this.#usedNow(config, input) });
    if (whole.versions.length > MAX_VERSIONS) {
      const message = `all ${MAX_VERSIONS} versions are in use: delete Pods or Modules that use old ones`;
      return this.#write(key, config, this.#statusWith(config, 'TooManyVersions', message));
    }
    // The content was overwritten before a status had its version.
    const strays = (this.#stored.get(key) ?? []).filter(
      ({ digest }) => knownVersion(whole.versions, digest) === undefined,
    );
    const unneeded = [...whole.prune, ...strays];
    // Before the status: a version that is only half gone is removed again.
    if (unneeded.length > 0) await this.#ensureSeen(key, config);
    for (const version of unneeded) await store.remove(config, version);
    const users = this.#usersOf(key);
    const status = configStatusOf({
      generation: present.generation,
      spec: config.spec,
      before,
      history: whole,
      presentVersion: 'fault' in present.version ? undefined : present.version.id,
      parent: this.#parentText(config),
      cause: present.cause,
      users,
      now: secondsTime(clock.wallTime()),
    });
    const result = await this.#write(key, config, status, present.secretKeys);
    this.#lost.delete(key);
    this.#stored.delete(key);
    return result;
  }

  /** What was found before, if nothing has changed since. */
  #known(key: string, { generation, status, ...config }: CachedModuleConfig): Present | undefined {
    if (status?.observedGeneration !== generation || this.#lost.has(key)) return undefined;
    const version = status.versions?.find(({ id }) => id === status.presentVersion);
    if (version === undefined || (status.observedParent ?? '') !== this.#parentText(config)) return undefined;
    return { generation, version, cause: config.cause, secretKeys: [] };
  }

  async #read(key: string, config: CachedModuleConfig): Promise<Present> {
    const { client, store, clock } = this.#options;
    const { namespace, name, uid, status } = config;
    const { metadata, spec } = await client.get({ namespace, name });
    // A status for another content than the cache has would be refused, and the version stored for nothing.
    if (metadata.uid !== uid || metadata.resourceVersion !== config.resourceVersion) throw changed(key);
    const generation = metadata.generation ?? 0;
    const annotations = metadata.annotations ?? {};
    const { content, format, parent, instances = {} } = spec;
    const parentContent = parent === undefined ? undefined : await this.#contentInForce(`${namespace}/${parent}`);
    const effective = effectiveOf({
      name,
      format,
      parent,
      content,
      instances,
      find: (one) => this.#parentOf(`${namespace}/${one}`, one === parent ? parentContent : undefined),
    });
    const signed = causeIn(annotations);
    const source = sourceOf({ content, instances, parent });
    const cause = causeOf(status?.lastCause, annotations, source);
    if ('fault' in effective) {
      const lastCause = { ...signed, pending: { source, ...cause } };
      return { generation, version: effective, cause: lastCause, secretKeys: [] };
    }
    const whole = { ...effective, instances };
    const versions = status?.versions ?? [];
    const found = { digest: digestOf(whole), source, size: sizeOf(whole) };
    const version = presentVersion(versions, found, { now: clock.wallTime().getTime(), cause });
    const isNew = !versions.some(({ id }) => id === version.id);
    // Also if its answer is lost.
    if (isNew) this.#stored.set(key, [...(this.#stored.get(key) ?? []), version]);
    const stored = isNew || this.#lost.has(key) ? await store.put(config, version, whole) : version;
    return {
      generation,
      version: isNew ? { ...version, id: stored.id } : version,
      cause: signed,
      secretKeys: isNew ? [content, ...Object.values(instances)].flatMap((text) => secretKeysOf(format, text)) : [],
    };
  }

  /** Content of the version in force; undefined: there is none, or it was deleted. */
  async #contentInForce(key: string): Promise<string | undefined> {
    const { configs, store } = this.#options;
    const config = configs.get(key);
    const version = config?.status?.versions?.find(({ id }) => id === config.status?.activeVersion);
    return config === undefined || version === undefined ? undefined : (await store.get(config, version))?.content;
  }

  #parentOf(key: string, content: string | undefined): Parent | undefined {
    const found = this.#options.configs.get(key);
    if (found === undefined || found.isDeleting) return undefined;
    const { spec, status } = found;
    const id = status?.activeVersion;
    const inForce = id === undefined || content === undefined ? undefined : { id, content };
    return { format: spec.format, parent: spec.parent, inForce };
  }

  /** What the version of a child depends on besides its content. */
  #parentText({ namespace, spec: { parent } }: Pick<CachedModuleConfig, 'namespace' | 'spec'>): string {
    if (parent === undefined) return '';
    return `${parent}@${this.#options.configs.get(`${namespace}/${parent}`)?.status?.activeVersion ?? ''}`;
  }

  /** Those that need it to go on: Modules, and children. */
  #usersOf(key: string): Pick<ConfigUser, 'kind' | 'name'>[] {
    const { uses, configs } = this.#options;
    const children = configs.byIndex('parent', key).filter(({ isDeleting }) => !isDeleting);
    return [
      ...uses.of(key).filter(({ kind }) => kind === 'Module'),
      ...children.map(({ name }) => ({ kind: MODULE_CONFIGS.kind, name })),
    ];
  }

  /** Versions in use, with those that only the histories of workloads name. */
  async #usedNow({ namespace, name }: CachedModuleConfig, { inUse }: HistoryInput): Promise<Set<string>> {
    const texts = await this.#options.namedByHistories(namespace);
    const named = texts.flatMap(configsOfText).filter((one) => one.name === name);
    return new Set([...inUse, ...named.map(({ version }) => version)]);
  }

  /** Rejects where somebody has changed the ModuleConfig since, who may have named a version that would be removed. */
  async #ensureSeen(key: string, { namespace, name, resourceVersion }: CachedModuleConfig): Promise<void> {
    const { metadata } = await this.#options.client.get({ namespace, name });
    if (metadata.resourceVersion === resourceVersion) return;
    throw changed(key);
  }

  async #setFinalizers(config: CachedModuleConfig, finalizers: readonly string[]): Promise<void> {
    const { client, permit, configs } = this.#options;
    const { namespace, name, uid, resourceVersion } = config;
    const patch = { metadata: { uid, resourceVersion, finalizers } };
    configs.upsert(await client.mergePatch({ namespace, name }, patch, { permit }));
  }

  /** The status as it is, with a reason why the ModuleConfig is not followed. */
  #statusWith(
    config: CachedModuleConfig,
    reason: 'InUse' | 'NotPermitted' | 'NameTaken' | 'TooManyVersions',
    message: string,
  ): ModuleConfigStatus {
    const { status, spec } = config;
    return configStatusOf({
      generation: status?.observedGeneration ?? 0,
      spec,
      before: status,
      history: {
        versions: status?.versions ?? [],
        inForce: status?.activeVersion,
        prune: [],
        state: { isReady: false, reason, message },
        parentChanged: undefined,
      },
      presentVersion: status?.presentVersion,
      parent: status?.observedParent ?? '',
      cause: status?.lastCause,
      users: this.#usersOf(objectKey(config)),
      now: secondsTime(this.#options.clock.wallTime()),
    });
  }

  async #write(
    key: string,
    config: CachedModuleConfig,
    status: ModuleConfigStatus,
    secretKeys: readonly string[] = [],
  ): Promise<Result | undefined> {
    const { client, permit, configs, clock } = this.#options;
    const before = config.status;
    if (isDeepStrictEqual(status, before)) return undefined;
    const waitMs = (this.#reportedAt.get(key) ?? Number.NEGATIVE_INFINITY) + USERS_EVERY_MS - clock.now();
    if (waitMs > 0 && isOnlyOfUsers(before, status)) return { requeueAfterMs: waitMs };
    const { namespace, name, uid, resourceVersion } = config;
    const patch = { metadata: { uid, resourceVersion }, status: mergePatchOf(before ?? {}, status) };
    configs.upsert(await client.mergePatch({ namespace, name }, patch, { subresource: 'status', permit }));
    this.#reportedAt.set(key, clock.now());
    this.#report(config, status, secretKeys);
    return undefined;
  }

  #report(config: CachedModuleConfig, status: ModuleConfigStatus, secretKeys: readonly string[]): void {
    const { recorder } = this.#options;
    const { status: before } = config;
    const subject = subjectOf(MODULE_CONFIGS, config);
    const { activeVersion } = status;
    if (activeVersion !== undefined && activeVersion !== before?.activeVersion)
      recorder.event(subject, 'Normal', 'Activated', `version ${activeVersion} is active`);
    const [ready, former] = [status, before].map((one) => one?.conditions.find(({ type }) => type === 'Ready'));
    if (ready?.status === 'False' && (ready.reason !== former?.reason || ready.message !== former.message)) {
      if (ready.reason === 'InUse') recorder.event(subject, 'Warning', 'DeletionWaits', ready.message);
      else if (ready.reason !== 'Waiting') recorder.event(subject, 'Warning', 'NotActivated', ready.message);
    }
    const [changed, unchanged] = [status, before].map((one) =>
      one?.conditions.find(({ type, status: value }) => type === 'ParentChanged' && value === 'True'),
    );
    if (changed !== undefined && changed.message !== unchanged?.message) {
      recorder.event(subject, 'Normal', 'ParentChanged', changed.message);
    }
    if (secretKeys.length > 0) {
      const message = `these keys look like secrets: ${secretKeys.join(', ')}: keep them in a Secret of the base, or in a vault`;
      recorder.event(subject, 'Warning', 'SecretSuspected', shortened(message, MAX_MESSAGE_LENGTH));
    }
  }
}

/** Somebody has changed it since the cache has seen it: the next try sees that. */
function changed(key: string): ControllerError {
  return new ControllerError('Kube.RequestFailed', `ModuleConfig ${key} has changed`);
}
