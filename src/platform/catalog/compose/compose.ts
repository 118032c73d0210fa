import { createHash } from 'node:crypto';
import { completePlacement, versionOf } from '../../../kinds/pod-defaults.ts';
import { DAEMON_SETS, MODULE_DEPLOYMENTS, STATEFUL_SETS } from '../../../kinds/workload-kinds.ts';
import type { KubeObject, PodObject } from '../../../kube/objects.ts';
import { apiVersionOf, DEPLOYMENTS, type ResourceKind, SERVICES } from '../../../kube/resource.ts';
import type { CachedObject } from '../../../kube/watch/informer-types.ts';
import {
  BASE_LABEL,
  COMPONENT,
  COMPONENT_LABEL,
  ENV_LABEL,
  MODULE_LABEL,
  PLATFORM_GROUP,
  VERSION_ENV,
  VNODE_LABEL,
} from '../../../labels.ts';
import { type ConfigInForce, configsText } from '../module/configs-in-force.ts';
import { MODULES, type ModuleSpec, type WorkloadKind } from '../module/module.ts';

/** Keys of what a Module composes. */
export const CATALOG_LABEL = {
  /** The application of a Module. */
  app: `${PLATFORM_GROUP}/app`,
  /** Id of the release that a Pod was made for. */
  release: `${PLATFORM_GROUP}/release`,
  /** Marks workloads and Services that a Module has composed, so that only these are watched. */
  composed: `${PLATFORM_GROUP}/composed-by`,
} as const;

export const CATALOG_ANNOTATION = {
  /** Digest of what was composed. */
  digest: `${PLATFORM_GROUP}/composed-digest`,
  sha256: `${PLATFORM_GROUP}/sha256`,
  /** Versions of the configuration that a Pod was made for, as `configsText` has them. */
  configs: `${PLATFORM_GROUP}/configs`,
  minReplicas: `${PLATFORM_GROUP}/min-replicas`,
  maxReplicas: `${PLATFORM_GROUP}/max-replicas`,
  /** Takes the default release of the ModuleRelease while the Module names none. */
  autoRelease: `${PLATFORM_GROUP}/auto-release`,
} as const;

/** Kinds of workloads by their names in `spec.deploy.workload`. */
export const WORKLOAD_KINDS: Readonly<Record<WorkloadKind, ResourceKind>> = {
  ModuleDeployment: MODULE_DEPLOYMENTS,
  Deployment: DEPLOYMENTS,
  StatefulSet: STATEFUL_SETS,
  DaemonSet: DAEMON_SETS,
};

/** A release with its jar. */
export interface ComposedRelease {
  readonly id: string;
  readonly image: string;
  readonly version?: string | undefined;
  readonly sha256?: string | undefined;
  /** Versions of bases that it fits. Undefined: those of the Module. */
  readonly baseVersions?: readonly string[] | undefined;
  /** Versions of its configuration. Undefined: it has none. */
  readonly configs?: readonly ConfigInForce[] | undefined;
}

export interface ComposeInput {
  readonly module: Pick<CachedObject, 'namespace' | 'name' | 'uid'> & {
    readonly spec: ModuleSpec;
    readonly annotations: Readonly<Record<string, string>>;
  };
  readonly release: ComposedRelease;
  /** Arguments that its configuration makes. Default: none. */
  readonly configArgs?: readonly string[];
  /** ENV of the platform. */
  readonly env: string;
}

/** An object as it is applied: no field of it is somebody else's. */
export interface ComposedObject extends KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: KubeObject['metadata'] & { readonly namespace: string };
  readonly spec: Readonly<Record<string, unknown>>;
}

export interface Composition {
  readonly workload: ComposedObject;
  /** Version of the module. */
  readonly version: string;
}

/** Why nothing can be composed; the text names the field. */
export interface CompositionFault {
  readonly fault: string;
}

