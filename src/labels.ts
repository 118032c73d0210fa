/** Label, taint and annotation keys, and names that Pods of modules use. */

/** API group of the project's own kinds. */
export const PLATFORM_GROUP = 'platform.koupleless.io';

export const COMPONENT_LABEL = 'virtual-kubelet.koupleless.io/component';
export const ENV_LABEL = 'virtual-kubelet.koupleless.io/env';
/** Key of the label that names the strategy of a Deployment: `peer` = one copy of the module on each base. */
export const STRATEGY_LABEL = 'virtual-kubelet.koupleless.io/strategy';
export const PEER_STRATEGY = 'peer';
/**
 * Key of the label of such a Deployment: `true` = its replicas are somebody else's, for example while it is being
 * moved.
 */
export const REPLICAS_CONTROL_LABEL = 'virtual-kubelet.koupleless.io/replicas-control';
export const COMPONENT = {
  module: 'module',
  moduleDeployment: 'module-deployment',
  vnode: 'vnode',
  lease: 'vnode-lease',
  member: 'vnode-member',
  contacts: 'vnode-contacts',
} as const;

/** The labels of the design document. */
export const VNODE_LABEL = {
  stack: 'base.koupleless.io/stack',
  name: 'vnode.koupleless.io/name',
  version: 'vnode.koupleless.io/version',
  tunnel: 'vnode.koupleless.io/tunnel',
} as const;

/**
 * Keys of the labels that name the one module of a Pod. Selectors, anti-affinity and people read them; the Virtual
 * Kubelet does not.
 */
export const MODULE_LABEL = {
  name: 'module.koupleless.io/name',
  version: 'module.koupleless.io/version',
} as const;

/** The labels of the Go program, which manifests of its users select by. */
export const BASE_LABEL = {
  name: 'base.koupleless.io/name',
  version: 'base.koupleless.io/version',
  clusterName: 'base.koupleless.io/cluster-name',
  hostName: 'base.koupleless.io/host-name',
} as const;

export const TAINT = {
  virtualNode: 'schedule.koupleless.io/virtual-node',
  env: 'schedule.koupleless.io/node-env',
} as const;

export const ANNOTATION = {
  /** arklet's `installStrategy` for the modules of a Pod. */
  installStrategy: 'virtual-kubelet.koupleless.io/install-strategy',
  /** Port of the arklet of a Node's base: a later process finds the base there over HTTP. */
  arkletPort: 'platform.koupleless.io/arklet-port',
  metaspaceUsed: 'platform.koupleless.io/metaspace-used',
  /** `namespace/name` of the Pod that the base of a Node runs in. */
  basePod: 'platform.koupleless.io/base-pod',
  /** Name of the bases that a Pod, or a Pod of a template, may run on; becomes a required node affinity. */
  baseName: 'platform.koupleless.io/base-name',
  baseVersion: 'platform.koupleless.io/base-version',
  /** UID of the Pod whose place a Pod of a ModuleDeployment takes. */
  replaces: 'platform.koupleless.io/replaces',
  /** Number of the batch up to which a person has confirmed the rollout of a ModuleDeployment. */
  confirmBatch: 'platform.koupleless.io/confirm-batch',
} as const;

/** Keys of the labels of a Service that is exported to load balancers. */
export const EXPORT_LABEL = {
  /** The group of balancers that takes it. */
  group: 'BCSGROUP',
  /** `roundrobin`, `source` or `leastconn`. */
  balance: 'BCSBALANCE',
  /** `BCS-WEIGHT-{x}`: the share of the Pods whose weight label is `x`. */
  weightPrefix: 'BCS-WEIGHT-',
} as const;

export const EXPORT_ANNOTATION = {
  /** Several groups, separated by commas: a label value holds none. */
  groups: 'platform.koupleless.io/export-groups',
  /** JSON, by the name of the port: `domainName`, `path`, `protocol`. */
  ports: 'platform.koupleless.io/export-ports',
  maxConnections: 'platform.koupleless.io/max-conn',
  ssl: 'platform.koupleless.io/ssl',
  /** Key of the Pod label whose value is `{x}` in `BCS-WEIGHT-{x}`. */
  weightLabel: 'platform.koupleless.io/weight-label',
} as const;

/** arklet's install strategies; `uninstallThenInstall` takes all other versions of the name off the base first. */
export const INSTALL_STRATEGIES = ['installOnly', 'uninstallThenInstall'] as const;
export type InstallStrategy = (typeof INSTALL_STRATEGIES)[number];

/** Environment variable of a container: the version of its module. */
export const VERSION_ENV = 'BIZ_VERSION';

/**
 * Key of the Pod label with the hash of the template that the Pod was made from. StatefulSets and DaemonSets use the
 * same.
 */
export const REVISION_LABEL = 'controller-revision-hash';

/** Annotations that a replica publishes on its membership Lease. */
export const MEMBER_ANNOTATION = {
  nonce: 'member.koupleless.io/nonce',
  address: 'member.koupleless.io/address',
  tunnels: 'member.koupleless.io/tunnels',
  state: 'member.koupleless.io/state',
} as const;

/**
 * Namespace in which Kubernetes keeps the Leases of Nodes. All that this controller has to believe is there too, the
 * Leases of replicas and the records of first contacts: the built-in ClusterRole `edit` lets a tenant write Leases and
 * ConfigMaps in the tenant's own namespaces, and nobody but cluster components writes in this one.
 */
export const NODE_LEASE_NAMESPACE = 'kube-node-lease';

export const NODE_NAME_PREFIX = 'vnode.';
/** `kubernetes.io/hostname` holds the node name, and a label value ends at 63 characters. */
export const MAX_IDENTITY_LENGTH = 63 - NODE_NAME_PREFIX.length;

export function nodeNameOf(identity: string): string {
  return NODE_NAME_PREFIX + identity;
}

/** The identity behind a Node name, or undefined when it is not the name of a VNode. */
export function identityOf(nodeName: string): string | undefined {
  return nodeName.startsWith(NODE_NAME_PREFIX) ? nodeName.slice(NODE_NAME_PREFIX.length) : undefined;
}

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** Why `identity` cannot be a base's, in words for its owner; undefined when it can. */
export function identityFault(identity: string): string | undefined {
  if (identity.length === 0) return 'is empty';
  if (identity.length > MAX_IDENTITY_LENGTH)
    return `has ${identity.length} characters, ${MAX_IDENTITY_LENGTH} are allowed`;
  if (!SUBDOMAIN.test(identity)) return 'is not a lower-case RFC 1123 subdomain (a-z, 0-9, "-" and ".")';
  return undefined;
}

/** `text` as a label value: what Kubernetes refuses becomes `_`, at most 63 characters, ends alphanumeric. */
export function labelValueOf(text: string): string {
  const cleaned = text.replace(/[^A-Za-z0-9_.-]/g, '_').slice(0, 63);
  return cleaned.replace(/^[^A-Za-z0-9]+/, '').replace(/[^A-Za-z0-9]+$/, '');
}

/**
 * Annotation that kube-controller-manager's TTL controller adds to each Node: how long a kubelet may cache Secrets and
 * ConfigMaps, s. It has no effect on a VNode.
 */
export const NODE_TTL_ANNOTATION = 'node.alpha.kubernetes.io/ttl';

/** Key of the annotation in which whoever changes a configuration signs with its own name. */
export const CHANGED_BY_ANNOTATION = `${PLATFORM_GROUP}/changed-by`;
