/**
 * API objects as the JSON they are on the wire, only the fields that the controller reads or writes.
 * (client-node's own types say `Date` where a watch brings a string.)
 */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

export interface ObjectMeta {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  /** Finalizers of the object. While there are any, a deleted object stays. */
  finalizers?: string[];
  /** Field managers of server-side apply; only whether there are any matters. */
  managedFields?: readonly unknown[];
}

/** The owner that decides about an object; at most one has `controller`. */
export function controllerOf({
  ownerReferences = [],
}: Pick<ObjectMeta, 'ownerReferences'>): OwnerReference | undefined {
  return ownerReferences.find(({ controller }) => controller === true);
}

export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

export type ConditionStatus = 'True' | 'False' | 'Unknown';

export interface Condition {
  type: string;
  status: ConditionStatus;
  reason?: string;
  message?: string;
  lastTransitionTime?: string | null;
}

export interface NodeCondition extends Condition {
  lastHeartbeatTime?: string;
}

export interface PodCondition extends Condition {
  observedGeneration?: number;
}

export interface Taint {
  key: string;
  value?: string;
  effect: string;
}

export interface NodeAddress {
  type: string;
  address: string;
}

export interface NodeStatus {
  capacity?: Record<string, string | null>;
  allocatable?: Record<string, string | null>;
  conditions?: NodeCondition[];
  addresses?: NodeAddress[];
  nodeInfo?: Record<string, string>;
  daemonEndpoints?: { kubeletEndpoint: { Port: number } };
}

export interface NodeObject extends KubeObject {
  spec?: { providerID?: string; taints?: Taint[]; unschedulable?: boolean };
  status?: NodeStatus;
}

export interface ContainerState {
  waiting?: { reason?: string; message?: string };
  running?: { startedAt?: string };
  terminated?: {
    exitCode: number;
    reason?: string;
    message?: string;
    startedAt?: string;
    finishedAt?: string;
    containerID?: string;
  };
}

export interface ContainerStatus {
  name: string;
  image: string;
  imageID: string;
  containerID?: string;
  ready: boolean;
  started?: boolean;
  restartCount: number;
  state?: ContainerState;
  lastState?: ContainerState;
}

export interface PodStatus {
  phase?: string;
  reason?: string;
  message?: string;
  observedGeneration?: number;
  conditions?: PodCondition[];
  containerStatuses?: ContainerStatus[];
  hostIP?: string;
  hostIPs?: { ip: string }[];
  podIP?: string;
  podIPs?: { ip: string }[];
  startTime?: string;
}

export interface EnvVar {
  name: string;
  value?: string;
  valueFrom?: unknown;
}

export interface Toleration {
  key?: string;
  operator?: string;
  value?: string;
  effect?: string;
}

export interface NodeSelectorRequirement {
  key: string;
  operator: string;
  values?: string[];
}

export interface NodeSelectorTerm {
  matchExpressions?: NodeSelectorRequirement[];
  matchFields?: NodeSelectorRequirement[];
}

/** `metav1.LabelSelector`. */
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: NodeSelectorRequirement[];
}

export interface PodAffinityTerm {
  topologyKey: string;
  labelSelector?: LabelSelector;
  /** Default: that of the Pod. */
  namespaces?: string[];
}

export interface ResourceContainer {
  restartPolicy?: string;
  resources?: { requests?: Record<string, string> };
}

export interface Container extends ResourceContainer {
  name: string;
  image?: string;
  args?: string[];
  env?: EnvVar[];
  envFrom?: unknown[];
  ports?: { name?: string; containerPort: number; protocol?: string }[];
  lifecycle?: { postStart?: unknown; preStop?: { sleep?: { seconds?: number } } };
  command?: string[];
  livenessProbe?: unknown;
  readinessProbe?: unknown;
  startupProbe?: unknown;
}

export interface PodObject extends KubeObject {
  spec: {
    nodeName?: string;
    restartPolicy?: string;
    containers: Container[];
    initContainers?: ResourceContainer[];
    resources?: { requests?: Record<string, string> };
    overhead?: Record<string, string>;
    nodeSelector?: Record<string, string>;
    affinity?: {
      nodeAffinity?: { requiredDuringSchedulingIgnoredDuringExecution?: { nodeSelectorTerms?: NodeSelectorTerm[] } };
      podAntiAffinity?: { requiredDuringSchedulingIgnoredDuringExecution?: PodAffinityTerm[] };
    };
    tolerations?: Toleration[];
    readinessGates?: { conditionType: string }[];
    terminationGracePeriodSeconds?: number;
  };
  status?: PodStatus;
}

/** Key of a named port of a Pod. As in Kubernetes, a target port of a Service is found by its name and protocol. */
export function portKeyOf(name: string, protocol = 'TCP'): string {
  return `${protocol} ${name}`;
}

export interface ServicePort {
  name?: string;
  protocol?: string;
  appProtocol?: string;
  port: number;
  targetPort?: number | string;
}

export interface ServiceObject extends KubeObject {
  spec?: { type?: string; selector?: Record<string, string>; ports?: ServicePort[] };
}

export interface LeaseSpec {
  holderIdentity?: string;
  leaseDurationSeconds?: number;
  /** RFC 3339 with exactly six fractional digits. */
  acquireTime?: string;
  renewTime?: string;
  leaseTransitions?: number;
}

export interface LeaseObject extends KubeObject {
  spec?: LeaseSpec;
}

export interface ConfigMapObject extends KubeObject {
  data?: Record<string, string>;
}

export interface EventObject extends KubeObject {
  involvedObject: { apiVersion: string; kind: string; namespace?: string; name: string; uid?: string };
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
  count: number;
  firstTimestamp: string;
  lastTimestamp: string;
  source: { component: string; host?: string };
  reportingComponent: string;
  reportingInstance: string;
}