/** The argument by which configuration reaches a module. */
export const APPLICATION_JSON = '--spring.application.json';
/** Properties that say what a client of Spring Cloud Config reads: with other values it would be another configuration. */
export const PINNED_PROPERTIES = [
  'spring.config.import',
  'spring.cloud.config.name',
  'spring.cloud.config.label',
] as const;

const LABEL_VALUE = /^[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?$/;
/** Maximum length of the name of a label key. */
const MAX_KEY_NAME_LENGTH = 63;
const ABILITY_WEIGHTS = { module: 60, app: 30 } as const;

export function workloadOf({ deploy }: ModuleSpec): WorkloadKind {
  return deploy?.workload ?? 'ModuleDeployment';
}

/** The labels by which the workload and the Service of a Module find its Pods. */
export function selectorLabelsOf({ app, module }: ModuleSpec): Record<string, string> {
  return { [CATALOG_LABEL.app]: app, [MODULE_LABEL.name]: module };
}

/** The workload of a Module with this release. The same input gives the same bytes. */
export function compose({ module, release, configArgs = [], env }: ComposeInput): Composition | CompositionFault {
  const { spec } = module;
  if (configArgs.length > 0 && spec.args?.some(isApplicationJson)) {
    return { fault: `args: ${APPLICATION_JSON} would replace the configuration: put it into a ModuleConfig` };
  }
  const replacing = release.configs?.some(({ as }) => as === 'Http') ? spec.args?.find(isPinned) : undefined;
  if (replacing !== undefined)
    return { fault: `args: ${replacing.split('=')[0]} would replace what \`as: Http\` reads` };
  const container = containerOf(spec, release, configArgs);
  const version = moduleVersionOf(spec.module, release);
  if (version === undefined)
    return { fault: 'release.version: the name of the jar does not say the version of the module' };
  const ability = abilityKeysOf(module);
  if (usesAbility(spec) && [ability.app, ability.module].some(isTooLong)) {
    return { fault: `base.ability: the label ${ability.module} would have a name of more than 63 characters` };
  }
  const versions = fittingVersions(spec.base.versions, release.baseVersions);
  if (versions?.length === 0) {
    return { fault: `base.versions: none of them is one that release ${release.id} fits` };
  }
  const labels = {
    [COMPONENT_LABEL]: COMPONENT.module,
    ...selectorLabelsOf(spec),
    ...(isLabelValue(version) && { [MODULE_LABEL.version]: version }),
    [CATALOG_LABEL.release]: release.id,
    [ENV_LABEL]: spec.base.env ?? env,
  };
  const annotations = {
    ...(release.sha256 !== undefined && { [CATALOG_ANNOTATION.sha256]: release.sha256 }),
    ...(release.configs && { [CATALOG_ANNOTATION.configs]: configsText(release.configs) }),
  };
  const pod = {
    metadata: { labels, ...(Object.keys(annotations).length > 0 && { annotations }) },
    spec: {
      containers: [{ ...container, env: [{ name: VERSION_ENV, value: version }] }],
      affinity: affinityOf(spec, { versions, ability, version }),
      ...gatesOf(spec),
    } as PodObject['spec'],
  };
  const template = completePlacement(pod, env);
  const workload = composed(module, WORKLOAD_KINDS[workloadOf(spec)], workloadSpecOf(module, template));
  return { workload, version };
}

/** Version of the module: what the release says, else what the name of its jar does; undefined: neither says it. */
export function moduleVersionOf(
  name: string,
  { image, version }: Pick<ComposedRelease, 'image' | 'version'>,
): string | undefined {
  return version ?? versionOf({ name, image }, {}, true);
}

/** The headless Service of a Module; undefined where it has no ports. */
export function composeService(module: ComposeInput['module']): ComposedObject | undefined {
  const { ports = [] } = module.spec;
  return ports.length === 0 ? undefined : composed(module, SERVICES, serviceSpecOf(module.spec));
}

/** How many copies there should be, within the annotations `min-replicas` and `max-replicas`; the latter wins. */
export function replicasOf({ spec, annotations }: Pick<ComposeInput['module'], 'spec' | 'annotations'>): number {
  const least = countIn(annotations[CATALOG_ANNOTATION.minReplicas]) ?? 0;
  const most = countIn(annotations[CATALOG_ANNOTATION.maxReplicas]) ?? Number.POSITIVE_INFINITY;
  return Math.min(Math.max(spec.deploy?.replicas ?? 1, least), most);
}

/** Annotations whose values are no counts: they have no effect. */
export function replicaFaultsOf(annotations: Readonly<Record<string, string>>): string[] {
  return [CATALOG_ANNOTATION.minReplicas, CATALOG_ANNOTATION.maxReplicas].filter(
    (key) => annotations[key] !== undefined && countIn(annotations[key]) === undefined,
  );
}

function countIn(text: string | undefined): number | undefined {
  return text !== undefined && /^(0|[1-9][0-9]{0,2})$/.test(text) ? Number(text) : undefined;
}

function containerOf(
  { module, ports = [], args: own = [] }: ModuleSpec,
  { image }: ComposedRelease,
  configArgs: readonly string[],
) {
  const args = [...configArgs, ...own];
  return {
    name: module,
    image,
    ...(args.length > 0 && { args }),
    ...(ports.length > 0 && {
      ports: ports.map(({ name, port, protocol = 'TCP' }) => ({ name, containerPort: port, protocol })),
    }),
  };
}

function isApplicationJson(arg: string): boolean {
  return arg.startsWith(`${APPLICATION_JSON}=`);
}

function isPinned(arg: string): boolean {
  return PINNED_PROPERTIES.some((key) => arg.startsWith(`--${key}=`) || arg.startsWith(`--${key}[`));
}

function gatesOf({ deploy }: ModuleSpec): { readinessGates?: { conditionType: string }[] } {
  const gates = deploy?.readinessGates ?? [];
  return gates.length === 0 ? {} : { readinessGates: gates.map((conditionType) => ({ conditionType })) };
}

interface AbilityKeys {
  readonly app: string;
  readonly module: string;
}

/** Keys of the labels by which an admin gives Nodes to an application, or to one of its modules. */
function abilityKeysOf({ namespace, spec }: ComposeInput['module']): AbilityKeys {
  const app = `${PLATFORM_GROUP}/ability.${namespace}.${spec.app}`;
  return { app, module: `${app}-${spec.module}` };
}

function usesAbility({ base }: ModuleSpec): boolean {
  return (base.ability ?? 'None') !== 'None';
}

function isLabelValue(text: string): boolean {
  return LABEL_VALUE.test(text);
}

function isTooLong(key: string): boolean {
  return key.length - key.indexOf('/') - 1 > MAX_KEY_NAME_LENGTH;
}

interface Placement {
  /** Versions of bases that it fits. Undefined: any. */
  readonly versions: readonly string[] | undefined;
  readonly ability: AbilityKeys;
  /** Version of the module. */
  readonly version: string;
}

function affinityOf({ module, base, deploy }: ModuleSpec, { versions, ability, version }: Placement) {
  const required = [
    { key: VNODE_LABEL.name, operator: 'In', values: [base.name] },
    ...(versions === undefined ? [] : [{ key: VNODE_LABEL.version, operator: 'In', values: versions }]),
    ...(base.clusterName === undefined
      ? []
      : [{ key: BASE_LABEL.clusterName, operator: 'In', values: [base.clusterName] }]),
    ...(base.ability === 'AppRequired' ? [{ key: ability.app, operator: 'Exists' }] : []),
    ...(base.ability === 'ModuleRequired' ? [{ key: ability.module, operator: 'Exists' }] : []),
  ];
  const preferred = Object.entries(ABILITY_WEIGHTS).map(([level, weight]) => ({
    weight,
    preference: { matchExpressions: [{ key: ability[level as keyof AbilityKeys], operator: 'Exists' }] },
  }));
  const matchLabels = { [MODULE_LABEL.name]: module, [MODULE_LABEL.version]: version };
  const apart = [{ topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels } }];
  return {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: required }] },
      ...(base.ability === 'AppOrModulePreferred' && {
        preferredDuringSchedulingIgnoredDuringExecution: preferred,
      }),
    },
    // Without the field, the webhook for Pods would add the term.
    podAntiAffinity:
      (deploy?.notStacked ?? true) && deploy?.workload !== 'DaemonSet' && isLabelValue(version)
        ? { requiredDuringSchedulingIgnoredDuringExecution: apart }
        : {},
  };
}

