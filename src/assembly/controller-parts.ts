import type { Leader } from '../kube/leader.ts';
import type { Resources } from '../kube/resource.ts';
import type { SharedInformer } from '../kube/watch/informer.ts';
import type { CachedObject } from '../kube/watch/informer-types.ts';
import { aborted, type Runnable } from '../manager.ts';
import type { KindAccess } from '../reconcile/access.ts';
import {
  accessOf,
  type BuiltController,
  type ControllerContext,
  type ControllerDefinition,
  groupOf,
} from '../reconcile/controller-definition.ts';
import type { Informers, WatchedKind } from '../reconcile/informers.ts';
import type { Webhooks } from '../reconcile/webhooks.ts';
import type { ServedApp } from '../server/feed-server.ts';
import type { CrdInstaller } from './crd-installer.ts';

/** What all controllers of a process share. */
export interface SharedParts extends Omit<ControllerContext, OwnParts> {
  readonly informers: Informers;
  /** What a client writes belongs to `fieldManager`. */
  readonly resourcesOf: (fieldManager: string) => Resources;
  /** `name`: of a Lease in the namespace of this Pod. */
  readonly leaderOf: (name: string) => Leader;
  readonly webhooks: Webhooks;
}

type OwnParts = 'informers' | 'resources' | 'leader' | 'permit' | 'webhooks' | 'reviews';

/** Name that the Leases and the field managers of a controller have. */
function ownNameOf({ name }: Pick<ControllerDefinition, 'name'>): string {
  return `platform-${name}`;
}

/** One controller of a process: its context, which gives no more than it declares, and its place in the start. */
export class ControllerParts {
  readonly context: ControllerContext;
  readonly #definition: ControllerDefinition<never>;
  readonly #webhooks: Webhooks;
  readonly #informers = new Set<SharedInformer<CachedObject>>();
  #leader: Leader | undefined;

  constructor(definition: ControllerDefinition<never>, shared: SharedParts) {
    const { informers, resourcesOf, leaderOf, webhooks, ...rest } = shared;
    const { name, leads = false } = definition;
    const access = accessOf(definition);
    const own = resourcesOf(ownNameOf(definition));
    this.#definition = definition;
    this.#webhooks = webhooks;
    this.context = {
      ...rest,
      informers: {
        get: (watched) => {
          const reads = ({ kind, verbs }: KindAccess): boolean =>
            isCollectionOf(kind, watched.path) && verbs.includes('list') && verbs.includes('watch');
          if (!access.some(reads))
            throw new Error(`controller ${name} does not declare to list and watch ${watched.path}`);
          const informer = informers.get(watched);
          this.#informers.add(informer as unknown as SharedInformer<CachedObject>);
          return informer;
        },
      },
      resources: {
        of: (kind) => {
          const isDeclared = access.some((one) => one.kind.group === kind.group && one.kind.plural === kind.plural);
          if (!isDeclared) throw new Error(`controller ${name} does not declare ${kind.plural}`);
          return own.of(kind);
        },
      },
      leader: () => {
        if (!leads) throw new Error(`controller ${name} does not declare that it leads`);
        this.#leader ??= leaderOf(ownNameOf(definition));
        return this.#leader;
      },
      permit: () => this.#leader?.isLeading() ?? !leads,
      webhooks: webhooks.registryOf(name, definition.webhooks ?? [], () => this.#hasSynced()),
      reviews: webhooks,
    };
  }

  /**
   * The groups of the controller, behind what they wait for: its CRDs and the caches that it reads. Throws where it has
   * built less than it declares.
   */
  branchOf({ groups }: BuiltController, crds: CrdInstaller): (readonly Runnable[])[] {
    const { name, leads = false, webhooks = [] } = this.#definition;
    const missing = this.#webhooks.missing(webhooks).map((rule) => rule.name);
    if (missing.length > 0) throw new Error(`controller ${name} has no handler for the webhook ${missing.join()}`);
    if (leads && this.#leader === undefined) throw new Error(`controller ${name} declares that it leads, and does not`);
    const whenReady = async (signal: AbortSignal): Promise<void> => {
      const installed = (this.#definition.crds ?? []).map(({ crd }) => crds.whenInstalled(crd.metadata.name));
      await Promise.all([...installed, ...[...this.#informers].map((informer) => informer.whenSynced(signal))]);
    };
    return [
      // Nothing is decided before the caches are whole: a Pod that is not seen yet is not a Pod that is gone.
      [{ name: `caches of ${name}`, run: aborted, whenReady }],
      ...(this.#leader === undefined ? [] : [groupOf({ [`leader of ${name}`]: this.#leader })]),
      ...groups,
    ];
  }

  /** What the controller serves, closed until its caches are whole. */
  servedOf({ served = [] }: BuiltController): ServedApp[] {
    return served.map((one) => ({ ...one, isReady: () => this.#hasSynced() }));
  }

  #hasSynced(): boolean {
    return [...this.#informers].every((informer) => informer.hasSynced());
  }
}

/** Whether a path of the API is that of all objects of a kind, or of those of one namespace. */
export function isCollectionOf(
  { group, plural }: KindAccess['kind'],
  path: WatchedKind<CachedObject>['path'],
): boolean {
  const [, ofGroup = '', ofPlural] =
    /^\/(?:api|apis\/([^/]+))\/[^/]+\/(?:namespaces\/[^/]+\/)?([^/]+)$/.exec(path) ?? [];
  return ofGroup === group && ofPlural === plural;
}
