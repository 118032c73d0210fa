import type { KubeObject, PodObject } from '../../kube/objects.ts';
import { PODS, SERVICES } from '../../kube/resource.ts';
import { objectKey } from '../../kube/watch/informer-types.ts';
import type { Runnable } from '../../manager.ts';
import { type KindAccess, READ } from '../../reconcile/access.ts';
import {
  type ControllerContext,
  type ControllerDefinition,
  FEED_VARIABLES,
  groupOf,
  type ServedPath,
} from '../../reconcile/controller-definition.ts';
import { ledReconciler } from '../../reconcile/led.ts';
import { controllerKeyOf, type Reconciler } from '../../reconcile/reconciler.ts';
import { TOKEN_ACCESS, tokenAccessOf } from '../../reconcile/token-access.ts';
import { TokenFiles } from '../../server/token-files.ts';
import {
  CATALOG_PODS,
  type CatalogPod,
  hasSameProblem,
  isSameLivePod,
  moduleKeyOfLabels,
  moduleLabelsKey,
} from './catalog-pod.ts';
import { WORKLOAD_KINDS } from './compose/compose.ts';
import {
  type CachedComposed,
  COMPOSED_SERVICES,
  COMPOSED_WORKLOADS,
  isSameComposed,
} from './compose/composed-object.ts';
import { Composer } from './compose/composer.ts';
import { CACHED_MODULE_CONFIGS, offersSame } from './config/cached-module-config.ts';
import type { ConfigContents } from './config/config-contents.ts';
import { CONFIG_EVENTS } from './config/config-controller.ts';
import { configAccess, configLoopOf, modulesUsing } from './config/config-loop.ts';
import { MODULE_CONFIG_CRD } from './config/module-config.ts';
import { CACHED_MODULES, type CachedModule, hasSameReleases } from './module/cached-module.ts';
import { MODULE_CRD, MODULES, type ModuleObject, WORKLOADS } from './module/module.ts';
import { ModuleController } from './module/module-controller.ts';
import { MODULE_EVENTS } from './module/module-events.ts';
import {
  CACHED_PLATFORM_CONFIGS,
  type CachedPlatformConfig,
  PLATFORM_CONFIG_CRD,
  PLATFORM_CONFIG_NAME,
  PLATFORM_CONFIGS,
  type PlatformConfigObject,
  recordLimitOf,
} from './platform-config/platform-config.ts';
import { isSamePlatformConfig, PlatformConfigController } from './platform-config/platform-config-controller.ts';
import {
  CACHED_EXITED_RECORDS,
  EXITED_RECORD_CRD,
  EXITED_RECORDS,
  type ExitedRecordObject,
} from './record/exited-record.ts';
import { ExitedRecordController } from './record/exited-record-controller.ts';
import {
  CACHED_MODULE_RELEASES,
  isSameRelease,
  MODULE_RELEASE_CRD,
  MODULE_RELEASES,
  type ModuleReleaseObject,
} from './release/module-release.ts';
import { RELEASE_EVENTS, ReleaseController } from './release/release-controller.ts';
import { CatalogAccess, isAppOfNamespace } from './serve/catalog-access.ts';
import { CONFIG_PATH, configApp } from './serve/config-app.ts';
import { RESOLVE_PATH, resolveApp } from './serve/resolve-app.ts';

const NAME = 'catalog';
/** Names of its other loops, in metrics and logs. */
const EXITS = 'catalog-exits';
const RELEASES = 'catalog-releases';
const CONFIGS = 'catalog-configs';
const WORKERS = 8;
/** An admin binds it in the namespaces whose Modules the platform may compose. */
const OPT_IN_ROLE = 'module-platform-catalog';

const COMPOSED_KINDS = [...WORKLOADS.map((kind) => WORKLOAD_KINDS[kind]), SERVICES];

