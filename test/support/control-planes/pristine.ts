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

/** An object by its path. */
type Objects = Map<string, KubeObject>;

/** Those that make others come first: what is deleted behind them does not come again. */
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
    return new Pristine(admin, await objectsOf(admin, await resourcesOf(admin)));
  }

  /**
   * Deletes what has come since, whatever its finalizers say, and writes back what has changed or gone. Resolves with
   * true when two looks in a row find nothing to do, and with false, having done nothing, when that is more work than
   * another start. Rejects when there is something to do for a minute.
   */
  async restore(): Promise<boolean> {
    let last: readonly string[] | undefined;
    const look = async (): Promise<boolean | undefined> => {
      const wasRestored = last?.length === 0;
      const isFirst = last === undefined;
      last = await this.#restoreOnce(isFirst ? MAX_EXTRA : Number.POSITIVE_INFINITY);
      if (last === undefined) return false;
      return (wasRestored && last.length === 0) || undefined;
    };
    const limits = { what: 'a control plane to be as it was', timeoutMs: RESTORED_WITHIN_MS, intervalMs: 200 };
    return poll(look, limits).catch((error: Error) => {
      throw new Error(`${error.message}: ${last?.slice(0, SHOWN_DIFFERENCES).join(', ')}`, { cause: error });
    });
  }

  /** The paths of what was not as before; undefined, with nothing done, when more than `maxExtra` objects have come. */
  async #restoreOnce(maxExtra: number): Promise<string[] | undefined> {
    const resources = await resourcesOf(this.#admin);
    const objects = await objectsOf(this.#admin, resources);
    const extra = new Map([...objects].filter(([path]) => !this.#objects.has(path)));
    if (extra.size > maxExtra) return undefined;
    const missing = [...this.#objects].filter(([path, object]) => !isSame(object, objects.get(path)));
    for (const resource of resources) await this.#deleteAll(resource, extra);
    for (const [path, object] of missing) {
      const { resourceVersion: _version, uid: _uid, ...metadata } = object.metadata;
      const before = { ...object, metadata };
      const writing = objects.has(path)
        ? this.#admin.put(path, before)
        : this.#admin.post(path.slice(0, path.lastIndexOf('/')), before);
      // Its namespace is being deleted (403) or not there yet (404), or somebody else has just written it.
      await ignoring([403, 404, 409], writing);
    }
    return [...extra.keys(), ...missing.map(([path]) => path)];
  }

  async #deleteAll(resource: Resource, extra: Objects): Promise<void> {
    const own = [...extra].filter(([path]) => isOf(resource, path));
    for (const [parent, members] of Map.groupBy(own, ([path]) => path.slice(0, path.lastIndexOf('/')))) {
      const stuck = members.filter(([, { metadata }]) => metadata.deletionTimestamp && metadata.finalizers?.length);
      for (const [path] of stuck) {
        await ignoring(404, this.#admin.mergePatch(path, { metadata: { finalizers: null } }));
      }
      // A whole collection only where nothing of it was there before.
      const isAll = ![...this.#objects.keys()].some((path) => path.startsWith(`${parent}/`));
      if (isAll && resource.isNamespaced && members.length >= COLLECTION_FROM) {
        await ignoring(404, this.#admin.delete(parent, AT_ONCE));
        continue;
      }
      const waiting = members.filter(([, { metadata }]) => !metadata.deletionTimestamp || resource.name === 'pods');
      await Promise.all(waiting.map(([path]) => ignoring(404, this.#admin.delete(path, AT_ONCE))));
    }
  }
}

function isOf({ root, name, isNamespaced }: Resource, path: string): boolean {
  const own = path.slice(root.length).split('/');
  return (
    path.startsWith(`${root}/`) &&
    (isNamespaced ? own.length === 5 && own[3] === name : own[1] === name && own.length === 3)
  );
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
  const rankOf = ({ name }: Resource): number => (MAKERS.indexOf(name) + MAKERS.length + 1) % (MAKERS.length + 1);
  return resources
    .filter(({ root, name }) => !(root.startsWith('/apis/events.k8s.io/') && name === 'events')) // as those of v1
    .sort((a, b) => rankOf(a) - rankOf(b));
}

function isKept({ name, verbs }: KubeObject): boolean {
  return !name.includes('/') && verbs.includes('list') && verbs.includes('delete');
}

async function objectsOf(admin: ApiClient, resources: Resource[]): Promise<Objects> {
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
