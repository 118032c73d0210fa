import type { NodeAddress, NodeCondition, NodeObject, Taint } from '../kube/objects.ts';
import {
  ANNOTATION,
  BASE_LABEL,
  COMPONENT,
  COMPONENT_LABEL,
  ENV_LABEL,
  labelValueOf,
  NODE_TTL_ANNOTATION,
  nodeNameOf,
  TAINT,
  VNODE_LABEL,
} from '../labels.ts';
import { plainLine } from '../shortened.ts';
import type { BaseHealth, BaseInfo } from '../tunnel/base.ts';
import type { TunnelName } from '../tunnel/tunnel.ts';
import { NO_ADDRESS } from './address.ts';

/** `namespace/name` of the one running Pod that has the address `ip`; undefined: none has it, or several do. */
export interface BasePod {
  readonly ip: string;
  readonly name: string | undefined;
}

export interface NodeFacts {
  readonly base: BaseInfo;
  readonly tunnel: TunnelName;
  readonly env: string;
  /** Version that `kubectl get nodes` shows. */
  readonly kubeletVersion: string;
  readonly health: BaseHealth | undefined;
  readonly reachability: Reachability;
  /** An arklet has answered at the address and port of the base, where it is called there. */
  readonly hasAnswered: boolean;
  /** undefined before it was looked for. */
  readonly basePod: BasePod | undefined;
}

export type Reachability = 'Reachable' | 'Unreachable' | 'Suspended';

/** More Pods than any base can hold; the limit of modules is the base's metaspace. */
const MAX_PODS = '65535';
/**
 * Modules request none by themselves, but a LimitRange or a policy gives each container some, and a Node without `cpu`
 * is no place for such a Pod. Not more, since cluster-autoscaler adds up the cores of all Nodes (`--cores-total`).
 */
const CPU = '64';

/** Name and version of a base, which may have 380 characters. */
const MAX_OS_IMAGE_LENGTH = 128;

/** Shares of the maximum metaspace that are committed: at the one, pressure begins, and below the other it ends. */
const PRESSURE_FROM = 0.9;
const PRESSURE_UNTIL = 0.85;

/** The labels of the design document, and those of the Go program beside them. */
export function nodeLabelsOf({ base, tunnel, env }: NodeFacts): Record<string, string> {
  return {
    [COMPONENT_LABEL]: COMPONENT.vnode,
    [ENV_LABEL]: env,
    [VNODE_LABEL.stack]: 'java',
    [VNODE_LABEL.name]: labelValueOf(base.name),
    [VNODE_LABEL.version]: labelValueOf(base.version),
    [VNODE_LABEL.tunnel]: tunnel,
    [BASE_LABEL.name]: labelValueOf(base.name),
    [BASE_LABEL.version]: labelValueOf(base.version),
    [BASE_LABEL.clusterName]: labelValueOf(base.clusterName),
    [BASE_LABEL.hostName]: labelValueOf(base.hostName),
    // Each base is a topology domain of its own, also when two share a host.
    'kubernetes.io/hostname': nodeNameOf(base.identity),
    'kubernetes.io/os': 'linux',
    // As a kubelet writes it: kube-controller-manager adds it to a Node that lacks it, with a GET and a PATCH.
    'beta.kubernetes.io/os': 'linux',
    type: 'virtual-kubelet',
    'kubernetes.io/role': 'agent',
    'node.kubernetes.io/exclude-from-external-load-balancers': 'true',
  };
}

/**
 * Labels of the processor, which no base reports. Versions up to 0.2 wrote `amd64` for every base. Both go together:
 * kube-controller-manager adds the second one to a Node that has only the first.
 */
export const ARCHITECTURE_LABELS = ['kubernetes.io/arch', 'beta.kubernetes.io/arch'] as const;

/** Upper bounds of the number of Nodes, and the TTL controller's value for each, as `pkg/controller/ttl` of Kubernetes has them. */
const TTL_SECONDS: readonly (readonly [nodes: number, seconds: number])[] = [
  [100, 0],
  [500, 15],
  [1_000, 30],
  [2_000, 60],
  [Number.POSITIVE_INFINITY, 300],
];