/** Modules and their releases. The leader of several processes acts. */
export const CATALOG: ControllerDefinition = {
  name: NAME,
  summary: 'Modules: what runs, where, and which release; each makes its workload and its Service',
  access: [
    {
      kind: MODULES,
      verbs: ['get', 'list', 'watch'],
      use: 'SharedInformer: Modules. ModuleController and ReleaseController: whether one is as the watch shows it.',
    },
    {
      kind: MODULES,
      verbs: ['patch'],
      optInRole: OPT_IN_ROLE,
      use: 'ModuleController: their release, to roll it back.',
    },
    { kind: MODULES, subresource: 'status', verbs: ['patch'], use: 'ModuleController: their status.' },
    {
      kind: MODULES,
      subresource: 'finalizers',
      verbs: ['update'],
      use: 'Composer: owner references of workloads and Services that hold up the deletion of their Module.',
    },
    { kind: MODULE_RELEASES, verbs: READ, use: 'SharedInformer: published releases.' },
    {
      kind: MODULE_RELEASES,
      verbs: ['patch'],
      optInRole: OPT_IN_ROLE,
      use: 'ReleaseController: it removes the oldest releases that nobody uses.',
    },
    {
      kind: MODULE_RELEASES,
      subresource: 'status',
      verbs: ['patch'],
      use: 'ReleaseController: which releases are in use.',
    },
    { kind: PLATFORM_CONFIGS, verbs: READ, use: 'SharedInformer: limits and applications of namespaces.' },
    {
      kind: PLATFORM_CONFIGS,
      subresource: 'status',
      verbs: ['patch'],
      use: 'PlatformConfigController: applications of the Modules.',
    },
    { kind: EXITED_RECORDS, verbs: READ, use: 'SharedInformer: records of Pods that have gone.' },
    {
      kind: EXITED_RECORDS,
      verbs: ['create', 'delete'],
      optInRole: OPT_IN_ROLE,
      use: 'ExitedRecordController: the record of each Module. It deletes that of a former Module of the same name.',
    },
    {
      kind: EXITED_RECORDS,
      subresource: 'status',
      verbs: ['patch'],
      optInRole: OPT_IN_ROLE,
      use: 'ExitedRecordController: which Pods have gone.',
    },
    {
      kind: PODS,
      verbs: ['get', 'list', 'watch'],
      use: 'SharedInformer: Pods of Modules. ExitedRecordController: whether one has gone, or has lost its labels.',
    },
    ...configAccess(OPT_IN_ROLE),
    ...TOKEN_ACCESS,
    ...COMPOSED_KINDS.flatMap((kind): KindAccess[] => [
      { kind, verbs: READ, use: 'SharedInformer: what Modules have composed.' },
      {
        kind,
        verbs: ['get', 'create', 'patch', 'delete'],
        optInRole: OPT_IN_ROLE,
        use: 'Composer: what Modules compose.',
      },
    ]),
  ],
  leads: true,
  variables: FEED_VARIABLES,
  metrics: ['catalogRequests'],
  crds: [
    { crd: MODULE_CRD, usersMay: 'edit' },
    { crd: MODULE_RELEASE_CRD, usersMay: 'edit' },
    { crd: EXITED_RECORD_CRD, usersMay: 'view' },
    { crd: PLATFORM_CONFIG_CRD, usersMay: 'edit' },
    { crd: MODULE_CONFIG_CRD, usersMay: 'edit' },
  ],
  events: [...MODULE_EVENTS, ...RELEASE_EVENTS, ...CONFIG_EVENTS],
  build: async (context) => {
    const { config, informers, resources, permit, ...shared } = context;
    const modules = informers.get(CACHED_MODULES);
    const releases = informers.get(CACHED_MODULE_RELEASES);
    const pods = informers.get(CATALOG_PODS);
    const composerOf = (watched: (typeof COMPOSED_WORKLOADS)[keyof typeof COMPOSED_WORKLOADS], kind: typeof SERVICES) =>
      new Composer({
        informer: informers.get(watched),
        client: resources.of<KubeObject>(kind),
        permit,
        clock: shared.clock,
      });
    const workloads = {
      ModuleDeployment: composerOf(COMPOSED_WORKLOADS.ModuleDeployment, WORKLOAD_KINDS.ModuleDeployment),
      Deployment: composerOf(COMPOSED_WORKLOADS.Deployment, WORKLOAD_KINDS.Deployment),
      StatefulSet: composerOf(COMPOSED_WORKLOADS.StatefulSet, WORKLOAD_KINDS.StatefulSet),
      DaemonSet: composerOf(COMPOSED_WORKLOADS.DaemonSet, WORKLOAD_KINDS.DaemonSet),
    };
    const configuration = configLoopOf(context);
    const controller = new ModuleController({
      modules,
      releases,
      workloads,
      pods,
      services: composerOf(COMPOSED_SERVICES, SERVICES),
      client: resources.of<ModuleObject>(MODULES),
      configs: configuration.contents,
      permit,
      env: config.env,
      ...shared,
    });
    const reconcile = controller.reconcile.bind(controller);
    const reconciler = ledReconciler(NAME, context, { workers: WORKERS, reconcile });
    reconciler.watch({
      informer: modules,
      keysOf: (module) => [objectKey(module)],
      isSame: controller.isSame.bind(controller),
    });
    reconciler.watch({ informer: releases, keysOf: (release) => [objectKey(release)], isSame: isSameRelease });
    reconciler.watch({ informer: pods, keysOf: keysOfPod, isSame: hasSameProblem });
    for (const watched of [...Object.values(COMPOSED_WORKLOADS), COMPOSED_SERVICES]) {
      reconciler.watch({ informer: informers.get(watched), keysOf: keysOfComposed, isSame: isSameComposed });
    }
    reconciler.watch({
      informer: informers.get(CACHED_MODULE_CONFIGS),
      keysOf: ({ namespace, name }) => modulesUsing(configuration.uses, namespace, name),
      isSame: offersSame,
    });
    const loops = {
      Modules: reconciler,
      configuration: configuration.reconciler,
      releases: releasesOf(context),
      'exited Pods': exitsOf(context),
      applications: configsOf(context),
    };
    const { served, tokens } = await servedOf(context, configuration.contents);
    return { groups: [groupOf(loops), tokens], served };
  },
};

