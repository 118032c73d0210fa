import { controllerOf, type NodeSelectorTerm, type ObjectMeta, type PodObject } from '../kube/objects.ts';
import { placementOf, untoleratedTaintOf } from '../kube/placement.ts';
import { ANNOTATION, MODULE_LABEL, TAINT, VERSION_ENV, VNODE_LABEL } from '../labels.ts';
import { envsOf } from './pod-env.ts';

type PodSpec = PodObject['spec'];
type Container = PodSpec['containers'][number];
type Meta = Pick<ObjectMeta, 'labels' | 'annotations' | 'ownerReferences'>;

/** A Pod, or the template of one. */
export interface PodTemplate<M extends Meta = Meta, S extends PodSpec = PodSpec> {
  readonly metadata: M;
  readonly spec: S;
}

/**
 * A module Pod with what its author has left out: where it may run, which module it has, and one copy on each base.
 * What the author wrote stays as it is. `env`: of a Pod without the label of one.
 */
export function completePod<T extends PodTemplate>(pod: T, env: string): T {
  const placed = completePlacement(pod, env);
  const [container, ...others] = placed.spec.containers;
  if (container === undefined || others.length > 0) return withVersions(placed);
  const labels = moduleLabelsOf(placed.metadata, container);
  const labelled = { ...placed, metadata: { ...placed.metadata, labels } };
  return withVersions({ ...labelled, spec: withOneOnEachBase(labelled) });
}

/**
 * Restricts a Pod to the Nodes that it may run on: it tolerates the taints of the bases of the ENVs that it names, else
 * of `env`, and the annotations `base-name` and `base-version` are a required node affinity. A DaemonSet decides by its
 * template alone which Nodes get a Pod.
 */
export function completePlacement<T extends PodTemplate>(pod: T, env: string): T {
  const { metadata, spec } = pod;
  const { annotations = {} } = metadata;
  const taints = [
    { key: TAINT.virtualNode, value: 'True', effect: 'NoExecute' },
    ...(envsOf(pod) ?? [env]).map((value) => ({ key: TAINT.env, value, effect: 'NoExecute' })),
  ];
  const missing = taints.filter(
    (taint) =>
      untoleratedTaintOf(placementOf(spec), { name: '', labels: {}, taints: [taint] }, [taint.effect]) !== undefined,
  );
  const wanted = [
    { key: VNODE_LABEL.name, value: annotations[ANNOTATION.baseName] },
    { key: VNODE_LABEL.version, value: annotations[ANNOTATION.baseVersion] },
  ].filter(({ key, value }) => value !== undefined && spec.nodeSelector?.[key] === undefined);
  return {
    ...pod,
    spec: {
      ...spec,
      ...(missing.length > 0 && {
        tolerations: [...(spec.tolerations ?? []), ...missing.map((taint) => ({ ...taint, operator: 'Equal' }))],
      }),
      ...(wanted.length > 0 && { affinity: withBases(spec, wanted) }),
    },
  };
}

/** One of the terms has to match: each gets what it does not say itself. */
function withBases(
  { affinity = {} }: PodSpec,
  wanted: readonly { readonly key: string; readonly value: string | undefined }[],
): PodSpec['affinity'] {
  const required = affinity.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const terms: readonly NodeSelectorTerm[] = required?.nodeSelectorTerms ?? [{}];
  const nodeSelectorTerms = terms.map((term) => {
    const { matchExpressions = [] } = term;
    const missing = wanted.filter(({ key }) => !matchExpressions.some((expression) => expression.key === key));
    const added = missing.map(({ key, value = '' }) => ({ key, operator: 'In', values: [value] }));
    return added.length === 0 ? term : { ...term, matchExpressions: [...matchExpressions, ...added] };
  });
  return {
    ...affinity,
    nodeAffinity: {
      ...affinity.nodeAffinity,
      requiredDuringSchedulingIgnoredDuringExecution: { ...required, nodeSelectorTerms },
    },
  };
}

/**
 * The version of the module of a container: what BIZ_VERSION says, else the label of a Pod with one module, else the
 * name of the jar, `{container}-{version}-ark-biz.jar`. Undefined when label and jar disagree, or nothing says it.
 */
export function versionOf(container: Container, labels: Readonly<Record<string, string>>, isOnly: boolean) {
  // As everywhere in Kubernetes, the last of two values counts.
  const variable = (container.env ?? []).findLast(({ name }) => name === VERSION_ENV);
  if (variable !== undefined) return variable.value;
  const ofLabel = isOnly ? labels[MODULE_LABEL.version] : undefined;
  const ofJar = jarVersionOf(container);
  if (ofLabel !== undefined && ofJar !== undefined && ofLabel !== ofJar) return undefined;
  return ofLabel ?? ofJar;
}

const JAR_REST = /^-(\d[\w.+-]*?)(?:-ark-biz)?\.jar$/;
/** A repository names the jar of a snapshot by its time; the module in it has another version. */
const SNAPSHOT_TIME = /-\d{8}\.\d{6}-\d+$/;

function jarVersionOf({ name, image = '' }: Container): string | undefined {
  const [path = ''] = image.split(/[?#]/);
  const file = path.slice(path.lastIndexOf('/') + 1);
  const version = file.startsWith(name) ? JAR_REST.exec(file.slice(name.length))?.[1] : undefined;
  return version === undefined || SNAPSHOT_TIME.test(version) ? undefined : version;
}

function withVersions<T extends PodTemplate>(pod: T): T {
  const { metadata, spec } = pod;
  const isOnly = spec.containers.length === 1;
  const containers = spec.containers.map((container) => {
    const { env = [] } = container;
    const version = versionOf(container, metadata.labels ?? {}, isOnly);
    const isSet = version === undefined || env.some(({ name }) => name === VERSION_ENV);
    return isSet ? container : { ...container, env: [...env, { name: VERSION_ENV, value: version }] };
  });
  return { ...pod, spec: { ...spec, containers } };
}

const LABEL_VALUE = /^[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?$/;

function moduleLabelsOf({ labels = {} }: Meta, container: Container): Record<string, string> {
  const version = versionOf(container, labels, true);
  return {
    [MODULE_LABEL.name]: container.name,
    ...(version !== undefined && LABEL_VALUE.test(version) && { [MODULE_LABEL.version]: version }),
    ...labels,
  };
}

/**
 * A base that has a version of a module serves all Pods of it as one: a second copy there would be none. The old and
 * the new version of a rolling update may share a base. A DaemonSet has one Pod on each base anyway.
 */
function withOneOnEachBase({ metadata, spec }: PodTemplate): PodSpec {
  const { [MODULE_LABEL.name]: name, [MODULE_LABEL.version]: version } = metadata.labels ?? {};
  const isOfDaemonSet = controllerOf(metadata)?.kind === 'DaemonSet';
  if (isOfDaemonSet || spec.affinity?.podAntiAffinity !== undefined || name === undefined || version === undefined)
    return spec;
  const matchLabels = { [MODULE_LABEL.name]: name, [MODULE_LABEL.version]: version };
  const term = { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels } };
  return {
    ...spec,
    affinity: { ...spec.affinity, podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } },
  };
}
