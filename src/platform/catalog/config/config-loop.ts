import { CONTROLLER_REVISIONS, REPLICA_SETS } from '../../../kinds/workload-kinds.ts';
import type { ConfigMapObject, KubeObject } from '../../../kube/objects.ts';
import type { ResourceKind } from '../../../kube/resource.ts';
import { objectKey } from '../../../kube/watch/informer-types.ts';
import { COMPONENT, COMPONENT_LABEL } from '../../../labels.ts';
import { type KindAccess, READ } from '../../../reconcile/access.ts';
import type { ControllerContext } from '../../../reconcile/controller-definition.ts';
import { ledReconciler } from '../../../reconcile/led.ts';
import type { Reconciler } from '../../../reconcile/reconciler.ts';
import { CATALOG_PODS, type CatalogPod } from '../catalog-pod.ts';
import { CATALOG_ANNOTATION, CATALOG_LABEL } from '../compose/compose.ts';
import { CACHED_MODULES, type CachedModule } from '../module/cached-module.ts';
import { configsOfText } from '../module/configs-in-force.ts';
import {
  CACHED_PLATFORM_CONFIGS,
  type CachedPlatformConfig,
  recordLimitOf,
} from '../platform-config/platform-config.ts';
import { CACHED_MODULE_CONFIGS, isSameConfig } from './cached-module-config.ts';
import { ConfigContents } from './config-contents.ts';
import { ConfigController } from './config-controller.ts';
import { ConfigStore } from './config-store.ts';
import { ConfigUses } from './config-uses.ts';
import { MODULE_CONFIGS, type ModuleConfigObject } from './module-config.ts';

const NAME = 'catalog-moduleconfigs';
const WORKERS = 8;

const CONFIG_MAPS: ResourceKind = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  isNamespaced: true,
};
/** Histories of ModuleDeployments, and those of workloads whose Pods are of Modules. */
const OF_MODULE_DEPLOYMENTS = `${COMPONENT_LABEL}=${COMPONENT.moduleDeployment}`;
const OF_MODULES = CATALOG_LABEL.app;

/** What the loop does with the API, in namespaces that have bound `optInRole`. */
export function configAccess(optInRole: string): KindAccess[] {
  return [
    { kind: MODULE_CONFIGS, verbs: READ, use: 'SharedInformer: configuration of Modules.' },
    {
      kind: MODULE_CONFIGS,
      verbs: ['get', 'patch'],
      optInRole,
      use: 'ConfigController: its content, and the finalizer that holds up its deletion while it is in use.',
    },
    {
      kind: MODULE_CONFIGS,
      subresource: 'status',
      verbs: ['patch'],
      use: 'ConfigController: versions, and which one is in force.',
    },
    {
      kind: MODULE_CONFIGS,
      subresource: 'finalizers',
      verbs: ['update'],
      use: 'ConfigStore: owner references of versions that hold up the deletion of their ModuleConfig.',
    },
    {
      kind: CONFIG_MAPS,
      verbs: ['get', 'create', 'delete'],
      optInRole,
      use: 'ConfigStore: the content of each version.',
    },
    {
      kind: REPLICA_SETS,
      verbs: ['list'],
      optInRole,
      use: 'ConfigController: versions that a Deployment may go back to, before it removes one.',
    },
    {
      kind: CONTROLLER_REVISIONS,
      verbs: ['list'],
      optInRole,
      use: 'ConfigController: versions that other workloads may go back to, before it removes one.',
    },
  ];
}