interface Served {
  readonly served: readonly ServedPath[];
  readonly tokens: readonly Runnable[];
}

/** What clients ask for, and the tokens of applications, which are read again. Nothing without the port of the feed. */
async function servedOf(context: ControllerContext, contents: ConfigContents): Promise<Served> {
  const { config, informers, ...shared } = context;
  const { feed } = config;
  if (feed === undefined) return { served: [], tokens: [] };
  const { appTokensPath: directory } = feed;
  const files = { owner: 'application', isOwner: isAppOfNamespace, ...shared };
  const tokens = directory === undefined ? undefined : await TokenFiles.load({ directory, ...files });
  const access = new CatalogAccess({ tokens, users: tokenAccessOf(context) });
  const common = { access, metrics: shared.metrics, logger: shared.logger };
  const resolving = resolveApp({
    modules: informers.get(CACHED_MODULES),
    pods: informers.get(CATALOG_PODS),
    configs: informers.get(CACHED_PLATFORM_CONFIGS),
    ...common,
  });
  const configuring = configApp({
    configs: informers.get(CACHED_MODULE_CONFIGS),
    modules: informers.get(CACHED_MODULES),
    contents,
    ...common,
  });
  return {
    served: [
      { path: RESOLVE_PATH, listener: resolving },
      { path: CONFIG_PATH, listener: configuring },
    ],
    tokens: tokens === undefined ? [] : [tokens],
  };
}

