import express, { type Express } from 'express';
import { isDnsLabel } from '../../../kinds/label-syntax.ts';
import { type Informer, isWatchAlive } from '../../../kube/watch/informer-types.ts';
import type { Metrics } from '../../../metrics.ts';
import { refuse } from '../../../server/refuse.ts';
import { type CatalogPod, moduleLabelsKey } from '../catalog-pod.ts';
import type { CachedModule } from '../module/cached-module.ts';
import { MODULES } from '../module/module.ts';
import { type CachedPlatformConfig, PLATFORM_CONFIG_NAME } from '../platform-config/platform-config.ts';
import { admit } from './admit.ts';
import type { CatalogAccess } from './catalog-access.ts';
import { endpointNameOf, resolve } from './resolve.ts';

export interface ResolveAppOptions {
  readonly modules: Informer<CachedModule>;
  readonly pods: Informer<CatalogPod>;
  readonly configs: Informer<CachedPlatformConfig>;
  readonly access: Pick<CatalogAccess, 'of'>;
  readonly metrics: Pick<Metrics, 'catalogRequests'>;
}

export const RESOLVE_PATH = '/resolve';
const FORM = `${RESOLVE_PATH}/{namespace}/{app}.{module}.{port}`;
/** `.` and `_` are for names of objects outside of the cluster. */
const NAME = /^[0-9A-Za-z](?:[-._0-9A-Za-z]{0,190}[0-9A-Za-z])?$/;

/** `GET /resolve/{namespace}/{app}.{module}.{port}`: where something listens, from the caches. */
export function resolveApp({ modules, pods, configs, access, metrics }: ResolveAppOptions): Express {
  const app = express();
  app.disable('x-powered-by');
  app.get(`${RESOLVE_PATH}/:namespace/:name`, async (request, response) => {
    response.once('close', () =>
      metrics.catalogRequests.inc({ path: RESOLVE_PATH, code: String(response.statusCode) }),
    );
    const { namespace, name } = request.params;
    if (!isDnsLabel(namespace) || !NAME.test(name)) return refuse(response, 400, `the path must have the form ${FORM}`);
    if (!(await admit(request, response, access, { namespace, app: undefined, kind: MODULES }))) return;
    // Without the watch nobody knows which Pods have gone.
    if (![modules, pods, configs].every(isWatchAlive))
      return refuse(response, 503, 'the caches of this replica are not current: ask another one');
    const wanted = endpointNameOf(name);
    const found = wanted && modules.get(`${namespace}/${wanted.app.toLowerCase()}-${wanted.module}`);
    const resolved = resolve({
      name,
      module: found?.spec.app === wanted?.app ? found : undefined,
      pods: wanted === undefined ? [] : pods.byIndex('module', moduleLabelsKey(namespace, wanted)),
      config: configs.get(`${namespace}/${PLATFORM_CONFIG_NAME}`)?.spec,
    });
    if (resolved === undefined) {
      return refuse(
        response,
        404,
        `no Module of ${namespace} has ${name}, and upChain of its PlatformConfig has no default`,
      );
    }
    response.json(resolved);
  });
  app.use((request, response) => {
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    if (isRead) refuse(response, 404, `the path must have the form ${FORM}`);
    else refuse(response.set('Allow', 'GET, HEAD'), 405, 'only GET and HEAD are served');
  });
  return app;
}