/** Versions of bases that fit the Module and the release. Undefined: any. */
function fittingVersions(
  ofModule: readonly string[] | undefined,
  ofRelease: readonly string[] | undefined,
): readonly string[] | undefined {
  if (ofModule === undefined || ofRelease === undefined) return ofModule ?? ofRelease;
  return ofModule.filter((version) => ofRelease.includes(version));
}

function workloadSpecOf(module: ComposeInput['module'], template: unknown): Record<string, unknown> {
  const { spec } = module;
  const selector = { matchLabels: selectorLabelsOf(spec) };
  const { peer = false, strategy } = spec.deploy ?? {};
  const replicas = replicasOf(module);
  switch (workloadOf(spec)) {
    case 'ModuleDeployment':
      return { ...(peer ? { peer } : { replicas }), selector, template, ...(strategy && { strategy }) };
    case 'Deployment':
      return { replicas, selector, template, strategy: strategy ? wholeOf(strategy) : IN_PLACE };
    case 'StatefulSet':
      return {
        replicas,
        selector,
        template,
        serviceName: module.name,
        podManagementPolicy: 'Parallel',
        ...(strategy && { updateStrategy: wholeOf(strategy) }),
      };
    case 'DaemonSet':
      return { selector, template, ...(strategy && { updateStrategy: wholeOf(strategy) }) };
  }
}