/** The loop of ModuleReleases. */
function releasesOf(context: ControllerContext): Reconciler {
  const { informers, resources } = context;
  const modules = informers.get(CACHED_MODULES);
  const releases = informers.get(CACHED_MODULE_RELEASES);
  const pods = informers.get(CATALOG_PODS);
  const configs = informers.get(CACHED_PLATFORM_CONFIGS);
  const controller = new ReleaseController({
    ...context,
    releases,
    modules,
    client: resources.of<ModuleReleaseObject>(MODULE_RELEASES),
    moduleClient: resources.of<ModuleObject>(MODULES),
    idsOfPods: ({ namespace, spec }) =>
      pods.byIndex('module', moduleLabelsKey(namespace, spec)).flatMap(({ id }) => id ?? []),
    limitOf: (namespace) => recordLimitOf(configs, namespace, 'moduleRelease'),
  });
  const reconcile = controller.reconcile.bind(controller);
  const reconciler = ledReconciler(RELEASES, context, { workers: WORKERS, reconcile });
  reconciler.watch({ informer: releases, keysOf: (release) => [objectKey(release)] });
  reconciler.watch({ informer: modules, keysOf: (module) => [objectKey(module)], isSame: hasSameReleases });
  reconciler.watch({ informer: pods, keysOf: keysOfPod, isSame: (a, b) => a.module === b.module && a.id === b.id });
  const keysOf = ({ namespace }: CachedPlatformConfig): string[] =>
    releases.byIndex('namespace', namespace).map(objectKey);
  reconciler.watch({ informer: configs, keysOf, isSame: isSamePlatformConfig });
  return reconciler;
}

/** The loop of PlatformConfigs. */
function configsOf(context: ControllerContext): Reconciler {
  const { informers, resources, permit } = context;
  const configs = informers.get(CACHED_PLATFORM_CONFIGS);
  const modules = informers.get(CACHED_MODULES);
  const client = resources.of<PlatformConfigObject>(PLATFORM_CONFIGS);
  const controller = new PlatformConfigController({ configs, modules, client, permit });
  const reconcile = controller.reconcile.bind(controller);
  const reconciler = ledReconciler(CONFIGS, context, { workers: 1, reconcile });
  reconciler.watch({ informer: configs, keysOf: (config) => [objectKey(config)], isSame: isSamePlatformConfig });
  const keysOf = ({ namespace }: CachedModule): string[] => [`${namespace}/${PLATFORM_CONFIG_NAME}`];
  // The application of a Module cannot be changed.
  reconciler.watch({ informer: modules, keysOf, isSame: (a, b) => a.uid === b.uid });
  return reconciler;
}

function keysOfPod({ module }: CatalogPod): string[] {
  return module === undefined ? [] : [moduleKeyOfLabels(module)];
}

/** The loop of the records of Pods that have gone. */
function exitsOf(context: ControllerContext): Reconciler {
  const { informers, resources, permit, clock } = context;
  const modules = informers.get(CACHED_MODULES);
  const pods = informers.get(CATALOG_PODS);
  const records = informers.get(CACHED_EXITED_RECORDS);
  const configs = informers.get(CACHED_PLATFORM_CONFIGS);
  const controller = new ExitedRecordController({
    modules,
    pods,
    records,
    client: resources.of<ExitedRecordObject>(EXITED_RECORDS),
    podClient: resources.of<PodObject>(PODS),
    limitOf: (namespace) => recordLimitOf(configs, namespace, 'exitedPod'),
    permit,
    clock,
  });
  const reconcile = controller.reconcile.bind(controller);
  const reconciler = ledReconciler(EXITS, context, { workers: WORKERS, reconcile });
  // Of a Module only its incarnation counts.
  reconciler.watch({ informer: modules, keysOf: (module) => [objectKey(module)], isSame: () => true });
  reconciler.watch({ informer: records, keysOf: (record) => [objectKey(record)] });
  reconciler.watch({ informer: pods, keysOf: keysOfPod, isSame: isSameLivePod });
  const keysOf = ({ namespace }: CachedPlatformConfig): string[] =>
    modules.byIndex('namespace', namespace).map(objectKey);
  const limitIn = ({ spec }: CachedPlatformConfig) => spec.recordLimit?.exitedPod;
  reconciler.watch({ informer: configs, keysOf, isSame: (a, b) => limitIn(a) === limitIn(b) });
  return reconciler;
}

/** That of its own Module, and that of a Module with its name. */
function keysOfComposed(object: CachedComposed): string[] {
  const { namespace, controller } = object;
  const owners = controller === undefined ? [] : [controller];
  const owner = controllerKeyOf({ namespace, owners }, MODULES);
  return [...new Set([objectKey(object), ...(owner === undefined ? [] : [owner])])];
}
