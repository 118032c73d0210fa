import type { Clock } from '../../clock.ts';
import { ControllerError } from '../../errors.ts';
import { type ModulePod, projectModulePod } from '../../kinds/module-pod.ts';
import type { PodObject } from '../../kube/objects.ts';
import { matchesLabels } from '../../kube/placement.ts';
import type { ResourceClient } from '../../kube/resource.ts';
import { compareResourceVersions } from '../../kube/resource-version.ts';
import { isAlreadyExists, isRetriable, unlessGone } from '../../kube/transport/api-error.ts';
import type { Permit } from '../../kube/transport/rest-lane.ts';
import type { Informer } from '../../kube/watch/informer-types.ts';
import { controlledBy } from '../../reconcile/informers.ts';
import { type CachedModuleDeployment, type ModuleDeploymentObject, selectorOf } from './module-deployment.ts';
import { ownerReferenceOf } from './revision.ts';
import { buildPod, type PodParts, podNamesOf } from './rollout-pod.ts';

/** A Pod that the cache does not show after this long has gone before the cache saw it. */
const UNSEEN_MS = 60_000;

export interface PodStoreOptions {
  readonly informer: Informer<ModulePod>;
  readonly client: ResourceClient<PodObject>;
  readonly deployments: Pick<ResourceClient<ModuleDeploymentObject>, 'get'>;
  /** Asked at the last moment before each write. */
  readonly permit: Permit;
  readonly clock: Clock;
}

/** What is known of the Pods of one ModuleDeployment beyond the cache. */
interface Known {
  /** Pods as answers of the API server had them, until the cache is as new. By UID. */
  readonly answered: Map<string, { readonly pod: ModulePod; readonly at: number }>;
  /** UIDs of Pods that were deleted, or are gone, until the cache shows it. */
  readonly deleted: Set<string>;
  /** UIDs and names of Pods whose deletion got no answer: it is asked for again before anything else is decided. */
  readonly unanswered: Map<string, string>;
  /** Names of its own that Pods of others have. */
  readonly foreignNames: Set<string>;
  /** Whether the API server was asked for all Pods since this process leads. */
  isChecked: boolean;
}

/**
 * The Pods of ModuleDeployments: the cache, together with what this process has written and the cache does not show
 * yet. Every write names the incarnation that it is about, and can be repeated.
 */
export class PodStore {
  readonly #options: PodStoreOptions;
  /** Facts that the cache does not show yet, by the UID of the ModuleDeployment. Emptied by `forget`. */
  readonly #known = new Map<string, Known>();

  constructor(options: PodStoreOptions) {
    this.#options = options;
    options.informer.addHandler({
      onDelete: ({ uid, controller }) => this.#known.get(controller?.uid ?? '')?.answered.delete(uid),
    });
  }