/** The API server keeps what it has filled in for a former type, and refuses it beside this one: null removes it. */
function wholeOf(strategy: NonNullable<NonNullable<ModuleSpec['deploy']>['strategy']>): object {
  const isRolling = strategy.type === undefined || strategy.type === 'RollingUpdate';
  return isRolling ? strategy : { ...strategy, rollingUpdate: null };
}

/** A base that has a version of a module takes no other Pod of it, so nothing waits for a place that does not come. */
const IN_PLACE = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } as const;

function serviceSpecOf(spec: ModuleSpec): Record<string, unknown> {
  return {
    clusterIP: 'None',
    selector: selectorLabelsOf(spec),
    ports: (spec.ports ?? []).map(({ name, port, protocol = 'TCP', appProtocol }) => ({
      name,
      port,
      targetPort: port,
      protocol,
      ...(appProtocol !== undefined && { appProtocol }),
    })),
  };
}

function composed(module: ComposeInput['module'], kind: ResourceKind, spec: Record<string, unknown>): ComposedObject {
  const { namespace, name, uid } = module;
  const labels = { ...selectorLabelsOf(module.spec), [CATALOG_LABEL.composed]: MODULES.kind };
  const owner = { apiVersion: apiVersionOf(MODULES), kind: MODULES.kind, name, uid, controller: true };
  const metadata = { namespace, name, labels, ownerReferences: [{ ...owner, blockOwnerDeletion: true }] };
  const object = { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata, spec };
  const annotations = { [CATALOG_ANNOTATION.digest]: digestOf(object) };
  return { ...object, metadata: { ...metadata, annotations } };
}

const DIGEST_LENGTH = 16;

/** Digest of a value whose keys are in one order. */
export function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, DIGEST_LENGTH);
}
