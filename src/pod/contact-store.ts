import { createHash } from 'node:crypto';
import { ControllerError } from '../errors.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ConfigMapObject } from '../kube/objects.ts';
import { isNotFound } from '../kube/transport/api-error.ts';
import type { Permit } from '../kube/transport/rest-lane.ts';
import { COMPONENT, COMPONENT_LABEL, ENV_LABEL, NODE_LEASE_NAMESPACE } from '../labels.ts';

export type ContactApi = Pick<KubeClient, 'getConfigMap' | 'createConfigMap' | 'patchConfigMap'>;

/** One shard as it was read. */
export interface StoredShard {
  /** Stored texts by identity: not necessarily entries. */
  readonly texts: ReadonlyMap<string, unknown>;
  /** undefined: there is no ConfigMap yet. */
  readonly version: string | undefined;
}

/** The ConfigMaps in which an ENV keeps its record of first contacts. Calls reject as those of KubeClient do. */
export class ContactStore {
  readonly #api: ContactApi;
  readonly #env: string;
  readonly #prefix: string;

  constructor(api: ContactApi, env: string) {
    this.#api = api;
    this.#env = env;
    this.#prefix = recordNameOf(env);
  }

  nameOf(shard: number): string {
    return `${this.#prefix}-${shard}`;
  }

  async read(shard: number): Promise<StoredShard> {
    try {
      return storedOf(await this.#api.getConfigMap(this.nameOf(shard)));
    } catch (error) {
      if (isNotFound(error)) return { texts: new Map(), version: undefined };
      throw error;
    }
  }

  /** Writes to the version that was read only: 404 or 409 when the shard has changed since, or was made or deleted. */
  async write(
    shard: number,
    { version }: StoredShard,
    data: Readonly<Record<string, string | null>>,
    permit: Permit,
  ): Promise<void> {
    const name = this.nameOf(shard);
    if (version !== undefined) {
      await this.#api.patchConfigMap(name, { metadata: { resourceVersion: version }, data }, permit);
      return;
    }
    const labels = { [COMPONENT_LABEL]: COMPONENT.contacts, [ENV_LABEL]: this.#env };
    const texts = Object.entries(data).filter((pair): pair is [string, string] => pair[1] !== null);
    const metadata = { name, namespace: NODE_LEASE_NAMESPACE, labels };
    const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: Object.fromEntries(texts) };
    await this.#api.createConfigMap(configMap, permit);
  }
}

/** A valid name for every ENV, and another one for each: those of `Dev`, `dev` and `d.e.v` differ by the hash. */
export function recordNameOf(env: string): string {
  const slug = env.toLowerCase().replace(/[^a-z0-9]+/g, '-');
  const hash = createHash('sha256').update(env).digest('hex').slice(0, 12);
  return `module-controller-bases.${slug}.${hash}`;
}

/** Throws for an answer that is no ConfigMap: it would look like a record without bases. */
function storedOf({ metadata, data = {} }: ConfigMapObject): StoredShard {
  const isData = typeof data === 'object' && data !== null && !Array.isArray(data);
  if (typeof metadata?.resourceVersion !== 'string' || !isData)
    throw new ControllerError('Kube.RequestFailed', 'the answer is not a ConfigMap');
  return { texts: new Map(Object.entries(data)), version: metadata.resourceVersion };
}