/** The loop of ModuleConfigs, and what Modules find of them. */
export function configLoopOf(context: ControllerContext): {
  readonly reconciler: Reconciler;
  readonly contents: ConfigContents;
  readonly uses: ConfigUses;
} {
  const { informers, resources, permit } = context;
  const configs = informers.get(CACHED_MODULE_CONFIGS);
  const limits = informers.get(CACHED_PLATFORM_CONFIGS);
  const modules = informers.get(CACHED_MODULES);
  const uses = new ConfigUses()
    .watch<CachedModule>({ informer: modules, kind: 'Module', configsOf: configsOfModule })
    .watch<CachedModule>({ informer: modules, kind: 'History', configsOf: configsOfHistory })
    .watch<CatalogPod>({ informer: informers.get(CATALOG_PODS), kind: 'Pod', configsOf: configsOfPod });
  const store = new ConfigStore({ client: resources.of<ConfigMapObject>(CONFIG_MAPS), permit });
  const controller = new ConfigController({
    ...context,
    configs,
    uses,
    client: resources.of<ModuleConfigObject>(MODULE_CONFIGS),
    store,
    namedByHistories: histories(context),
    limitOf: (namespace) => recordLimitOf(limits, namespace, 'configVersion'),
  });
  const reconcile = controller.reconcile.bind(controller);
  const reconciler = ledReconciler(NAME, context, { workers: WORKERS, reconcile });
  reconciler.watch({
    informer: configs,
    keysOf: (config) => [
      objectKey(config),
      ...configs.byIndex('parent', objectKey(config)).map(objectKey),
      // A parent that is being deleted waits for its children.
      ...(config.spec.parent === undefined ? [] : [`${config.namespace}/${config.spec.parent}`]),
    ],
    isSame: isSameConfig,
  });
  const limitIn = ({ spec }: CachedPlatformConfig) => spec.recordLimit?.configVersion;
  reconciler.watch({
    informer: limits,
    keysOf: ({ namespace }) => configs.byIndex('namespace', namespace).map(objectKey),
    isSame: (a, b) => limitIn(a) === limitIn(b),
  });
  uses.onChange((key) => reconciler.enqueue(key));
  const onLost = (key: string): void => {
    controller.wasLost(key);
    reconciler.enqueue(key);
  };
  return { reconciler, contents: new ConfigContents({ configs, store, onLost }), uses };
}

/** Those that the next Pods of a Module get, and those that it has in force. */
function configsOfModule({ spec, status }: CachedModule): Map<string, Set<string>> {
  const pinned = (spec.configs ?? []).map(({ name, version }) => ({ name, version }));
  return versionsByName([...pinned, ...(status?.release?.configs ?? [])]);
}

/** Those that a Module may go back to. */
function configsOfHistory({ status }: CachedModule): Map<string, Set<string>> {
  return versionsByName((status?.history ?? []).flatMap(({ configs = [] }) => configs));
}

function configsOfPod({ configs }: CatalogPod): Map<string, Set<string>> {
  return versionsByName(configsOfText(configs));
}

function versionsByName(configs: readonly { readonly name: string; readonly version?: string | undefined }[]) {
  const byName = new Map<string, Set<string>>();
  for (const { name, version } of configs) {
    const versions = byName.get(name) ?? new Set<string>();
    byName.set(name, version === undefined ? versions : versions.add(version));
  }
  return byName;
}

type Annotated = { readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> } };

interface WithTemplate extends KubeObject {
  readonly spec?: { readonly template?: Annotated };
  readonly data?: { readonly spec?: { readonly template?: Annotated } };
}

/** Annotations of the Pods that workloads of a namespace may go back to. Rejects if any of the lists fails. */
function histories({ resources }: ControllerContext): (namespace: string) => Promise<string[]> {
  const replicaSets = resources.of<WithTemplate>(REPLICA_SETS);
  const revisions = resources.of<WithTemplate>(CONTROLLER_REVISIONS);
  return async (namespace) => {
    const lists = await Promise.all([
      replicaSets.list({ namespace, labelSelector: OF_MODULES }),
      revisions.list({ namespace, labelSelector: OF_MODULES }),
      revisions.list({ namespace, labelSelector: OF_MODULE_DEPLOYMENTS }),
    ]);
    const templates = lists.flat().map(({ spec, data }) => spec?.template ?? data?.spec?.template);
    return templates.flatMap((template) => template?.metadata?.annotations?.[CATALOG_ANNOTATION.configs] ?? []);
  };
}

/** Keys of the Modules that use a ModuleConfig. */
export function modulesUsing(uses: ConfigUses, namespace: string, name: string): string[] {
  return uses.of(`${namespace}/${name}`).flatMap((user) => (user.kind === 'Module' ? `${namespace}/${user.name}` : []));
}
