import type { LabelSelector, NodeSelectorRequirement, NodeSelectorTerm, Toleration } from '../kube/objects.ts';
import { quantityOf } from '../kube/quantity.ts';
import { isDnsLabel, isLabelValue, isQualifiedName, isSubdomain, labelFaultsOf, shown } from './label-syntax.ts';

/**
 * What the API server would refuse of a Pod with this spec, besides what the schema of a template says already. It is
 * not all of it: the rest is seen when the first Pod is created.
 */

type Quantities = Readonly<Record<string, string | number>>;
type Sources = Readonly<Record<string, unknown>>;

interface CheckedContainer {
  readonly name: string;
  readonly image?: string;
  readonly env?: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: Sources }[];
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[];
  readonly resources?: { readonly requests?: Quantities; readonly limits?: Quantities };
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
  readonly lifecycle?: { readonly postStart?: Sources; readonly preStop?: Sources };
  readonly livenessProbe?: Sources;
  readonly readinessProbe?: Sources;
  readonly startupProbe?: Sources;
}

interface AffinityTerm {
  readonly topologyKey: string;
  readonly labelSelector?: LabelSelector;
  readonly namespaceSelector?: LabelSelector;
}

interface PodAffinity {
  readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly AffinityTerm[];
  readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly { readonly podAffinityTerm: AffinityTerm }[];
}

/** The fields that are checked. Their types are right: `typeFaultsOf` found nothing. */
export interface CheckedPodSpec {
  readonly containers: readonly CheckedContainer[];
  readonly initContainers?: readonly CheckedContainer[];
  readonly ephemeralContainers?: readonly unknown[];
  readonly volumes?: readonly ({ readonly name: string } & Sources)[];
  readonly nodeName?: string;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly serviceAccountName?: string;
  readonly activeDeadlineSeconds?: number;
  readonly tolerations?: readonly (Toleration & { readonly tolerationSeconds?: number })[];
  readonly topologySpreadConstraints?: readonly (AffinityTerm & { readonly whenUnsatisfiable: string })[];
  readonly readinessGates?: readonly { readonly conditionType: string }[];
  readonly affinity?: {
    readonly nodeAffinity?: {
      readonly requiredDuringSchedulingIgnoredDuringExecution?: { readonly nodeSelectorTerms: NodeSelectorTerm[] };
      readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly { readonly preference: NodeSelectorTerm }[];
    };
    readonly podAffinity?: PodAffinity;
    readonly podAntiAffinity?: PodAffinity;
  };
}

/** `path: why`, one for each fault. */
export function podSpecFaultsOf(spec: CheckedPodSpec, path: string): string[] {
  const { containers, initContainers = [], volumes = [], tolerations = [], topologySpreadConstraints = [] } = spec;
  const volumeNames = new Set(volumes.map(({ name }) => name));
  const at = (part: string, index: number): string => `${path}.${part}[${index}]`;
  return [
    ...duplicateFaults(
      [...containers, ...initContainers].map(({ name }) => name),
      `${path}.containers`,
      'container',
    ),
    ...containers.flatMap((one, index) => containerFaults(one, volumeNames, at('containers', index))),
    ...initContainers.flatMap((one, index) => containerFaults(one, volumeNames, at('initContainers', index))),
    ...volumes.flatMap((volume, index) => volumeFaults(volume, at('volumes', index))),
    ...tolerations.flatMap((one, index) => tolerationFaults(one, at('tolerations', index))),
    ...labelFaultsOf(spec.nodeSelector ?? {}, `${path}.nodeSelector`),
    ...affinityFaults(spec.affinity ?? {}, `${path}.affinity`),
    ...topologySpreadConstraints.flatMap((one, index) => termFaults(one, at('topologySpreadConstraints', index))),
    ...nameFaults(spec, path),
    ...foreignFaults(spec, path),
  ];
}

function nameFaults({ nodeName, serviceAccountName, readinessGates = [] }: CheckedPodSpec, path: string): string[] {
  const names = { nodeName, serviceAccountName };
  return [
    ...Object.entries(names)
      .filter(([, name]) => name !== undefined && name !== '' && !isSubdomain(name))
      .map(([field, name = '']) => `${path}.${field}: ${shown(name)} cannot be a name`),
    ...readinessGates
      .filter(({ conditionType }) => !isQualifiedName(conditionType))
      .map(({ conditionType }) => `${path}.readinessGates: ${shown(conditionType)} cannot be the type of a condition`),
  ];
}

