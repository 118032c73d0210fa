import { MODULE_DEPLOYMENTS } from '../../kinds/workload-kinds.ts';
import { subjectOf } from '../../kube/events/event-object.ts';
import type { EventRecorder } from '../../kube/events/event-recorder.ts';
import type { ResourceClient } from '../../kube/resource.ts';
import { compareResourceVersions } from '../../kube/resource-version.ts';
import { isAlreadyExists, unlessGone } from '../../kube/transport/api-error.ts';
import type { Permit } from '../../kube/transport/rest-lane.ts';
import type { Informer } from '../../kube/watch/informer-types.ts';
import { controlledBy } from '../../reconcile/informers.ts';
import type { CachedModuleDeployment } from './module-deployment.ts';
import {
  buildRevision,
  hashOf,
  isSameTemplate,
  ownerReferenceOf,
  projectRevision,
  type Revision,
  type RevisionObject,
  revisionNameOf,
} from './revision.ts';

export interface RevisionStoreOptions {
  readonly informer: Informer<Revision>;
  readonly client: ResourceClient<RevisionObject>;
  readonly recorder: EventRecorder;
  /** Asked at the last moment before each write. */
  readonly permit: Permit;
}

const DEFAULT_HISTORY = 10;

/** The history of a ModuleDeployment: one ControllerRevision for each template that it has had. */
export class RevisionStore {
  readonly #options: RevisionStoreOptions;
  /** The newest revision as an answer had it, by the UID of the ModuleDeployment. Emptied by `forget`. */
  readonly #answered = new Map<string, Revision>();

  constructor(options: RevisionStoreOptions) {
    this.#options = options;
  }

  forget(uid: string): void {
    this.#answered.delete(uid);
  }

  /** Oldest first. */
  historyOf(deployment: CachedModuleDeployment): Revision[] {
    const { uid } = deployment;
    const cached = this.#options.informer.byIndex('controller', controlledBy(deployment));
    const revisions = new Map(cached.map((revision) => [revision.name, revision]));
    const answered = this.#answered.get(uid);
    if (answered) {
      const seen = revisions.get(answered.name);
      const isSeen = seen && compareResourceVersions(seen.resourceVersion, answered.resourceVersion) >= 0;
      if (isSeen) this.#answered.delete(uid);
      else revisions.set(answered.name, answered);
    }
    return [...revisions.values()].toSorted(byNumber);
  }

  /** The revision of the template as it is now, if it is the newest one. */
  newestOf(deployment: CachedModuleDeployment): Revision | undefined {
    const newest = this.historyOf(deployment).at(-1);
    return isSameTemplate(newest?.template, deployment.spec.template) ? newest : undefined;
  }

  /** Makes the template the newest revision; one that was there before keeps its object and gets a new number. */
  async record(
    deployment: CachedModuleDeployment,
  ): Promise<{ readonly revision: Revision; readonly collisions: number }> {
    const { client, permit, recorder } = this.#options;
    const history = [...(await this.#adopt(deployment)), ...this.historyOf(deployment)].toSorted(byNumber);
    const number = (history.at(-1)?.number ?? 0) + 1;
    const known = history.find(({ template }) => isSameTemplate(template, deployment.spec.template));
    const collisions = deployment.status?.collisionCount ?? 0;
    if (known) {
      const metadata = { resourceVersion: known.resourceVersion };
      const stored = await client.mergePatch(known, { metadata, revision: number }, { permit });
      const revision = this.#answer(deployment, stored);
      recorder.event(
        subjectOf(MODULE_DEPLOYMENTS, deployment),
        'Normal',
        'NewRevision',
        `template of revision ${known.number} is revision ${number} now`,
      );
      return { revision, collisions };
    }
    for (let tries = collisions; ; tries++) {
      const hash = hashOf(deployment.spec.template, tries);
      const stored = await this.#createOrAdopt(deployment, hash, number);
      if (stored === undefined) continue;
      const revision = this.#answer(deployment, stored);
      recorder.event(
        subjectOf(MODULE_DEPLOYMENTS, deployment),
        'Normal',
        'NewRevision',
        `template is revision ${number} (${hash})`,
      );
      return { revision, collisions: tries };
    }
  }

  /** Removes the oldest ones above the limit, but none that a Pod or the rollout still needs. */
  async prune(deployment: CachedModuleDeployment, needed: ReadonlySet<string>): Promise<void> {
    const { client, permit } = this.#options;
    const limit = deployment.spec.revisionHistoryLimit ?? DEFAULT_HISTORY;
    const unused = this.historyOf(deployment).filter(({ hash }) => !needed.has(hash));
    for (const revision of unused.slice(0, Math.max(0, unused.length - limit))) {
      await unlessGone(client.delete(revision, { uid: revision.uid, permit }));
    }
  }

  /** Those of a ModuleDeployment of this name that was deleted without its dependents. */
  async #adopt(deployment: CachedModuleDeployment): Promise<Revision[]> {
    const { informer, client, permit } = this.#options;
    const orphans = informer
      .byIndex('orphanNamespace', deployment.namespace)
      .filter(({ name, hash }) => name === revisionNameOf(deployment, hash));
    const adopted: Revision[] = [];
    for (const orphan of orphans) {
      const { uid, resourceVersion } = orphan;
      const metadata = { uid, resourceVersion, ownerReferences: [ownerReferenceOf(deployment)] };
      adopted.push(projectRevision(await client.strategicPatch(orphan, { metadata }, { permit })));
    }
    return adopted;
  }

  /** Undefined: another template has the name. */
  async #createOrAdopt(
    deployment: CachedModuleDeployment,
    hash: string,
    number: number,
  ): Promise<RevisionObject | undefined> {
    const { client, permit } = this.#options;
    try {
      return await client.create(buildRevision(deployment, hash, number), { permit });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    const { namespace } = deployment;
    const stored = await client.get({ namespace, name: revisionNameOf(deployment, hash) });
    const { uid, resourceVersion, controller, template } = projectRevision(stored);
    if (!isSameTemplate(template, deployment.spec.template)) return undefined;
    if (controller?.uid === deployment.uid && stored.revision === number) return stored;
    if (controller !== undefined && controller.uid !== deployment.uid) return undefined;
    const metadata = { uid, resourceVersion, ownerReferences: [ownerReferenceOf(deployment)] };
    return client.strategicPatch(stored.metadata, { metadata, revision: number }, { permit });
  }

  #answer({ uid }: CachedModuleDeployment, stored: RevisionObject): Revision {
    const revision = projectRevision(stored);
    this.#answered.set(uid, revision);
    return revision;
  }
}

function byNumber(a: Revision, b: Revision): number {
  return a.number - b.number;
}
