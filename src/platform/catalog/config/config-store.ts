import { ControllerError } from '../../../errors.ts';
import type { ConfigMapObject, OwnerReference } from '../../../kube/objects.ts';
import type { ResourceClient } from '../../../kube/resource.ts';
import { ifFound, isAlreadyExists, unlessGone } from '../../../kube/transport/api-error.ts';
import type { Permit } from '../../../kube/transport/rest-lane.ts';
import { PLATFORM_GROUP } from '../../../labels.ts';
import { LruMap } from '../../../lru-map.ts';
import { CATALOG_LABEL } from '../compose/compose.ts';
import { digestOf, type StoredContent, type StoredVersion, sizeOf, type VersionContent } from './version.ts';

/** The ModuleConfig that versions belong to. */
export interface ConfigOwner {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export interface ConfigStoreOptions {
  readonly client: Pick<ResourceClient<ConfigMapObject>, 'get' | 'create' | 'delete'>;
  readonly permit: Permit;
  /** Maximum size of the contents that are kept in memory, in bytes. Default 32 MiB. */
  readonly maxBytes?: number;
}

const VERSION_ANNOTATION = `${PLATFORM_GROUP}/config-version`;
const DIGEST_ANNOTATION = `${PLATFORM_GROUP}/config-digest`;
const PARENTS_ANNOTATION = `${PLATFORM_GROUP}/config-parents`;
/** Key of the content in `data`. */
export const CONTENT_KEY = 'content';
/** Start of the keys of parts for single instances. */
const INSTANCE_PREFIX = 'instance.';
/** `composed-by` of the ConfigMaps with the versions. */
export const CONFIG_MARK = 'ModuleConfig';
/** Hex digits of the digest in the name of a ConfigMap: 40 bits, of a hundred versions of one ModuleConfig. */
const NAME_DIGITS = 10;
const MAX_NAME_LENGTH = 253;
const MAX_BYTES = 32 * 1024 * 1024;

/** Name of the ConfigMap with a version. It follows from what the version is made of, so that a lost write is found again. */
export function configMapNameOf(config: string, digest: string): string {
  const suffix = `-${digest.slice(0, NAME_DIGITS)}`;
  return `${config.slice(0, MAX_NAME_LENGTH - suffix.length)}${suffix}`;
}

/**
 * Contents of versions, each in an immutable ConfigMap that its ModuleConfig owns. Contents that were read lately are
 * kept by their digest. Calls reject as those of ResourceClient do.
 */
export class ConfigStore {
  readonly #options: ConfigStoreOptions;
  /** Contents by digest. */
  readonly #contents: LruMap<StoredContent>;
  /** Reads under way by digest: many that want one version are one request. */
  readonly #reading = new Map<string, Promise<StoredContent | undefined>>();

  constructor(options: ConfigStoreOptions) {
    this.#options = options;
    this.#contents = new LruMap(options.maxBytes ?? MAX_BYTES, sizeOf);
  }

  /**
   * Stores a version, and returns it as it is stored: one whose write got no answer has its first id. Rejects with
   * `Catalog.NameTaken` where another object has the name.
   */
  async put(owner: ConfigOwner, version: StoredVersion, whole: VersionContent): Promise<StoredVersion> {
    const { client, permit } = this.#options;
    const { namespace } = owner;
    const name = configMapNameOf(owner.name, version.digest);
    const annotations = {
      [VERSION_ANNOTATION]: version.id,
      [DIGEST_ANNOTATION]: version.digest,
      [PARENTS_ANNOTATION]: JSON.stringify(whole.parents),
    };
    const labels = { [CATALOG_LABEL.composed]: CONFIG_MARK };
    const metadata = { namespace, name, labels, annotations, ownerReferences: [ownerReferenceOf(owner)] };
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, immutable: true, data: dataOf(whole) };
    try {
      await client.create(object, { permit });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      const found = await ifFound(client.get({ namespace, name }));
      if (found !== undefined && isOfFormer(found, owner)) {
        await unlessGone(client.delete({ namespace, name }, { uid: found.metadata.uid ?? '', permit }));
        await client.create(object, { permit });
        this.#keep(version, whole);
        return version;
      }
      const id = found?.metadata.annotations?.[VERSION_ANNOTATION];
      if (found === undefined || !isOwn(found, owner) || id === undefined || contentIn(found, version) === undefined) {
        throw new ControllerError('Catalog.NameTaken', `ConfigMap ${name} is another object: delete it`);
      }
      return { id, digest: version.digest };
    }
    this.#keep(version, whole);
    return version;
  }

