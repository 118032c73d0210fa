import { MODULE_PODS } from '../../kinds/module-pod.ts';
import { CACHED_TENANCIES, MODULE_TENANCIES } from '../../kinds/module-tenancy.ts';
import { VNODES } from '../../kinds/vnode-object.ts';
import type { KubeObject, ServiceObject } from '../../kube/objects.ts';
import { NODES, PODS, SERVICES } from '../../kube/resource.ts';
import { objectKey } from '../../kube/watch/informer-types.ts';
import type { Runnable } from '../../manager.ts';
import { READ } from '../../reconcile/access.ts';
import {
  type ControllerContext,
  type ControllerDefinition,
  FEED_VARIABLES,
  groupOf,
  type ServedPath,
} from '../../reconcile/controller-definition.ts';
import { ledReconciler } from '../../reconcile/led.ts';
import { TOKEN_ACCESS, tokenAccessOf } from '../../reconcile/token-access.ts';
import type { WebhookRule } from '../../reconcile/webhooks.ts';
import { TokenFiles } from '../../server/token-files.ts';
import { EXPORTED_SERVICES } from './cached-service.ts';
import { ExportController } from './export-controller.ts';
import {
  CACHED_EXPORT_SERVICES,
  EXPORT_SERVICE_CRD,
  EXPORT_SERVICES,
  type ExportServiceObject,
} from './export-service.ts';
import { ExportTable } from './export-table.ts';
import { reviewService } from './exported-service.ts';
import { FeedAccess } from './feed-access.ts';
import { FEED_PATH, feedApp } from './feed-app.ts';
import { FeedLists } from './feed-lists.ts';
import { FeedWatches } from './feed-watches.ts';

const NAME = 'export';
const WORKERS = 4;

const REVIEW: WebhookRule = {
  name: SERVICES.plural,
  path: 'validate',
  kind: SERVICES,
  operations: ['CREATE', 'UPDATE'],
  failurePolicy: 'Ignore',
  conditions: 'module-controller.exportConditions',
  use: 'Other Services never come here. While the platform is away, its ExportService says what is wrong with one.',
};

/**
 * ExportServices. Every process calculates all of them and serves the feed; the leader of several processes writes the
 * objects.
 */
export const EXPORT: ControllerDefinition = {
  name: NAME,
  summary: 'ExportServices, and the feed for load balancers outside of the cluster',
  access: [
    { kind: NODES, verbs: READ, use: 'SharedInformer: the Nodes of bases.' },
    { kind: PODS, verbs: READ, use: 'SharedInformer: the Pods of modules, which are the backends.' },
    {
      kind: SERVICES,
      verbs: ['get', 'list', 'watch'],
      use: 'ExportTable: which Services are exported. ExportController: whether one still is.',
    },
    { kind: MODULE_TENANCIES, verbs: READ, use: 'ExportTable: hosts that namespaces share with others.' },
    {
      kind: SERVICES,
      subresource: 'finalizers',
      verbs: ['update'],
      use: 'ExportController: owner references of ExportServices that hold up the deletion of their Service.',
    },
    {
      kind: EXPORT_SERVICES,
      verbs: ['list', 'watch', 'create', 'patch', 'delete'],
      use: 'ExportController: ExportServices. It restores owner references and specs that somebody has changed.',
    },
    { kind: EXPORT_SERVICES, subresource: 'status', verbs: ['update'], use: 'ExportController: what balancers get.' },
    ...TOKEN_ACCESS,
  ],
  leads: true,
  crds: [{ crd: EXPORT_SERVICE_CRD, usersMay: 'view' }],
  webhooks: [REVIEW],
  events: [
    {
      about: 'Service',
      type: 'Warning',
      reasons: ['OutControl'],
      meaning: 'An ExportService of this name does not belong to the Service, so the controller does not change it.',
    },
    {
      about: 'Service',
      type: 'Warning',
      reasons: ['ExportConflict'],
      meaning: 'A group of balancers does not take the Service: another one has its host and path, or its port.',
    },
  ],
  variables: ['EXPORT_CLUSTER', 'EXPORT_DROP_LOST', ...FEED_VARIABLES],
  metrics: ['exportedServices', 'exportViewSeconds', 'exportWrites', 'exportRequests', 'exportWatches'],
  build: async (context) => {
    const { config, informers, resources, permit, webhooks, ...shared } = context;
    if (config.export === undefined) throw new Error('the configuration has no export');
    const { cluster, dropsLost } = config.export;
    const exports = informers.get(CACHED_EXPORT_SERVICES);
    const table = new ExportTable({
      services: informers.get(EXPORTED_SERVICES),
      pods: informers.get(MODULE_PODS),
      nodes: informers.get(VNODES),
      tenancies: informers.get(CACHED_TENANCIES),
      exports,
      cluster,
      dropsLost,
      ...shared,
    });
    webhooks.register<ServiceObject>(REVIEW, reviewService);
    const controller = new ExportController({
      table,
      exports,
      client: resources.of<ExportServiceObject>(EXPORT_SERVICES),
      services: resources.of<KubeObject>(SERVICES),
      permit,
      ...shared,
    });
    const reconcile = controller.reconcile.bind(controller);
    const reconciler = ledReconciler(NAME, context, { workers: WORKERS, reconcile });
    // This controller alone writes its status, but others may delete the object.
    reconciler.watch({ informer: exports, keysOf: (object) => [objectKey(object)] });
    table.addListener((keys) => {
      for (const key of keys) reconciler.enqueue(key);
    });
    reconciler.addKeys(() => table.keys());
    const parts = groupOf({ 'exported Services': reconciler });
    const { served, tokens } = await feedOf(context, table);
    return { groups: [parts, tokens], served };
  },
};

/** The feed, and the tokens of its balancers, which are read again. Nothing where it is not served. */
async function feedOf(context: ControllerContext, table: ExportTable): Promise<Served> {
  const { config, resources, ...shared } = context;
  const { feed } = config;
  if (feed === undefined) return { served: [], tokens: [] };
  const { metrics } = shared;
  const { groupTokensPath: directory } = feed;
  const tokens = directory === undefined ? undefined : await TokenFiles.load({ directory, owner: 'group', ...shared });
  const access = new FeedAccess({ tokens, users: tokenAccessOf(context) });
  const watches = new FeedWatches({ table, ...shared });
  const lists = new FeedLists({ table, ...shared });
  const listener = feedApp({ table, access, watches, lists, metrics });
  return { served: [{ path: FEED_PATH, listener }], tokens: tokens === undefined ? [] : [tokens] };
}

interface Served {
  readonly served: readonly ServedPath[];
  readonly tokens: readonly Runnable[];
}
