import { isDeepStrictEqual } from 'node:util';
import type { ResourceClient } from '../../../kube/resource.ts';
import type { Permit } from '../../../kube/transport/rest-lane.ts';
import type { Informer } from '../../../kube/watch/informer-types.ts';
import type { CachedModule } from '../module/cached-module.ts';
import { type CachedPlatformConfig, type PlatformConfigObject, platformConfigStatus } from './platform-config.ts';

export interface PlatformConfigControllerOptions {
  readonly configs: Informer<CachedPlatformConfig>;
  readonly modules: Informer<CachedModule>;
  readonly client: Pick<ResourceClient<PlatformConfigObject>, 'mergePatch'>;
  readonly permit: Permit;
}

/** Lists the applications of a namespace in its PlatformConfig. A key is that of the PlatformConfig. */
export class PlatformConfigController {
  readonly #options: PlatformConfigControllerOptions;

  constructor(options: PlatformConfigControllerOptions) {
    this.#options = options;
  }

  async reconcile(key: string): Promise<undefined> {
    const { configs, modules, client, permit } = this.#options;
    const config = configs.get(key);
    if (config === undefined) return;
    const { namespace, name, uid } = config;
    const used = modules.byIndex('namespace', namespace).map(({ spec }) => spec.app);
    const status = platformConfigStatus(config, used);
    if (isDeepStrictEqual(status, config.status)) return;
    const answer = await client.mergePatch(
      { namespace, name },
      { metadata: { uid }, status },
      { subresource: 'status', permit },
    );
    configs.upsert(answer);
  }
}

/** Whether two versions differ in nothing that the status depends on. */
export function isSamePlatformConfig(a: CachedPlatformConfig, b: CachedPlatformConfig): boolean {
  return a.uid === b.uid && a.generation === b.generation && isDeepStrictEqual(a.status, b.status);
}
