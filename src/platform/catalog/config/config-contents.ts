import { ControllerError } from '../../../errors.ts';
import type { Informer } from '../../../kube/watch/informer-types.ts';
import { LruMap } from '../../../lru-map.ts';
import type { CachedModule } from '../module/cached-module.ts';
import type { ConfigInForce, KnownConfig } from '../module/configs-in-force.ts';
import type { ModuleConfigs } from '../module/module-controller.ts';
import { argumentsOf, type ConfigArguments, type ModuleConfigInForce } from './arguments.ts';
import type { CachedModuleConfig } from './cached-module-config.ts';
import type { ConfigStore } from './config-store.ts';
import type { ConfigVersion } from './module-config.ts';

export interface ConfigContentsOptions {
  readonly configs: Informer<CachedModuleConfig>;
  readonly store: Pick<ConfigStore, 'get'>;
  /** A version of this ModuleConfig, `namespace/name`, has lost its content. */
  readonly onLost: (key: string) => void;
}

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
    const status = this.#options.configs.get(`${namespace}/${name}`)?.status;
    if (status === undefined) return undefined;
    return { activeVersion: status.activeVersion, versions: new Set(status.versions?.map(({ id }) => id)) };
  }

  async argumentsOf(
    { namespace }: Pick<CachedModule, 'namespace'>,
    wanted: readonly ConfigInForce[],
  ): Promise<ConfigArguments> {
    const found: (readonly [CachedModuleConfig, ConfigVersion])[] = [];
    for (const { name, version } of wanted) {
      const config = this.#options.configs.get(`${namespace}/${name}`);
      const stored = config?.status?.versions?.find(({ id }) => id === version);
      if (config === undefined || stored === undefined) {
        return { fault: `configs: ModuleConfig ${name} has no version ${version}` };
      }
      found.push([config, stored]);
    }
    const key = JSON.stringify(found.map(([{ name, spec }, { digest }]) => [name, spec.format, digest]));
    const made = this.#arguments.get(key) ?? argumentsOf(await this.#read(namespace, found));
    this.#arguments.set(key, made);
    return made;
  }

  async #read(
    namespace: string,
    found: readonly (readonly [CachedModuleConfig, ConfigVersion])[],
  ): Promise<ModuleConfigInForce[]> {
    const contents: ModuleConfigInForce[] = [];
    for (const [config, version] of found) {
      const content = await this.#options.store.get(config, version);
      if (content === undefined) {
        this.#options.onLost(`${namespace}/${config.name}`);
        throw new ControllerError(
          'Catalog.ContentLost',
          `configs: the content of version ${version.id} of ModuleConfig ${config.name} was deleted`,
        );
      }
      const { format } = config.spec;
      contents.push({ name: config.name, format, content });
    }
    return contents;
  }
}
