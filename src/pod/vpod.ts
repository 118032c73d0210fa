import type {
  Container,
  ContainerState,
  ContainerStatus,
  KubeObject,
  PodCondition,
  PodObject,
  PodStatus,
} from '../kube/objects.ts';
import { memoryRequestOf, type Placement, placementOf } from '../kube/placement.ts';
import { ANNOTATION } from '../labels.ts';
import { TextPool } from '../text-pool.ts';
import { boundedPlacement, boundedSpec } from './spec-size.ts';
import { isAdmissionReason } from './waiting-reason.ts';

/** Texts that many cached Pods have in common, which are a few hundred. */
const texts = new TextPool(256);

/** One environment variable of a container. `value` is undefined when it is taken from elsewhere (`valueFrom`). */
export interface VPodEnv {
  readonly name: string;
  readonly value: string | undefined;
}

export interface VPodContainer {
  readonly name: string;
  readonly image: string;
  readonly args: readonly string[];
  readonly env: readonly VPodEnv[];
  readonly hasEnvFrom: boolean;
  /** `lifecycle.preStop.sleep`; undefined where there is none. Never negative. */
  readonly preStopSleepSeconds: number | undefined;
}

/** The part of a Pod that the informer keeps: only fields that are used. */
export interface VPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation: number | undefined;
  readonly createdAt: string;
  readonly nodeName: string | undefined;
  readonly isDeleting: boolean;
  /** When the grace period ends, on the API server's clock, and how long it is; undefined while nobody deletes. */
  readonly deletionTime: string | undefined;
  readonly deletionGraceSeconds: number | undefined;
  /** It stays when it is deleted, until others take their finalizers off. */
  readonly hasFinalizers: boolean;
  /** Why nothing of the Pod is installed: its author wrote more than is kept. Undefined for nearly every Pod. */
  readonly sizeFault: string | undefined;
  /** The annotation as it is, unchecked, but for one that is longer than any strategy. */
  readonly installStrategy: string | undefined;
  readonly restartPolicy: string;
  readonly readinessGates: readonly string[];
  readonly containers: readonly VPodContainer[];
  /** In bytes. */
  readonly memoryRequest: number;
  /**
   * The constraints to check before the first install; undefined once the scheduler or this controller has admitted it.
   */
  readonly placement: Placement | undefined;
  /** What its author may expect to work, and no base can do; undefined for most Pods. */
  readonly ignored: IgnoredFields | undefined;
  readonly status: VPodStatus;
}

export interface IgnoredFields {
  /** UID of its controller, else its own: the Pods of one owner are alike. */
  readonly ownerUid: string;
  /** Such as `readinessProbe of container shop`. */
  readonly fields: string;
}

export interface VPodStatus {
  readonly phase: string;
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly observedGeneration: number | undefined;
  readonly startTime: string | undefined;
  readonly podIP: string | undefined;
  readonly hostIP: string | undefined;
  readonly conditions: readonly PodCondition[];
  readonly containerStatuses: readonly ContainerStatus[];
}

/** Far longer than any strategy or UID. */
const MAX_WORD_LENGTH = 64;

/** Projection at the watch (a cached Pod of one module stays under 2.5 KB; see MAX_SPEC_BYTES for a large one). */
export function projectPod(object: KubeObject): VPod {
  const { metadata, spec: written, status = {} } = object as PodObject;
  const { spec, fault } = boundedSpec(written);
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    generation: metadata.generation,
    createdAt: texts.share(metadata.creationTimestamp ?? ''),
    nodeName: spec.nodeName,
    isDeleting: metadata.deletionTimestamp !== undefined,
    deletionTime: metadata.deletionTimestamp,
    deletionGraceSeconds:
      metadata.deletionTimestamp === undefined ? undefined : secondsOf(metadata.deletionGracePeriodSeconds),
    hasFinalizers: (metadata.finalizers ?? []).length > 0,
    sizeFault: fault,
    installStrategy: wordOf(metadata.annotations?.[ANNOTATION.installStrategy], 'too long'),
    restartPolicy: spec.restartPolicy ?? 'Always',
    readinessGates: (spec.readinessGates ?? []).map((gate) => gate.conditionType),
    containers: spec.containers.map((container) => ({
      name: container.name,
      image: texts.share(container.image ?? ''),
      args: container.args ?? [],
      env: (container.env ?? []).map(({ name, value, valueFrom }) => ({
        name: texts.share(name),
        value: valueFrom === undefined ? texts.share(value ?? '') : undefined,
      })),
      hasEnvFrom: (container.envFrom ?? []).length > 0,
      preStopSleepSeconds: preStopSleepSecondsOf(container),
    })),
    memoryRequest: memoryRequestOf(written),
    placement: isAdmitted(status) ? undefined : boundedPlacement(placementOf(spec)),
    ignored: ignoredFieldsOf(metadata, spec),
    status: projectStatus(status),
  };
}

/** In the order in which an event shows them. */
const IGNORED_FIELDS: readonly (readonly [name: string, valueIn: (container: Container) => unknown])[] = [
  ['livenessProbe', ({ livenessProbe }) => livenessProbe],
  ['readinessProbe', ({ readinessProbe }) => readinessProbe],
  ['startupProbe', ({ startupProbe }) => startupProbe],
  ['postStart', ({ lifecycle }) => lifecycle?.postStart],
  ['preStop', ({ lifecycle }) => (lifecycle?.preStop?.sleep === undefined ? lifecycle?.preStop : undefined)],
  ['command', ({ command }) => command],
];

