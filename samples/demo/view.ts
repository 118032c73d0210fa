import { VNODE_LABEL } from '../../src/labels.ts';
import type { KubeObject } from '../control-plane/api-client.ts';

/** What the demo looks at of a Node. */
export interface NodeView {
  readonly name: string;
  readonly status: string;
  readonly isReady: boolean;
  readonly ip: string;
  /** MQTT or HTTP; empty where it is not told. */
  readonly tunnel: string;
  readonly labels: Readonly<Record<string, string>>;
  /** As kubectl writes them: `key=value:effect`. */
  readonly taints: readonly string[];
}

/** … of a Pod. */
export interface PodView {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** `name:version` of its modules. */
  readonly modules: readonly string[];
  /** As kubectl shows it: the phase, or why it waits. */
  readonly status: string;
  readonly message: string;
  readonly isReady: boolean;
  readonly readyText: string;
  readonly node: string;
  readonly ip: string;
}

/** … of a Deployment; a count that the controller has not written yet is 0. */
export interface DeploymentView {
  readonly name: string;
  readonly observedGeneration: number;
  readonly replicas: number;
  readonly updated: number;
  readonly ready: number;
}

/** … of a ModuleDeployment; a count that the controller has not written yet is 0. */
export interface ModuleDeploymentView {
  readonly name: string;
  /** How many Pods there should be. */
  readonly wanted: number;
  readonly observedGeneration: number;
  readonly replicas: number;
  readonly updated: number;
  readonly available: number;
  readonly revision: number;
  /** Of the condition Progressing; empty where there is none. */
  readonly reason: string;
  /** While a rollout in batches runs. */
  readonly batch?: { readonly current: number; readonly total: number };
}

export interface ClusterView {
  readonly nodes: readonly NodeView[];
  readonly pods: readonly PodView[];
  readonly deployments: readonly DeploymentView[];
  /** None before their kind exists. */
  readonly moduleDeployments: readonly ModuleDeploymentView[];
}

/** What a simulated base itself says. */
export interface BaseView {
  readonly identity: string;
  readonly tunnel: 'mqtt' | 'http';
  /** As its Node should show it; empty where others cannot reach it. */
  readonly ip: string;
  /** Each as `name:version state`. */
  readonly modules: readonly string[];
}

export function nodeViewOf({ metadata, spec, status }: KubeObject): NodeView {
  const ready = conditionOf(status, 'Ready');
  const isReady = ready?.status === 'True';
  const addresses: { type: string; address: string }[] = status?.addresses ?? [];
  const taints: { key: string; value?: string; effect: string }[] = spec?.taints ?? [];
  return {
    name: metadata.name,
    status: isReady ? 'Ready' : `NotReady${ready?.reason ? ` (${ready.reason})` : ''}`,
    isReady,
    ip: addresses.find(({ type }) => type === 'InternalIP')?.address ?? '',
    tunnel: (metadata.labels?.[VNODE_LABEL.tunnel] ?? '').replace(/_tunnel_provider$/, '').toUpperCase(),
    labels: metadata.labels ?? {},
    taints: taints.map(({ key, value, effect }) => `${key}${value === undefined ? '' : `=${value}`}:${effect}`),
  };
}

export function podViewOf({ metadata, spec, status }: KubeObject): PodView {
  const containers: KubeObject[] = spec.containers;
  const statuses: KubeObject[] = status?.containerStatuses ?? [];
  const waiting = statuses.find(({ state }) => state?.waiting)?.state.waiting;
  const unscheduled = conditionOf(status, 'PodScheduled');
  return {
    namespace: metadata.namespace,
    name: metadata.name,
    labels: metadata.labels ?? {},
    modules: containers.map(moduleTextOf),
    status: metadata.deletionTimestamp ? 'Terminating' : (waiting?.reason ?? status?.phase ?? 'Pending'),
    message: waiting?.message ?? (unscheduled?.status === 'False' ? unscheduled.message : '') ?? '',
    isReady: conditionOf(status, 'Ready')?.status === 'True',
    readyText: `${statuses.filter(({ ready }) => ready).length}/${containers.length}`,
    node: spec.nodeName ?? '',
    ip: status?.podIP ?? '',
  };
}

export function deploymentViewOf({ metadata, status = {} }: KubeObject): DeploymentView {
  const { observedGeneration = 0, replicas = 0, updatedReplicas = 0, readyReplicas = 0 } = status;
  return { name: metadata.name, observedGeneration, replicas, updated: updatedReplicas, ready: readyReplicas };
}

export function moduleDeploymentViewOf({ metadata, spec, status = {} }: KubeObject): ModuleDeploymentView {
  const { observedGeneration = 0, replicas = 0, updatedReplicas = 0, availableReplicas = 0, revision = 0 } = status;
  return {
    name: metadata.name,
    wanted: spec.replicas ?? 1,
    observedGeneration,
    replicas,
    updated: updatedReplicas,
    available: availableReplicas,
    revision,
    reason: conditionOf(status, 'Progressing')?.reason ?? '',
    ...(status.batch && { batch: { current: status.batch.current, total: status.batch.total } }),
  };
}

function moduleTextOf({ name, env = [] }: KubeObject): string {
  const version = env.find((entry: KubeObject) => entry.name === 'BIZ_VERSION')?.value ?? '?';
  return `${name}:${version}`;
}

function conditionOf(status: KubeObject, type: string): KubeObject {
  return status?.conditions?.find((condition: KubeObject) => condition.type === type);
}
