import { ControllerError } from '../../../errors.ts';
import { type Informer, objectKey } from '../../../kube/watch/informer-types.ts';
import { LruMap } from '../../../lru-map.ts';
import type { CachedModule } from '../module/cached-module.ts';
import type { ConfigInForce, KnownConfig } from '../module/configs-in-force.ts';
import type { ModuleConfigs } from '../module/module-controller.ts';
import { argumentsOf, type ConfigArguments, type HttpConfigInForce, type ModuleConfigInForce } from './arguments.ts';
import type { CachedModuleConfig } from './cached-module-config.ts';
import type { ConfigStore } from './config-store.ts';
import type { ConfigVersion } from './module-config.ts';
import type { StoredContent } from './version.ts';

export interface ConfigContentsOptions {
  readonly configs: Informer<CachedModuleConfig>;
  readonly store: Pick<ConfigStore, 'get'>;
  /** A version of this ModuleConfig, `namespace/name`, has lost its content. */
  readonly onLost: (key: string) => void;
}

type Found = readonly [CachedModuleConfig, ConfigVersion];

/** Arguments that are kept, of at most 8 KiB each: parsing a file takes milliseconds. */
const MAX_ARGUMENTS = 2_000;

/** What Modules find of ModuleConfigs: versions in the cache, contents in the store. */
export class ConfigContents implements ModuleConfigs {
  readonly #options: ConfigContentsOptions;
  /** Arguments by the versions that they are made of. */
  readonly #arguments = new LruMap<ConfigArguments>(MAX_ARGUMENTS);

  constructor(options: ConfigContentsOptions) {
    this.#options = options;
  }

  find(namespace: string, name: string): KnownConfig | undefined {
    const config = this.#options.configs.get(`${namespace}/${name}`);
    if (config?.status === undefined) return undefined;
    const { activeVersion, versions = [], conditions } = config.status;
    const ready = conditions.find(({ type }) => type === 'Ready');
    return {
      activeVersion,
      versions: new Set(versions.map(({ id }) => id)),
      isTemplate: config.spec.target.kind === 'Template',
      problem: ready?.status === 'False' ? ready.message : '',
    };
  }

  async argumentsOf(
    { namespace }: Pick<CachedModule, 'namespace'>,
    wanted: readonly ConfigInForce[],
  ): Promise<ConfigArguments> {
    const asArguments: Found[] = [];
    const overHttp: HttpConfigInForce[] = [];
    for (const { name, version, as } of wanted) {
      const config = this.#options.configs.get(`${namespace}/${name}`);
      const stored = config?.status?.versions?.find(({ id }) => id === version);
      if (config === undefined || stored === undefined) {
        return { fault: `configs: ModuleConfig ${name} has no version ${version}` };
      }
      if (as === 'Http') overHttp.push({ name, format: config.spec.format, version });
      else asArguments.push([config, stored]);
    }
    const parts = asArguments.map(
      ([
        {
          name,
          spec: { format },
        },
        { digest },
      ]) => [name, format, digest],
    );
    const key = JSON.stringify([namespace, parts, overHttp]);
    const made = this.#arguments.get(key) ?? argumentsOf(namespace, await this.#read(asArguments), overHttp);
    this.#arguments.set(key, made);
    return made;
  }

  /** The content of a version. Rejects where the API server does not answer, or has none. */
  async contentOf(config: CachedModuleConfig, version: ConfigVersion): Promise<StoredContent> {
    const stored = await this.#options.store.get(config, version);
    if (stored !== undefined) return stored;
    this.#options.onLost(objectKey(config));
    throw new ControllerError(
      'Catalog.ContentLost',
      `configs: the content of version ${version.id} of ModuleConfig ${config.name} was deleted`,
    );
  }

  /** One after the other: they may be large. */
  async #read(found: readonly Found[]): Promise<ModuleConfigInForce[]> {
    const contents: ModuleConfigInForce[] = [];
    for (const [config, version] of found) {
      const { content } = await this.contentOf(config, version);
      contents.push({ name: config.name, format: config.spec.format, content });
    }
    return contents;
  }
}