/** Fields that a Pod may have, and a template of Pods that replace each other may not. */
function foreignFaults({ ephemeralContainers = [], activeDeadlineSeconds }: CheckedPodSpec, path: string): string[] {
  return [
    ...(ephemeralContainers.length > 0 ? [`${path}.ephemeralContainers: cannot be in a template`] : []),
    ...(activeDeadlineSeconds === undefined ? [] : [`${path}.activeDeadlineSeconds: cannot be in a template`]),
  ];
}

function containerFaults(container: CheckedContainer, volumes: ReadonlySet<string>, path: string): string[] {
  const { name, image, env = [], ports = [], volumeMounts = [], resources = {} } = container;
  const portNames = ports.flatMap((port) => (port.name ? [port.name] : []));
  return [
    ...(isDnsLabel(name) ? [] : [`${path}.name: ${shown(name)} cannot be the name of a container`]),
    ...(image === image?.trim() ? [] : [`${path}.image: begins or ends with a space`]),
    ...env.flatMap((variable, index) => variableFaults(variable, `${path}.env[${index}]`)),
    ...portNames.filter((port) => !isPortName(port)).map((port) => `${path}.ports: ${shown(port)} cannot be a name`),
    ...duplicateFaults(portNames, `${path}.ports`, 'port'),
    ...volumeMounts
      .filter((mount) => !volumes.has(mount.name))
      .map((mount) => `${path}.volumeMounts: there is no volume ${shown(mount.name)}`),
    ...resourceFaults(resources, `${path}.resources`),
    ...handlerFaults(container, path),
  ];
}

const VARIABLE_NAME = /^[ -<>-~]+$/;

function variableFaults(
  { name, value = '', valueFrom }: NonNullable<CheckedContainer['env']>[number],
  path: string,
): string[] {
  if (!VARIABLE_NAME.test(name)) return [`${path}.name: ${shown(name)} cannot be the name of a variable`];
  if (valueFrom === undefined) return [];
  if (value !== '') return [`${path}.valueFrom: cannot stand beside a value`];
  return Object.keys(valueFrom).length === 1 ? [] : [`${path}.valueFrom: needs exactly one source`];
}

function isPortName(name: string): boolean {
  return name.length <= 15 && isDnsLabel(name) && /[a-z]/.test(name) && !name.includes('--');
}

function resourceFaults({ requests = {}, limits = {} }: NonNullable<CheckedContainer['resources']>, path: string) {
  const quantities = [...Object.entries(requests), ...Object.entries(limits)];
  const amountOf = (quantity: string | number | undefined): number | undefined =>
    quantity === undefined ? undefined : quantityOf(String(quantity));
  return [
    ...quantities
      .filter(([, quantity]) => !((amountOf(quantity) ?? -1) >= 0))
      .map(([name, quantity]) => `${path}: ${shown(String(quantity))} cannot be a quantity of ${name}`),
    ...Object.keys(requests)
      .filter((name) => (amountOf(requests[name]) ?? 0) > (amountOf(limits[name]) ?? Number.POSITIVE_INFINITY))
      .map((name) => `${path}.requests: ${name} is above its limit`),
  ];
}

const PROBES = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const;
const HOOKS = ['postStart', 'preStop'] as const;
const PROBE_HANDLERS = ['exec', 'httpGet', 'tcpSocket', 'grpc'];
const HOOK_HANDLERS = ['exec', 'httpGet', 'tcpSocket', 'sleep'];

function handlerFaults(container: CheckedContainer, path: string): string[] {
  const { lifecycle = {} } = container;
  return [
    ...PROBES.flatMap((name) => oneHandler(container[name], PROBE_HANDLERS, `${path}.${name}`)),
    ...HOOKS.flatMap((name) => oneHandler(lifecycle[name], HOOK_HANDLERS, `${path}.lifecycle.${name}`)),
  ];
}

function oneHandler(handler: Sources | undefined, handlers: readonly string[], path: string): string[] {
  if (handler === undefined) return [];
  const count = handlers.filter((name) => handler[name] !== undefined).length;
  return count === 1 ? [] : [`${path}: needs exactly one of ${handlers.join(', ')}`];
}

function volumeFaults({ name, ...sources }: { readonly name: string } & Sources, path: string): string[] {
  return [
    ...(isDnsLabel(name) ? [] : [`${path}.name: ${shown(name)} cannot be the name of a volume`]),
    // Without a source it is an emptyDir.
    ...(Object.keys(sources).length > 1 ? [`${path}: has several sources`] : []),
  ];
}

