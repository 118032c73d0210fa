import type { Express } from 'express';
import type { Informer } from '../../../kube/watch/informer-types.ts';
import type { Logger } from '../../../logger.ts';
import type { Metrics } from '../../../metrics.ts';
import { refuse } from '../../../server/refuse.ts';
import { type CatalogPod, moduleLabelsKey } from '../catalog-pod.ts';
import type { CachedModule } from '../module/cached-module.ts';
import { MODULES } from '../module/module.ts';
import { type CachedPlatformConfig, PLATFORM_CONFIG_NAME } from '../platform-config/platform-config.ts';
import type { CatalogAccess } from './catalog-access.ts';
import { readApp } from './read-app.ts';
import { endpointNameOf, resolve } from './resolve.ts';

export interface ResolveAppOptions {
  readonly modules: Informer<CachedModule>;
  readonly pods: Informer<CatalogPod>;
  readonly configs: Informer<CachedPlatformConfig>;
  readonly access: Pick<CatalogAccess, 'of'>;
  readonly metrics: Pick<Metrics, 'catalogRequests'>;
  readonly logger: Logger;
}

export const RESOLVE_PATH = '/resolve';
const FORM = `${RESOLVE_PATH}/{namespace}/{app}.{module}.{port}`;
/** `.` and `_` are for names of objects outside of the cluster. */
const NAME = /^[0-9A-Za-z](?:[-._0-9A-Za-z]{0,190}[0-9A-Za-z])?$/;

/** `GET /resolve/{namespace}/{app}.{module}.{port}`: where something listens, from the caches. */
export function resolveApp({ modules, pods, configs, ...shared }: ResolveAppOptions): Express {
  return readApp({
    path: RESOLVE_PATH,
    routes: ['/:namespace/:name'],
    form: FORM,
    kind: MODULES,
    caches: [modules, pods, configs],
    ...shared,
    wantedIn: ({ params: { name = '' } }) =>
      NAME.test(name) ? { wanted: name } : { fault: `the path must have the form ${FORM}` },
    // Each application of the namespace may read it.
    answer: ({ response, namespace, wanted: name }) => {
      const wanted = endpointNameOf(name);
      const found = wanted && modules.get(`${namespace}/${wanted.app.toLowerCase()}-${wanted.module}`);
      const resolved = resolve({
        name,
        module: found?.spec.app === wanted?.app ? found : undefined,
        pods: wanted === undefined ? [] : pods.byIndex('module', moduleLabelsKey(namespace, wanted)),
        config: configs.get(`${namespace}/${PLATFORM_CONFIG_NAME}`)?.spec,
      });
      if (resolved === undefined) {
        const text = `no Module of ${namespace} has ${name}, and upChain of its PlatformConfig has no default`;
        return refuse(response, 404, text);
      }
      response.json(resolved);
    },
  });
}