/**
 * The value of {@link NODE_TTL_ANNOTATION} that the TTL controller would write, so that it has nothing to write.
 * `nodeCount`: VNodes with the new one. `shown`: the value that it last wrote to a VNode, which counts Nodes of all kinds.
 */
export function ttlSecondsOf(nodeCount: number, shown: number): number {
  const [, seconds = 0] = TTL_SECONDS.find(([nodes]) => nodeCount <= nodes) ?? [];
  return Math.max(seconds, shown);
}

/** Keys of the annotations that the controller writes to Nodes. */
export const NODE_ANNOTATIONS = [
  NODE_TTL_ANNOTATION,
  ANNOTATION.metaspaceUsed,
  ANNOTATION.arkletPort,
  ANNOTATION.basePod,
] as const;

/** Keep ordinary Pods off, and Pods of other envs. */
export function nodeTaintsOf(env: string): Taint[] {
  return [
    { key: TAINT.virtualNode, value: 'True', effect: 'NoExecute' },
    { key: TAINT.env, value: env, effect: 'NoExecute' },
  ];
}

export function providerIdOf(env: string, identity: string): string {
  return `koupleless://${env}/${identity}`;
}

export function nodeAddressesOf(base: BaseInfo): NodeAddress[] {
  return [
    ...(base.ip === NO_ADDRESS ? [] : [{ type: 'InternalIP', address: base.ip }]),
    // A base may claim any host name, so what it calls its host is only a label.
    { type: 'Hostname', address: nodeNameOf(base.identity) },
  ];
}

/** The memory of a base is its metaspace, in KiB; a base without a limit has none. */
export function nodeMemoryOf(health: BaseHealth | undefined): { capacity: number; allocatable: number } | undefined {
  const max = health?.metaspaceMaxBytes;
  if (max === undefined) return undefined;
  const committed = health?.metaspaceCommittedBytes ?? 0;
  return { capacity: Math.floor(max / 1024), allocatable: Math.max(0, Math.floor((max - committed) / 1024)) };
}

export function nodeAnnotationsOf(health: BaseHealth | undefined): Record<string, string> {
  const used = health?.metaspaceUsedBytes;
  return used === undefined ? {} : { [ANNOTATION.metaspaceUsed]: `${Math.floor(used / 1024)}Ki` };
}

/**
 * Port of the arklet, by which a later process, or another replica, finds the base before it speaks, and which no Service
 * exports. `shown`: what the Node shows, until an arklet has answered at the port that the base names: another process
 * may serve there, and its Services would lose the port.
 */
export function arkletAnnotationOf(
  { base: { port }, hasAnswered }: Pick<NodeFacts, 'base' | 'hasAnswered'>,
  shown?: string,
): string | undefined {
  if (port === 0) return undefined;
  return hasAnswered ? String(port) : shown;
}

/** 0 where the Node does not show it. */
export function arkletPortOf(annotations: Readonly<Record<string, string>>): number {
  const port = Number(annotations[ANNOTATION.arkletPort]);
  return Number.isInteger(port) && port > 0 && port <= 65_535 ? port : 0;
}

/** The version of the API server, as version skew is judged by it, and that of this program. */
export function kubeletVersionOf(serverVersion: string, version: string): string {
  return `${serverVersion}-koupleless-${version}`;
}

export function nodeInfoOf({ base, kubeletVersion }: NodeFacts): Record<string, string> {
  return {
    // Unknown; see ARCHITECTURE_LABELS.
    architecture: '',
    bootID: base.identity,
    containerRuntimeVersion: 'koupleless://arklet',
    kernelVersion: '',
    kubeProxyVersion: '',
    kubeletVersion,
    machineID: base.identity,
    operatingSystem: 'linux',
    osImage: plainLine(`${base.name} ${base.version}`, MAX_OS_IMAGE_LENGTH),
    systemUUID: base.identity,
  };
}

/**
 * Conditions without times; `Unknown` is kube-controller-manager's word for Ready, never the controller's.
 * `before`: those that the Node has.
 */
