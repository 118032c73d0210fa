import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import {
  type ContainerStatus,
  controllerOf,
  type KubeObject,
  type LabelSelector,
  type ObjectMeta,
  type OwnerReference,
  type PodCondition,
  type PodObject,
  type PodStatus,
  portKeyOf,
} from '../kube/objects.ts';
import { exclusionsOf } from '../kube/placement.ts';
import { POD_PAGE_SIZE } from '../kube/requests.ts';
import { collectionPathOf, PODS } from '../kube/resource.ts';
import { type CachedObject, metaOf } from '../kube/watch/informer-types.ts';
import { ANNOTATION, COMPONENT, COMPONENT_LABEL, VERSION_ENV } from '../labels.ts';
import { OWNER_INDEXERS, type WatchedKind } from '../reconcile/informers.ts';
import { shortened } from '../shortened.ts';

/**
 * Every Pod of modules, also while no base is chosen. The Virtual Kubelet watches bound ones, and keeps other parts of
 * them: it runs in a process of its own.
 */
export const MODULE_PODS: WatchedKind<ModulePod> = {
  kind: 'ModulePod',
  path: collectionPathOf(PODS),
  labelSelector: () => `${COMPONENT_LABEL}=${COMPONENT.module}`,
  indexers: { ...OWNER_INDEXERS, namespace: ({ namespace }) => namespace, node: ({ nodeName }) => nodeName },
  pageSize: POD_PAGE_SIZE,
  project: projectModulePod,
};

/** One module of a Pod. Two Pods with the same name and version and another `content` cannot run on one base. */
export interface PodModule {
  readonly name: string;
  readonly version: string;
  /** Digest of its image, arguments and variables. */
  readonly content: string;
}

/** What decides whether two Pods can be on one base. */
export interface BaseSharing {
  readonly labels: Readonly<Record<string, string>>;
  readonly modules: readonly PodModule[];
  /** The base takes other versions of its modules off before it installs them. */
  readonly isOnlyVersion: boolean;
  readonly exclusions: readonly LabelSelector[];
}

/** The part of a Pod that controllers of workloads keep. */
export interface ModulePod extends CachedObject, BaseSharing {
  readonly createdAt: string;
  readonly isDeleting: boolean;
  /** Failed or Succeeded: nothing of it runs again. */
  readonly isTerminal: boolean;
  readonly controller: OwnerReference | undefined;
  readonly nodeName: string | undefined;
  /** The only Node that its affinity allows. */
  readonly pinnedTo: string | undefined;
  /** The UID of the Pod whose place it takes. */
  readonly replaces: string | undefined;
  readonly isReady: boolean;
  /** All its modules run, or have run before. */
  readonly hasRun: boolean;
  /** Its base has made another version of one of its modules the active one. */
  readonly isDeactivated: boolean;
  /** Why it does not run, in words; undefined while it runs, or is about to. */
  readonly waiting: string | undefined;
  /** Its modules serve and its gates are True, whatever is known of its base now. */
  readonly isServing: boolean;
  /** Not Ready without a reason, as kube-controller-manager leaves the Pods of a Node whose status is Unknown. */
  readonly isLeftUnready: boolean;
  /** The address of its base. */
  readonly ip: string | undefined;
  /** Its named ports, by protocol and name, such as `TCP http`. */
  readonly ports: Readonly<Record<string, number>>;
  /** Since when it is ready or not, ms of the wall clock. */
  readonly readyChangedAt: number | undefined;
}