function tolerationFaults(toleration: NonNullable<CheckedPodSpec['tolerations']>[number], path: string): string[] {
  const { key = '', operator = '', value = '', effect = '', tolerationSeconds } = toleration;
  const faults: string[] = [];
  if (key !== '' && !isQualifiedName(key)) faults.push(`${path}.key: ${shown(key)} cannot be the key of a taint`);
  if (key === '' && operator !== 'Exists') faults.push(`${path}.operator: must be Exists where there is no key`);
  if (tolerationSeconds !== undefined && effect !== 'NoExecute')
    faults.push(`${path}.effect: must be NoExecute where tolerationSeconds is set`);
  if (operator === 'Exists' && value !== '') faults.push(`${path}.value: must be empty where the operator is Exists`);
  if (['', 'Equal'].includes(operator) && !isLabelValue(value))
    faults.push(`${path}.value: ${shown(value)} cannot be the value of a taint`);
  return faults;
}

function affinityFaults(affinity: NonNullable<CheckedPodSpec['affinity']>, path: string): string[] {
  const { nodeAffinity = {}, podAffinity, podAntiAffinity } = affinity;
  const required = nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution;
  const preferred = nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  const requiredPath = `${path}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms`;
  const preferredPath = `${path}.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution`;
  return [
    ...(required?.nodeSelectorTerms.length === 0 ? [`${requiredPath}: needs a term`] : []),
    ...(required?.nodeSelectorTerms ?? []).flatMap((term, index) => nodeTermFaults(term, `${requiredPath}[${index}]`)),
    ...preferred.flatMap(({ preference }, index) =>
      nodeTermFaults(preference, `${preferredPath}[${index}].preference`),
    ),
    ...podAffinityFaults(podAffinity, `${path}.podAffinity`),
    ...podAffinityFaults(podAntiAffinity, `${path}.podAntiAffinity`),
  ];
}

function nodeTermFaults({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm, path: string): string[] {
  return [
    ...matchExpressions.flatMap((one, index) => requirementFaults(one, `${path}.matchExpressions[${index}]`)),
    ...matchFields.flatMap(({ key, operator, values = [] }, index) => {
      const isRight = key === 'metadata.name' && ['In', 'NotIn'].includes(operator) && values.length === 1;
      return isRight ? [] : [`${path}.matchFields[${index}]: needs metadata.name, In or NotIn, and one value`];
    }),
  ];
}

function podAffinityFaults(affinity: PodAffinity | undefined, path: string): string[] {
  const required = affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  const preferred = affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  return [
    ...required.flatMap((term, index) =>
      termFaults(term, `${path}.requiredDuringSchedulingIgnoredDuringExecution[${index}]`),
    ),
    ...preferred.flatMap(({ podAffinityTerm }, index) =>
      termFaults(podAffinityTerm, `${path}.preferredDuringSchedulingIgnoredDuringExecution[${index}].podAffinityTerm`),
    ),
  ];
}

function termFaults({ topologyKey, labelSelector, namespaceSelector }: AffinityTerm, path: string): string[] {
  return [
    ...(isQualifiedName(topologyKey)
      ? []
      : [`${path}.topologyKey: ${shown(topologyKey)} cannot be the key of a label`]),
    ...selectorFaults(labelSelector, `${path}.labelSelector`),
    ...selectorFaults(namespaceSelector, `${path}.namespaceSelector`),
  ];
}

function selectorFaults({ matchLabels = {}, matchExpressions = [] }: LabelSelector = {}, path: string): string[] {
  return [
    ...labelFaultsOf(matchLabels, `${path}.matchLabels`),
    ...matchExpressions.flatMap((one, index) => requirementFaults(one, `${path}.matchExpressions[${index}]`)),
  ];
}

function requirementFaults({ key, operator, values = [] }: NodeSelectorRequirement, path: string): string[] {
  const faults = isQualifiedName(key) ? [] : [`${path}.key: ${shown(key)} cannot be the key of a label`];
  const [min, max] = COUNTS[operator] ?? [];
  if (min === undefined || max === undefined) return [...faults, `${path}.operator: ${shown(operator)} is none`];
  if (values.length < min) faults.push(`${path}.values: ${operator} needs ${max === 1 ? 'one value' : 'values'}`);
  if (values.length > max) faults.push(`${path}.values: ${operator} takes ${max === 0 ? 'no value' : 'one value'}`);
  return faults;
}

/** How few and how many values an operator takes. */
const COUNTS: Readonly<Record<string, readonly [number, number]>> = {
  In: [1, Number.POSITIVE_INFINITY],
  NotIn: [1, Number.POSITIVE_INFINITY],
  Exists: [0, 0],
  DoesNotExist: [0, 0],
  Gt: [1, 1],
  Lt: [1, 1],
};

function duplicateFaults(names: readonly string[], path: string, what: string): string[] {
  const duplicates = new Set(names.filter((name, index) => names.indexOf(name) !== index));
  return [...duplicates].map((name) => `${path}: there are several ${what}s ${shown(name)}`);
}