export function nodeConditionsOf(
  { base, reachability, health }: NodeFacts,
  before: readonly NodeCondition[] = [],
): NodeCondition[] {
  const isSilent = reachability === 'Unreachable';
  return [
    {
      type: 'Ready',
      status: isSilent ? 'False' : 'True',
      reason: isSilent ? 'BaseUnreachable' : 'KubeletReady',
      message: isSilent ? unreachableMessage(base) : `base ${base.identity} is reachable`,
    },
    pressure('MemoryPressure', 'KubeletHasSufficientMemory', 'the condition MetaspacePressure is about modules'),
    pressure('DiskPressure', 'KubeletHasNoDiskPressure', 'a base has no disk of its own'),
    pressure('PIDPressure', 'KubeletHasSufficientPID', 'a base has no processes of its own'),
    pressure('NetworkUnavailable', 'RouteCreated', 'modules use the network of their base'),
    reachable(reachability, base),
    ...metaspacePressureOf(
      health,
      before.find(({ type }) => type === METASPACE_PRESSURE),
    ),
  ];
}

export const METASPACE_PRESSURE = 'MetaspacePressure';

/** None before the base has reported its health. */
function metaspacePressureOf(health: BaseHealth | undefined, before: NodeCondition | undefined): NodeCondition[] {
  if (health === undefined) return before ? [before] : [];
  const { metaspaceMaxBytes: max, metaspaceCommittedBytes: committed = 0 } = health;
  const threshold = before?.status === 'True' ? PRESSURE_UNTIL : PRESSURE_FROM;
  const isPressed = max !== undefined && committed >= max * threshold;
  return [
    {
      type: METASPACE_PRESSURE,
      status: isPressed ? 'True' : 'False',
      reason: isPressed ? 'MetaspaceNearLimit' : 'MetaspaceAvailable',
      message: isPressed
        ? 'more than 85 % of the maximum metaspace are committed: installs may fail, and a restart of the base frees it'
        : 'modules have metaspace',
    },
  ];
}

export function unreachableMessage(base: BaseInfo): string {
  return `base ${base.identity} sent nothing for 25 s; its Node is deleted after 60 s`;
}

function pressure(type: string, reason: string, message: string): NodeCondition {
  return { type, status: 'False', reason, message };
}

function reachable(reachability: Reachability, base: BaseInfo): NodeCondition {
  const type = 'BaseReachable';
  if (reachability === 'Reachable')
    return { type, status: 'True', reason: 'HeartbeatReceived', message: 'the base sends heartbeats' };
  if (reachability === 'Unreachable')
    return { type, status: 'False', reason: 'BaseUnreachable', message: unreachableMessage(base) };
  const message =
    'the base is silent, but so is the link of the controller or most other bases: no base is judged until the link is proven';
  return { type, status: 'Unknown', reason: 'LivenessFrozen', message };
}

/**
 * The whole Node of a base that is new: POST keeps its status, so one write makes a ready Node. `ttlSeconds`: see
 * {@link ttlSecondsOf}.
 */
export function newNodeOf(facts: NodeFacts, nowText: string, ttlSeconds = 0): NodeObject {
  const { base, env, health } = facts;
  const arkletPort = arkletAnnotationOf(facts);
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: nodeNameOf(base.identity),
      labels: nodeLabelsOf(facts),
      annotations: {
        [NODE_TTL_ANNOTATION]: String(ttlSeconds),
        ...nodeAnnotationsOf(health),
        ...(arkletPort === undefined ? {} : { [ANNOTATION.arkletPort]: arkletPort }),
      },
    },
    spec: { providerID: providerIdOf(env, base.identity), taints: nodeTaintsOf(env) },
    status: {
      ...nodeResourcesOf(health),
      addresses: nodeAddressesOf(base),
      nodeInfo: nodeInfoOf(facts),
      conditions: nodeConditionsOf(facts).map((condition) => ({
        ...condition,
        lastHeartbeatTime: nowText,
        lastTransitionTime: nowText,
      })),
    },
  };
}

export function nodeResourcesOf(health: BaseHealth | undefined): {
  capacity: Record<string, string>;
  allocatable: Record<string, string>;
} {
  const memory = nodeMemoryOf(health);
  const unlimited = { cpu: CPU, pods: MAX_PODS };
  if (memory === undefined) return { capacity: unlimited, allocatable: unlimited };
  return {
    capacity: { ...unlimited, memory: `${memory.capacity}Ki` },
    allocatable: { ...unlimited, memory: `${memory.allocatable}Ki` },
  };
}
