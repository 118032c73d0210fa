import { isDeepStrictEqual } from 'node:util';
import { type ApiClient, ApiError, type KubeObject } from '../../../samples/control-plane/api-client.ts';
import { poll } from '../../../samples/control-plane/poll.ts';

/** A resource that can be listed and deleted. */
interface Resource {
  /** `/api/v1`, `/apis/apps/v1`. */
  root: string;
  /** Plural, as in a path. */
  name: string;
  isNamespaced: boolean;
}

/** Objects by their paths; those of one resource stand together, those that make others first. */
type Objects = Map<string, KubeObject>;

interface Differences {
  /** Those that have come. */
  readonly extra: Objects;
  /** Those that have gone or changed, as they were. */
  readonly missing: Objects;
  /** The paths of all objects now. */
  readonly existing: ReadonlySet<string>;
}

/** Resources that make others come first: what is deleted behind them does not come again. */
const MAKERS = [
  'customresourcedefinitions',
  'deployments',
  'cronjobs',
  'jobs',
  'daemonsets',
  'statefulsets',
  'replicasets',
];
/** From so many in a namespace on, one request deletes all. */
const COLLECTION_FROM = 5;
/** How long a deleted namespace may take. */
const RESTORED_WITHIN_MS = 60_000;
/** To delete more than these costs more than another start, about 10 s of CPU time. */
const MAX_EXTRA = 1_500;
/** In the error of a control plane that cannot be restored. */
const SHOWN_DIFFERENCES = 5;
const AT_ONCE = { gracePeriodSeconds: 0, propagationPolicy: 'Background' };

/** All objects of a control plane at one moment, for going back to them. */
export class Pristine {
  readonly #admin: ApiClient;
  readonly #objects: Objects;

  private constructor(admin: ApiClient, objects: Objects) {
    this.#admin = admin;
    this.#objects = objects;
  }

  static async of(admin: ApiClient): Promise<Pristine> {
    return new Pristine(admin, await objectsOf(admin));
  }

  /**
   * Deletes what has come since, whatever its finalizers say, and writes back what has changed or gone. Resolves with
   * true when two looks in a row find nothing to do, and with false, having done nothing, when that is more work than
   * another start. Rejects when there is something to do for a minute.
   */
  async restore(): Promise<boolean> {
    let differences = await this.#differences();
    if (differences.extra.size > MAX_EXTRA) return false;
    const look = async (): Promise<true | undefined> => {
      const wasRestored = isNone(differences);
      await this.#undo(differences);
      differences = await this.#differences();
      return (wasRestored && isNone(differences)) || undefined;
    };
    const limits = { what: 'a control plane to be as it was', timeoutMs: RESTORED_WITHIN_MS, intervalMs: 200 };
    return poll(look, limits).catch((error: Error) => {
      const paths = [...differences.extra.keys(), ...differences.missing.keys()];
      throw new Error(`${error.message}: ${paths.slice(0, SHOWN_DIFFERENCES).join(', ')}`, { cause: error });
    });
  }

  async #differences(): Promise<Differences> {
    const now = await objectsOf(this.#admin);
    return {
      extra: new Map([...now].filter(([path]) => !this.#objects.has(path))),
      missing: new Map([...this.#objects].filter(([path, object]) => !isSame(object, now.get(path)))),
      existing: new Set(now.keys()),
    };
  }

  async #undo({ extra, missing, existing }: Differences): Promise<void> {
    for (const [collection, members] of Map.groupBy(extra, ([path]) => collectionOf(path))) {
      await this.#deleteAll(collection, members);
    }
    for (const [path, object] of missing) {
      const { resourceVersion: _version, uid: _uid, ...metadata } = object.metadata;
      const before = { ...object, metadata };
      const writing = existing.has(path) ? this.#admin.put(path, before) : this.#admin.post(collectionOf(path), before);
      // Its namespace is being deleted (403) or not there yet (404), or somebody else has just written it.
      await ignoring([403, 404, 409], writing);
    }
  }

  async #deleteAll(collection: string, members: readonly (readonly [string, KubeObject])[]): Promise<void> {
    const stuck = members.filter(([, { metadata }]) => metadata.deletionTimestamp && metadata.finalizers?.length);
    for (const [path] of stuck) {
      await ignoring(404, this.#admin.mergePatch(path, { metadata: { finalizers: null } }));
    }
    // A whole collection only where nothing of it was there before.
    const isAll = ![...this.#objects.keys()].some((path) => path.startsWith(`${collection}/`));
    if (isAll && collection.includes('/namespaces/') && members.length >= COLLECTION_FROM) {
      await ignoring(404, this.#admin.delete(collection, AT_ONCE));
      return;
    }
    const arePods = collection.endsWith('/pods');
    const waiting = members.filter(([, { metadata }]) => !metadata.deletionTimestamp || arePods);
    await Promise.all(waiting.map(([path]) => ignoring(404, this.#admin.delete(path, AT_ONCE))));
  }
}

function isNone({ extra, missing }: Differences): boolean {
  return extra.size + missing.size === 0;
}

function collectionOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}

async function resourcesOf(admin: ApiClient): Promise<Resource[]> {
  const groups: KubeObject[] = (await admin.get('/apis')).groups;
  const roots = ['/api/v1', ...groups.map(({ preferredVersion }) => `/apis/${preferredVersion.groupVersion}`)];
  // A group may go between the two questions, with its definition.
  const lists = await Promise.all(roots.map((root) => ignoring(404, admin.get(root))));
  const resources = lists.flatMap((list, index) => {
    const served: KubeObject[] = list?.resources ?? [];
    return served.filter(isKept).map(({ name, namespaced }) => ({
      root: roots[index] ?? '',
      name,
      isNamespaced: namespaced,
    }));
  });
  const rankOf = ({ name }: Resource): number => (MAKERS.includes(name) ? MAKERS.indexOf(name) : MAKERS.length);
  return resources
    .filter(({ root, name }) => !(root.startsWith('/apis/events.k8s.io/') && name === 'events')) // as those of v1
    .sort((a, b) => rankOf(a) - rankOf(b));
}

function isKept({ name, verbs }: KubeObject): boolean {
  return !name.includes('/') && verbs.includes('list') && verbs.includes('delete');
}

async function objectsOf(admin: ApiClient): Promise<Objects> {
  const resources = await resourcesOf(admin);
  const lists = await Promise.all(
    resources.map(async ({ root, name, isNamespaced }) => {
      const items: KubeObject[] = (await ignoring(404, admin.list(`${root}/${name}`))) ?? [];
      return items.map((item): [string, KubeObject] => {
        const namespace = isNamespaced ? `/namespaces/${item.metadata.namespace}` : '';
        return [`${root}${namespace}/${name}/${item.metadata.name}`, item];
      });
    }),
  );
  // API servers renew Leases of their own there.
  return new Map(lists.flat().filter(([path]) => !path.includes('/namespaces/kube-system/leases/')));
}

/** What a user could have written is the same. */
function isSame(before: KubeObject, now: KubeObject | undefined): boolean {
  return now !== undefined && !now.metadata.deletionTimestamp && isDeepStrictEqual(writtenOf(before), writtenOf(now));
}

function writtenOf({ metadata, status: _status, ...rest }: KubeObject): unknown {
  const { labels, annotations, finalizers } = metadata;
  return { ...rest, labels, annotations, finalizers };
}

async function ignoring<T>(statusCodes: number | number[], request: Promise<T>): Promise<T | undefined> {
  try {
    return await request;
  } catch (error) {
    if (error instanceof ApiError && [statusCodes].flat().includes(error.statusCode)) return undefined;
    throw error;
  }
}