  /** The content of a version. Undefined: somebody has deleted it, or put something else in its place. */
  async get(
    owner: Pick<ConfigOwner, 'namespace' | 'name'>,
    version: StoredVersion,
  ): Promise<StoredContent | undefined> {
    const { digest } = version;
    const known = this.#contents.use(digest);
    if (known !== undefined) return known;
    // ConfigMaps of two owners may have one content: the answer of one says nothing of the other's.
    const key = `${owner.namespace}/${owner.name}/${digest}`;
    const underWay = this.#reading.get(key);
    if (underWay !== undefined) return underWay;
    const reading = this.#read(owner, version).finally(() => this.#reading.delete(key));
    this.#reading.set(key, reading);
    return reading;
  }

  async #read(
    { namespace, name }: Pick<ConfigOwner, 'namespace' | 'name'>,
    version: StoredVersion,
  ): Promise<StoredContent | undefined> {
    const ref = { namespace, name: configMapNameOf(name, version.digest) };
    const found = await ifFound(this.#options.client.get(ref));
    const content = found && contentIn(found, version);
    if (content !== undefined) this.#keep(version, content);
    return content;
  }

  /** Deletes a version of this ModuleConfig; one that has gone is no error. */
  async remove(owner: ConfigOwner, { digest }: StoredVersion): Promise<void> {
    const { client, permit } = this.#options;
    const ref = { namespace: owner.namespace, name: configMapNameOf(owner.name, digest) };
    const found = await ifFound(client.get(ref));
    if (found === undefined || !isOwn(found, owner)) return;
    await unlessGone(client.delete(ref, { uid: found.metadata.uid ?? '', permit }));
  }

  #keep({ digest }: StoredVersion, { content, instances }: StoredContent): void {
    this.#contents.set(digest, { content, instances });
  }
}

function dataOf({ content, instances }: StoredContent): Record<string, string> {
  const parts = Object.entries(instances).map(([name, text]) => [`${INSTANCE_PREFIX}${name}`, text] as const);
  return { [CONTENT_KEY]: content, ...Object.fromEntries(parts) };
}

function ownerReferenceOf({ name, uid }: ConfigOwner): OwnerReference {
  return {
    apiVersion: `${PLATFORM_GROUP}/v1alpha1`,
    kind: CONFIG_MARK,
    name,
    uid,
    controller: true,
    blockOwnerDeletion: true,
  };
}

function isOwn({ metadata }: ConfigMapObject, { uid }: ConfigOwner): boolean {
  return metadata.ownerReferences?.some((owner) => owner.uid === uid && owner.controller === true) ?? false;
}

/** Whether it is of a ModuleConfig of the name that has gone. The garbage collector would delete it, at some time. */
function isOfFormer({ metadata }: ConfigMapObject, { name, uid }: ConfigOwner): boolean {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
  return owner?.kind === CONFIG_MARK && owner.name === name && owner.uid !== uid;
}

/** The content, if it is what the version was made of. */
function contentIn({ metadata, data = {} }: ConfigMapObject, { digest }: StoredVersion): StoredContent | undefined {
  const { [CONTENT_KEY]: content, ...others } = data;
  const parents = parentsIn(metadata.annotations?.[PARENTS_ANNOTATION]);
  if (content === undefined || parents === undefined) return undefined;
  const parts = Object.entries(others).map(([key, text]) => [key.slice(INSTANCE_PREFIX.length), text] as const);
  const instances = Object.fromEntries(parts);
  return digestOf({ content, instances, parents }) === digest ? { content, instances } : undefined;
}

function parentsIn(text = ''): string[] | undefined {
  try {
    const parents: unknown = JSON.parse(text);
    return Array.isArray(parents) && parents.every((one) => typeof one === 'string') ? parents : undefined;
  } catch {
    return undefined;
  }
}
