import { isDeepStrictEqual } from 'node:util';
import type { KubeObject, PodObject, PodStatus } from '../../kube/objects.ts';
import { POD_PAGE_SIZE } from '../../kube/requests.ts';
import { collectionPathOf, PODS } from '../../kube/resource.ts';
import { type CachedObject, metaOf } from '../../kube/watch/informer-types.ts';
import { COMPONENT, COMPONENT_LABEL, MODULE_LABEL } from '../../labels.ts';
import type { WatchedKind } from '../../reconcile/informers.ts';
import { CATALOG_ANNOTATION, CATALOG_LABEL } from './compose/compose.ts';
import type { ModuleSpec } from './module/module.ts';
import type { LivePod } from './record/exited-record.ts';

/** Why a Pod does not serve, or has to go. */
export interface ExitReason {
  readonly reason: string;
  readonly message?: string;
}

/** The part of a Pod of a Module that the informer keeps. */
export interface CatalogPod extends CachedObject {
  /** See `moduleLabelsKey`. Undefined: it lacks a label. */
  readonly module: string | undefined;
  readonly isDeleting: boolean;
  readonly id: string | undefined;
  /** Versions of its configuration, as `configsText` has them. */
  readonly configs: string | undefined;
  readonly node: string | undefined;
  readonly nodeIP: string | undefined;
  readonly podIP: string | undefined;
  readonly createTime: string;
  readonly exit: ExitReason | undefined;
  /** Why it does not serve; undefined: it is Ready. */
  readonly problem: ExitReason | undefined;
}

/**
 * The Pods with the labels of a Module. The rollout watches all Pods of modules, and keeps other parts of them: the
 * catalog may run without it.
 */
export const CATALOG_PODS: WatchedKind<CatalogPod> = {
  kind: 'CatalogPod',
  path: collectionPathOf(PODS),
  labelSelector: () => `${COMPONENT_LABEL}=${COMPONENT.module},${CATALOG_LABEL.app}`,
  indexers: { module: ({ module }) => module },
  pageSize: POD_PAGE_SIZE,
  project: projectCatalogPod,
};

export function projectCatalogPod(object: KubeObject): CatalogPod {
  const { metadata, spec, status = {} } = object as PodObject;
  const { [CATALOG_LABEL.app]: app, [MODULE_LABEL.name]: module, [CATALOG_LABEL.release]: id } = metadata.labels ?? {};
  const meta = metaOf(object);
  return {
    ...meta,
    module: app === undefined || module === undefined ? undefined : moduleLabelsKey(meta.namespace, { app, module }),
    isDeleting: metadata.deletionTimestamp !== undefined,
    id,
    configs: metadata.annotations?.[CATALOG_ANNOTATION.configs],
    node: spec.nodeName,
    nodeIP: status.hostIP,
    podIP: status.podIP,
    createTime: metadata.creationTimestamp ?? '',
    exit: exitReasonOf(status),
    problem: problemOf(metadata.deletionTimestamp !== undefined, status),
  };
}

/** The value of the index `module`: the labels by which a Module and its Service find its Pods. */
export function moduleLabelsKey(namespace: string, { app, module }: Pick<ModuleSpec, 'app' | 'module'>): string {
  return `${namespace}/${app}/${module}`;
}

/** The key of the Module that such labels are of, as its name follows from them. */
export function moduleKeyOfLabels(labels: string): string {
  const [namespace, app = '', module] = labels.split('/');
  return `${namespace}/${app.toLowerCase()}-${module}`;
}

/** What a record keeps of a Pod that lives. */
export function livePodOf({ uid, name, id, node, nodeIP, podIP, createTime }: CatalogPod): LivePod {
  return {
    uid,
    name,
    ...(id !== undefined && { id }),
    ...(node !== undefined && { node }),
    ...(nodeIP !== undefined && { nodeIP }),
    ...(podIP !== undefined && { podIP }),
    createTime,
  };
}

/** Whether an update changes nothing that a record keeps of a Pod that lives. */
export function isSameLivePod(a: CatalogPod, b: CatalogPod): boolean {
  return a.module === b.module && a.id === b.id && a.node === b.node && a.nodeIP === b.nodeIP && a.podIP === b.podIP;
}

const MAX_REASON_BYTES = 128;
const MAX_MESSAGE_BYTES = 1024;
/** The install has begun, and has not failed. */
const STARTING = 'ContainerCreating';

/** What `kubectl describe` shows as the reason: of the Pod, of a container that does not run, or of a condition. */
export function exitReasonOf(status: PodStatus): ExitReason | undefined {
  const { conditions = [], containerStatuses = [] } = status;
  const states = containerStatuses.map(({ state }) => state);
  const found = [
    status,
    ...states.map((state) => state?.terminated),
    ...states.map((state) => state?.waiting).filter((waiting) => waiting?.reason !== STARTING),
    conditions.find(({ type, status: value }) => type === 'DisruptionTarget' && value === 'True'),
    conditions.find(({ type, status: value }) => type === 'PodScheduled' && value === 'False'),
  ].find((one) => one?.reason !== undefined && one.reason !== '');
  if (found?.reason === undefined) return undefined;
  const { reason, message = '' } = found;
  return {
    reason: cut(reason, MAX_REASON_BYTES),
    ...(message !== '' && { message: cut(message, MAX_MESSAGE_BYTES) }),
  };
}

/** What a Pod waits for: the reason of a container, else that of the first condition that is not True. */
function problemOf(isDeleting: boolean, status: PodStatus): ExitReason | undefined {
  if (isDeleting) return { reason: 'Terminating' };
  const { conditions = [] } = status;
  const isTrue = (wanted: string): boolean =>
    conditions.some(({ type, status: value }) => type === wanted && value === 'True');
  if (isTrue('Ready')) return undefined;
  const exit = exitReasonOf(status);
  if (exit !== undefined) return exit;
  const type = ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].find((one) => !isTrue(one));
  const found = conditions.find((one) => one.type === type);
  return {
    reason: found?.reason ?? `Not${type}`,
    ...(found?.message !== undefined && { message: cut(found.message, MAX_MESSAGE_BYTES) }),
  };
}

/** Whether an update changes nothing that a Module shows of a Pod. */
export function hasSameProblem(a: CatalogPod, b: CatalogPod): boolean {
  return a.module === b.module && a.node === b.node && a.id === b.id && isDeepStrictEqual(a.problem, b.problem);
}

const MARK = '…';

/** At most `maxBytes` in UTF-8, cut and marked with `…` where there are more. */
function cut(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  // A character that is cut apart becomes U+FFFD.
  const kept = bytes.subarray(0, maxBytes - Buffer.byteLength(MARK)).toString();
  return kept.replace(/\uFFFD+$/, '') + MARK;
}