  /** Another process has possibly written: the cache may be older than that. */
  startTerm(): void {
    for (const known of this.#known.values()) known.isChecked = false;
  }

  forget(uid: string): void {
    this.#known.delete(uid);
  }

  /** Its own Pods. One that has ended holds its place until it is deleted, so that its replacement can wait. */
  podsOf(deployment: CachedModuleDeployment): ModulePod[] {
    const known = this.#knownOf(deployment);
    const pods = new Map(this.#cachedOf(deployment).map((pod) => [pod.uid, pod]));
    const now = this.#options.clock.now();
    for (const [uid, { pod, at }] of known.answered) {
      const cached = pods.get(uid);
      const isSeen = cached !== undefined && compareResourceVersions(cached.resourceVersion, pod.resourceVersion) >= 0;
      if (isSeen || now - at >= UNSEEN_MS) known.answered.delete(uid);
      else pods.set(uid, pod);
    }
    for (const uid of known.deleted) {
      const pod = pods.get(uid);
      if (pod === undefined || pod.isDeleting) known.deleted.delete(uid);
      else pods.set(uid, { ...pod, isDeleting: true });
    }
    return [...pods.values()].filter(({ isTerminal, isDeleting }) => !(isTerminal && isDeleting));
  }

  /** The cache has to show what was written within this time, ms; until then the Pods have to be looked at again. */
  unseenMs(deployment: CachedModuleDeployment): number | undefined {
    return this.#knownOf(deployment).answered.size > 0 ? UNSEEN_MS : undefined;
  }

  /** Whether a decision may delete Pods: see `check`. */
  isChecked(deployment: CachedModuleDeployment): boolean {
    return this.#knownOf(deployment).isChecked;
  }

  /** Asks the API server for the Pods as they are stored now. */
  async check(deployment: CachedModuleDeployment): Promise<void> {
    const { client, clock } = this.#options;
    const known = this.#knownOf(deployment);
    const { namespace, spec } = deployment;
    const labelSelector = selectorOf(spec);
    const stored = (await client.list({ namespace, labelSelector })).map(projectModulePod).filter(isOf(deployment));
    const uids = new Set(stored.map(({ uid }) => uid));
    for (const { uid } of this.#cachedOf(deployment)) if (!uids.has(uid)) known.deleted.add(uid);
    known.answered.clear();
    const at = clock.now();
    for (const pod of stored) known.answered.set(pod.uid, { pod, at });
    known.isChecked = true;
  }

  /** Deletions that got no answer. */
  async settle(deployment: CachedModuleDeployment): Promise<void> {
    const { unanswered } = this.#knownOf(deployment);
    for (const [uid, name] of unanswered) await this.#delete(deployment, { uid, name });
  }

  /**
   * Takes Pods without a controller whose labels fit, and returns them. One whose labels do not fit any more stays its
   * own and counts no longer: without an owner another controller could adopt it, and delete a Pod in exchange.
   */
  async claim(deployment: CachedModuleDeployment): Promise<readonly ModulePod[]> {
    const { informer, client, deployments, permit } = this.#options;
    const { namespace, name, uid, spec } = deployment;
    const fits = ({ labels }: ModulePod): boolean => matchesLabels(spec.selector, labels);
    const adopted = informer
      .byIndex('orphanNamespace', namespace)
      .filter((pod) => fits(pod) && !pod.isDeleting && !pod.isTerminal);
    if (adopted.length > 0) {
      // Its deletion may be newer than the cache, and would orphan them again.
      const { metadata } = await deployments.get({ namespace, name });
      if (metadata.uid !== uid || metadata.deletionTimestamp !== undefined) return [];
    }
    for (const pod of adopted) {
      const { resourceVersion } = pod;
      const metadata = { uid: pod.uid, resourceVersion, ownerReferences: [ownerReferenceOf(deployment)] };
      this.#answered(deployment, await client.strategicPatch(pod, { metadata }, { permit }));
    }
    return adopted;
  }

  /** Names for new Pods of these templates: the same for whoever decides from the same state. */
  namesOf(deployment: CachedModuleDeployment, hashes: readonly string[]): string[] {
    const { informer } = this.#options;
    const taken = new Set(this.#knownOf(deployment).foreignNames);
    for (const { name } of this.podsOf(deployment)) taken.add(name);
    const isTaken = (name: string): boolean =>
      taken.has(name) || informer.get(`${deployment.namespace}/${name}`) !== undefined;
    return podNamesOf(deployment, hashes, isTaken);
  }

  /**
   * Creates a Pod. If a Pod of this ModuleDeployment has the name already, an earlier call without an answer created it.
   * Rejects if any other Pod has the name; the next call takes another name.
   */
  async create(deployment: CachedModuleDeployment, parts: PodParts): Promise<void> {
    const { client, permit } = this.#options;
    try {
      const created = await client.create(buildPod(deployment, parts), { permit });
      this.#answered(deployment, created);
      await this.#keepMatching(deployment, created);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      const stored = await client.get({ namespace: deployment.namespace, name: parts.name });
      if (isOf(deployment)(projectModulePod(stored))) {
        this.#answered(deployment, stored);
        return;
      }
      this.#knownOf(deployment).foreignNames.add(parts.name);
      throw error;
    }
  }

  /** Another one would be created for a Pod that the selector does not match, without end. */
  async #keepMatching(deployment: CachedModuleDeployment, pod: PodObject): Promise<void> {
    const projected = projectModulePod(pod);
    if (matchesLabels(deployment.spec.selector, projected.labels)) return;
    await this.delete(deployment, projected);
    const message = `a webhook has changed labels of Pod ${projected.name}: spec.selector does not match it`;
    throw new ControllerError('Rollout.PodMismatch', message);
  }

  async delete(deployment: CachedModuleDeployment, pod: ModulePod): Promise<void> {
    this.#knownOf(deployment).unanswered.set(pod.uid, pod.name);
    await this.#delete(deployment, pod);
  }

  async #delete(
    deployment: CachedModuleDeployment,
    { uid, name }: { readonly uid: string; readonly name: string },
  ): Promise<void> {
    const { client, permit } = this.#options;
    const known = this.#knownOf(deployment);
    try {
      await unlessGone(client.delete({ namespace: deployment.namespace, name }, { uid, permit }));
      known.deleted.add(uid);
      known.unanswered.delete(uid);
    } catch (error) {
      if (!isRetriable(error)) known.unanswered.delete(uid);
      throw error;
    }
  }

  #answered(deployment: CachedModuleDeployment, pod: PodObject): void {
    const projected = projectModulePod(pod);
    this.#knownOf(deployment).answered.set(projected.uid, { pod: projected, at: this.#options.clock.now() });
  }

  #cachedOf(deployment: CachedModuleDeployment): readonly ModulePod[] {
    const own = this.#options.informer.byIndex('controller', controlledBy(deployment));
    return own.filter(({ labels }) => matchesLabels(deployment.spec.selector, labels));
  }

  #knownOf({ uid }: CachedModuleDeployment): Known {
    let known = this.#known.get(uid);
    if (known === undefined) {
      known = {
        answered: new Map(),
        deleted: new Set(),
        unanswered: new Map(),
        foreignNames: new Set(),
        isChecked: false,
      };
      this.#known.set(uid, known);
    }
    return known;
  }
}

function isOf(deployment: CachedModuleDeployment): (pod: ModulePod) => boolean {
  return ({ namespace, controller }) => controller?.uid === deployment.uid && namespace === deployment.namespace;
}