/** A short text as it is, `instead` of any other. */
function wordOf<T extends string | undefined>(text: T, instead: T & string): T {
  return text !== undefined && text.length > MAX_WORD_LENGTH ? instead : text;
}

function ignoredFieldsOf(metadata: PodObject['metadata'], spec: PodObject['spec']): IgnoredFields | undefined {
  const fields: string[] = [];
  for (const container of spec.containers) {
    const set = IGNORED_FIELDS.filter(([, valueIn]) => valueIn(container) !== undefined);
    if (set.length > 0) fields.push(`${set.map(([field]) => field).join(', ')} of container ${container.name}`);
  }
  if ((spec.initContainers ?? []).length > 0) fields.push('initContainers');
  if (fields.length === 0) return undefined;
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
  const ownUid = metadata.uid ?? '';
  return { ownerUid: wordOf(owner?.uid ?? ownUid, ownUid), fields: fields.join('; ') };
}

/**
 * The API server sets PodScheduled when a scheduler binds a Pod, which nobody else may do: the scheduler has checked
 * whether it fits. A container that shows more than why it is not admitted belongs to a Pod that once was.
 */
function isAdmitted({ conditions = [], containerStatuses = [] }: PodStatus): boolean {
  if (conditions.some(({ type, status }) => type === 'PodScheduled' && status === 'True')) return true;
  return containerStatuses.some(({ state }) => !isAdmissionReason(state?.waiting?.reason));
}

/** 0 for everything that is no duration: the API server admits none, and a deadline must not depend on that. */
function preStopSleepSecondsOf({ lifecycle }: Container): number | undefined {
  const sleep = lifecycle?.preStop?.sleep;
  return sleep === undefined || sleep === null ? undefined : secondsOf(sleep.seconds);
}

function secondsOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? Math.max(0, value) : 0;
}

function projectStatus(status: PodStatus): VPodStatus {
  return {
    phase: status.phase ?? 'Pending',
    reason: status.reason,
    message: status.message,
    observedGeneration: status.observedGeneration,
    startTime: texts.share(status.startTime),
    podIP: status.podIP,
    hostIP: status.hostIP,
    conditions: (status.conditions ?? []).map(projectCondition).sort(byType),
    containerStatuses: (status.containerStatuses ?? []).map(projectContainerStatus),
  };
}

/** The API server adds empty fields (`lastProbeTime: null`, `lastState: {}`); a comparison must not see them. */
function projectCondition({
  type,
  status,
  reason,
  message,
  lastTransitionTime,
  observedGeneration,
}: PodCondition): PodCondition {
  return {
    type: texts.share(type),
    status,
    ...(reason === undefined ? {} : { reason: texts.share(reason) }),
    ...(message === undefined ? {} : { message }),
    ...(lastTransitionTime ? { lastTransitionTime: texts.share(lastTransitionTime) } : {}),
    ...(observedGeneration === undefined ? {} : { observedGeneration }),
  };
}

/** Each writer leaves the list in an order of its own; the controller sorts by type. */
export function byType(a: PodCondition, b: PodCondition): number {
  return a.type < b.type ? -1 : 1;
}

function projectContainerStatus(status: ContainerStatus): ContainerStatus {
  const { name, image, imageID, containerID, ready, started, restartCount, state, lastState } = status;
  return {
    name,
    image: texts.share(image),
    imageID: texts.share(imageID),
    ready,
    started: started ?? false,
    restartCount,
    ...(containerID === undefined ? {} : { containerID }),
    ...(state === undefined ? {} : { state: projectState(state) }),
    ...(lastState?.terminated ? { lastState: { terminated: lastState.terminated } } : {}),
  };
}

function projectState(state: ContainerState): ContainerState {
  return state.running === undefined ? state : { ...state, running: texts.shareIn(state.running) };
}

/** Number of containers from which they are indexed. With fewer, a search is as quick. */
const INDEXED_FROM = 8;
const indexes = new WeakMap<readonly ContainerStatus[], ReadonlyMap<string, ContainerStatus>>();

/** The status of one container. A plan asks for that of each, and a Pod may have hundreds. */
export function statusIn(statuses: readonly ContainerStatus[], container: string): ContainerStatus | undefined {
  if (statuses.length < INDEXED_FROM) return statuses.find(({ name }) => name === container);
  let index = indexes.get(statuses);
  if (index === undefined) {
    index = new Map(statuses.map((status) => [status.name, status]));
    indexes.set(statuses, index);
  }
  return index.get(container);
}

/** Failed and Succeeded are final: nothing of such a Pod runs again, and nothing is written to it again. */
export function isTerminal({ status }: Pick<VPod, 'status'>): boolean {
  return status.phase === 'Failed' || status.phase === 'Succeeded';
}

/** The order in which statuses of one base are written and claims are weighed. */
export function byCreation(a: VPod, b: VPod): number {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return a.uid < b.uid ? -1 : 1;
}
