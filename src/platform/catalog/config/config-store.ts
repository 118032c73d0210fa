import { createHash } from 'node:crypto';
import { ControllerError } from '../../../errors.ts';
import type { ConfigMapObject, OwnerReference } from '../../../kube/objects.ts';
import type { ResourceClient } from '../../../kube/resource.ts';
import { ifFound, isAlreadyExists, unlessGone } from '../../../kube/transport/api-error.ts';
import type { Permit } from '../../../kube/transport/rest-lane.ts';
import { PLATFORM_GROUP } from '../../../labels.ts';
import { CATALOG_LABEL } from '../compose/compose.ts';

/** The ModuleConfig that versions belong to. */
export interface ConfigOwner {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** A version of a configuration. */
export interface StoredVersion {
  /** `YYYYMMDDhhmmss-{first 8 hex of the digest}`, UTC. */
  readonly id: string;
  /** SHA-256 of what the version is made of, in hex. */
  readonly digest: string;
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
/** `composed-by` of the ConfigMaps with the versions. */
export const CONFIG_MARK = 'ModuleConfig';
/** Hex digits of the digest in the name of a ConfigMap: 40 bits, of a hundred versions of one ModuleConfig. */
const NAME_DIGITS = 10;
const MAX_NAME_LENGTH = 253;
const MAX_BYTES = 32 * 1024 * 1024;

/** SHA-256 of a content and of the versions of its parents, in hex: what makes a version. */
export function versionDigestOf(content: string, parents: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parents)).update('\n').update(content).digest('hex');
}

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
  /** Contents by digest, the one unused for longest in front. */
  readonly #contents = new Map<string, string>();
  /** Total size of `#contents`. */
  #bytes = 0;

  constructor(options: ConfigStoreOptions) {
    this.#options = options;
  }

  /**
   * Stores a version, and returns it as it is stored: one whose write got no answer has its first id. Rejects with
   * `Catalog.NameTaken` where another object has the name.
   */
  async put(
    owner: ConfigOwner,
    version: StoredVersion,
    content: string,
    parents: readonly string[],
  ): Promise<StoredVersion> {
    const { client, permit } = this.#options;
    const { namespace } = owner;
    const name = configMapNameOf(owner.name, version.digest);
    const annotations = {
      [VERSION_ANNOTATION]: version.id,
      [DIGEST_ANNOTATION]: version.digest,
      [PARENTS_ANNOTATION]: JSON.stringify(parents),
    };
    const labels = { [CATALOG_LABEL.composed]: CONFIG_MARK };
    const metadata = { namespace, name, labels, annotations, ownerReferences: [ownerReferenceOf(owner)] };
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, immutable: true, data: { [CONTENT_KEY]: content } };
    try {
      await client.create(object, { permit });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      const found = await ifFound(client.get({ namespace, name }));
      if (found !== undefined && isOfFormer(found, owner)) {
        await unlessGone(client.delete({ namespace, name }, { uid: found.metadata.uid ?? '', permit }));
        await client.create(object, { permit });
        this.#keep(version.digest, content);
        return version;
      }
      const id = found?.metadata.annotations?.[VERSION_ANNOTATION];
      if (found === undefined || !isOwn(found, owner) || id === undefined || contentIn(found, version) === undefined) {
        throw new ControllerError('Catalog.NameTaken', `ConfigMap ${name} is another object: delete it`);
      }
      return { id, digest: version.digest };
    }
    this.#keep(version.digest, content);
    return version;
  }

  /** The content of a version. Undefined: somebody has deleted it, or put something else in its place. */
  async get(owner: Pick<ConfigOwner, 'namespace' | 'name'>, version: StoredVersion): Promise<string | undefined> {
    const known = this.#contents.get(version.digest);
    if (known !== undefined) {
      // It is the one used last now.
      this.#contents.delete(version.digest);
      this.#contents.set(version.digest, known);
      return known;
    }
    const { namespace, name } = owner;
    const ref = { namespace, name: configMapNameOf(name, version.digest) };
    const found = await ifFound(this.#options.client.get(ref));
    const content = found && contentIn(found, version);
    if (content !== undefined) this.#keep(version.digest, content);
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

  #keep(digest: string, content: string): void {
    if (this.#contents.has(digest)) return;
    this.#contents.set(digest, content);
    this.#bytes += Buffer.byteLength(content);
    for (const [oldest, text] of this.#contents) {
      if (this.#bytes <= (this.#options.maxBytes ?? MAX_BYTES) || oldest === digest) break;
      this.#contents.delete(oldest);
      this.#bytes -= Buffer.byteLength(text);
    }
  }
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
function contentIn({ metadata, data }: ConfigMapObject, { digest }: StoredVersion): string | undefined {
  const content = data?.[CONTENT_KEY];
  const parents = parentsIn(metadata.annotations?.[PARENTS_ANNOTATION]);
  if (content === undefined || parents === undefined) return undefined;
  return versionDigestOf(content, parents) === digest ? content : undefined;
}

function parentsIn(text = ''): string[] | undefined {
  try {
    const parents: unknown = JSON.parse(text);
    return Array.isArray(parents) && parents.every((one) => typeof one === 'string') ? parents : undefined;
  } catch {
    return undefined;
  }
}