export function projectModulePod(object: KubeObject): ModulePod {
  const { metadata, spec, status = {} } = object as PodObject;
  const ready = conditionOf(status, 'Ready');
  const changedAt = Date.parse(ready?.lastTransitionTime ?? '');
  return {
    ...metaOf(object),
    createdAt: metadata.creationTimestamp ?? '',
    isDeleting: metadata.deletionTimestamp !== undefined,
    isTerminal: status.phase === 'Failed' || status.phase === 'Succeeded',
    controller: controllerOf(metadata),
    nodeName: spec.nodeName,
    pinnedTo: pinnedNodeOf(spec),
    replaces: metadata.annotations?.[ANNOTATION.replaces],
    isReady: ready?.status === 'True',
    hasRun: hasRun(spec, status),
    isDeactivated: statusesOf(status).some(({ state }) => state?.waiting?.reason === 'BizDeactivated'),
    waiting: waitingOf(status),
    isServing: ['ContainersReady', ...gatesOf(spec)].every((type) => conditionOf(status, type)?.status === 'True'),
    isLeftUnready: ready?.status === 'False' && ready.reason === undefined,
    ip: status.podIP,
    ports: portsOf(spec),
    readyChangedAt: Number.isNaN(changedAt) ? undefined : changedAt,
    ...sharingOf(metadata, spec),
  };
}

function statusesOf({ containerStatuses = [] }: PodStatus): readonly ContainerStatus[] {
  return containerStatuses;
}

const MAX_WAITING_LENGTH = 256;
/** The install has begun, and has not failed. */
const STARTING = 'ContainerCreating';

function waitingOf(status: PodStatus): string | undefined {
  const waiting = statusesOf(status)
    .map(({ state }) => state?.waiting)
    .find((found) => found?.reason !== undefined && found.reason !== STARTING);
  const scheduled = conditionOf(status, 'PodScheduled');
  const { reason, message } = waiting ?? (scheduled?.status === 'False' ? scheduled : {});
  if (reason === undefined) return undefined;
  return shortened(message === undefined ? reason : `${reason}: ${message}`, MAX_WAITING_LENGTH);
}

function hasRun({ containers }: PodObject['spec'], status: PodStatus): boolean {
  const ran = statusesOf(status).filter(({ started, lastState }) => started === true || lastState?.terminated);
  return ran.length >= containers.length;
}

/** Whether an update changes nothing that is kept of a Pod. */
export function isSameModulePod(a: ModulePod, b: ModulePod): boolean {
  return isDeepStrictEqual({ ...a, resourceVersion: '' }, { ...b, resourceVersion: '' });
}

function conditionOf({ conditions = [] }: PodStatus, wanted: string): PodCondition | undefined {
  return conditions.find(({ type }) => type === wanted);
}

function gatesOf({ readinessGates = [] }: PodObject['spec']): string[] {
  return readinessGates.map(({ conditionType }) => conditionType);
}

/** A name that several containers use is that of the first, as for Services of Kubernetes. */
function portsOf({ containers }: PodObject['spec']): Record<string, number> {
  const named = containers
    .flatMap(({ ports = [] }) => ports)
    .flatMap(({ name, containerPort, protocol }) =>
      name === undefined ? [] : [[portKeyOf(name, protocol), containerPort] as const],
    );
  return Object.fromEntries(named.reverse());
}

/** Facts of a Pod or a Pod template that decide which Pods it may share a base with. */
export function sharingOf(
  { labels = {}, annotations = {} }: Pick<ObjectMeta, 'labels' | 'annotations'>,
  spec: PodObject['spec'],
): BaseSharing {
  return {
    labels,
    modules: modulesOf(spec),
    isOnlyVersion: annotations[ANNOTATION.installStrategy] === 'uninstallThenInstall',
    exclusions: exclusionsOf(spec),
  };
}

function modulesOf({ containers }: PodObject['spec']): PodModule[] {
  return containers.map(({ name, image, args, env = [] }) => {
    // As everywhere in Kubernetes, the last of two values counts.
    const version = env.findLast((variable) => variable.name === VERSION_ENV)?.value ?? '';
    // The API server keeps no empty value and no empty list in a Pod, but both in a template.
    const values = env.map((variable) => [variable.name, variable.value ?? '']);
    const content = createHash('sha256')
      .update(JSON.stringify([image, args ?? [], values]))
      .digest('base64url')
      .slice(0, 16);
    return { name, version, content };
  });
}

function pinnedNodeOf({ affinity }: PodObject['spec']): string | undefined {
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const names = terms.map(
    ({ matchFields = [] }) => matchFields.find(({ key }) => key === 'metadata.name')?.values?.[0],
  );
  return new Set(names).size === 1 ? names[0] : undefined;
}
