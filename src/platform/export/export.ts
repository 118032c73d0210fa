import { MODULE_PODS } from '../../kinds/module-pod.ts';
import { VNODES } from '../../kinds/vnode-object.ts';
import type { KubeObject, ServiceObject } from '../../kube/objects.ts';
import { SERVICES } from '../../kube/resource.ts';
import { objectKey } from '../../kube/watch/informer-types.ts';
import type { Runnable } from '../../manager.ts';
import { type ControllerContext, type ControllerModule, groupOf } from '../../reconcile/controller-module.ts';
import { Reconciler } from '../../reconcile/reconciler.ts';
import { HttpServer } from '../../server/http-server.ts';
import { TlsFiles } from '../../server/tls-source.ts';
import { EXPORTED_SERVICES } from './cached-service.ts';
import { ConsumerTokens } from './consumer-tokens.ts';
import { ExportController } from './export-controller.ts';
import {
  CACHED_EXPORT_SERVICES,
  EXPORT_SERVICE_CRD,
  EXPORT_SERVICES,
  type ExportServiceObject,
} from './export-service.ts';
import { ExportTable } from './export-table.ts';
import { reviewService } from './exported-service.ts';
import {
  type AccessReviewObject,
  FeedAccess,
  SUBJECT_ACCESS_REVIEWS,
  TOKEN_REVIEWS,
  type TokenReviewObject,
} from './feed-access.ts';
import { feedApp } from './feed-app.ts';
import { FeedLists } from './feed-lists.ts';
import { FeedWatches } from './feed-watches.ts';

const NAME = 'export';
const WORKERS = 4;
const SERVER = 'feed';
/** As many balancers as may watch, behind one gateway. */
const LIMITS = { maxConnectionsOfSource: 500 };

/**
 * ExportServices. Every process calculates all of them and serves the feed; the leader of several processes writes the
 * objects.
 */
export const EXPORT: ControllerModule = {
  name: NAME,
  crds: [EXPORT_SERVICE_CRD],
  build: async (context) => {
    const { config, informers, resourcesOf, leaderOf, webhooks, ...shared } = context;
    if (config.export === undefined) throw new Error('the configuration has no export');
    const { cluster, dropsLost } = config.export;
    const exports = informers.get(CACHED_EXPORT_SERVICES);
    const table = new ExportTable({
      services: informers.get(EXPORTED_SERVICES),
      pods: informers.get(MODULE_PODS),
      nodes: informers.get(VNODES),
      exports,
      cluster,
      dropsLost,
      ...shared,
    });
    webhooks.register<ServiceObject>('validate', SERVICES, ['CREATE', 'UPDATE'], reviewService);
    const leader = leaderOf(`platform-${NAME}`);
    const permit = (): boolean => leader.isLeading();
    const resources = resourcesOf(`platform-${NAME}`);
    const controller = new ExportController({
      table,
      exports,
      client: resources.of<ExportServiceObject>(EXPORT_SERVICES),
      services: resources.of<KubeObject>(SERVICES),
      permit,
      ...shared,
    });
    const reconcile = controller.reconcile.bind(controller);
    const reconciler = new Reconciler({ name: NAME, workers: WORKERS, reconcile, leader, ...shared });
    // This controller alone writes its status, but others may delete the object.
    reconciler.watch({ informer: exports, keysOf: (object) => [objectKey(object)] });
    table.addListener((keys) => {
      for (const key of keys) reconciler.enqueue(key);
    });
    reconciler.addKeys(() => table.keys());
    const parts = groupOf({ 'exported Services': reconciler, 'leader of exported Services': leader });
    return { groups: [parts, await feedOf(context, table)] };
  },
};

/** The server of the feed, if it is to be served. */
async function feedOf({ config, resourcesOf, ...shared }: ControllerContext, table: ExportTable): Promise<Runnable[]> {
  const { feed } = config.export ?? {};
  if (feed === undefined) return [];
  const { metrics } = shared;
  const tls = await TlsFiles.load({ ...feed, name: SERVER, ...shared });
  const { tokensPath: directory } = feed;
  const tokens = directory === undefined ? undefined : await ConsumerTokens.load({ directory, ...shared });
  const resources = resourcesOf(`platform-${NAME}`);
  const access = new FeedAccess({
    tokens,
    tokenReviews: resources.of<TokenReviewObject>(TOKEN_REVIEWS),
    accessReviews: resources.of<AccessReviewObject>(SUBJECT_ACCESS_REVIEWS),
    ...shared,
  });
  const watches = new FeedWatches({ table, ...shared });
  const lists = new FeedLists({ table, ...shared });
  const app = feedApp({ table, access, watches, lists, metrics });
  const server = new HttpServer({
    name: SERVER,
    port: feed.port,
    app,
    tls,
    limits: LIMITS,
    answersPipelined: true,
    ...shared,
  });
  return [tls, server, ...(tokens === undefined ? [] : [tokens])];
}
