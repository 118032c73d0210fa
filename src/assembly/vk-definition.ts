import { NODES, PODS } from '../kube/resource.ts';
import { NODE_LEASE_NAMESPACE } from '../labels.ts';
import type { KindAccess } from '../reconcile/access.ts';
import type { EventDefinition } from '../reconcile/controller-definition.ts';

/**
 * What the Virtual Kubelet does with the API. What it believes lies in the namespace of the Leases of Nodes, where
 * tenants cannot write.
 */
export const VK_ACCESS: readonly KindAccess[] = [
  {
    kind: NODES,
    verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'],
    use: 'NodeController: makes the Node of a base, keeps its labels and taints, deletes it when the base is dead. SharedInformer: watches (list only where an API server has no streaming lists).',
  },
  { kind: NODES, subresource: 'status', verbs: ['patch'], use: 'NodeController: readiness, addresses, memory.' },
  {
    kind: PODS,
    verbs: ['list', 'watch', 'delete'],
    use: 'SharedInformer; BasePods lists those of an address; PodController deletes a Pod when its modules are uninstalled.',
  },
  { kind: PODS, subresource: 'status', verbs: ['patch'], use: 'PodController: what the base reports.' },
  {
    kind: { group: 'coordination.k8s.io', plural: 'leases' },
    verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'],
    namespace: NODE_LEASE_NAMESPACE,
    use: 'NodeLeaseController and MembershipController: the Leases of Nodes and of replicas. SharedInformer: one watch for both.',
  },
  {
    kind: { group: '', plural: 'configmaps' },
    verbs: ['get', 'create', 'patch'],
    namespace: NODE_LEASE_NAMESPACE,
    use: 'FirstContacts (UNKNOWN_MODULE_POLICY=remove): which bases were met, and the modules that they had then.',
  },
];

/** Events that the Virtual Kubelet records. */
export const VK_EVENTS: readonly EventDefinition[] = [
  { about: 'Pod', type: 'Normal', reasons: ['Pulling'], meaning: 'The base is installing a module.' },
  { about: 'Pod', type: 'Normal', reasons: ['Started'], meaning: 'The module runs.' },
  {
    about: 'Pod',
    type: 'Normal',
    reasons: ['Switching'],
    meaning: 'The controller asks the base to make this version the active one.',
  },
  {
    about: 'Pod',
    type: 'Normal',
    reasons: ['Killing'],
    meaning: 'The controller asks the base to uninstall a module.',
  },
  {
    about: 'Pod',
    type: 'Warning',
    reasons: ['Failed'],
    meaning: 'A module does not run; the message begins with the waiting reason.',
  },
  { about: 'Pod', type: 'Warning', reasons: ['BackOff'], meaning: 'It failed again and waits for the next attempt.' },
  {
    about: 'Pod',
    type: 'Warning',
    reasons: ['BaseRestarted'],
    meaning: 'The base process restarted, and the module is installed again.',
  },
  {
    about: 'Pod',
    type: 'Warning',
    reasons: ['BizDeactivated'],
    meaning: 'The base runs another version of the module. Normal when a newer version took over.',
  },
  {
    about: 'Pod',
    type: 'Normal',
    reasons: ['ModuleReplaced'],
    meaning: "A younger Pod's version replaces this one (`uninstallThenInstall`).",
  },
  {
    about: 'Pod',
    type: 'Warning',
    reasons: ['VersionInUse'],
    meaning: 'Another Pod has the module with another URL, args or env.',
  },
  {
    about: 'Pod',
    type: 'Warning',
    reasons: ['NodeAffinity', 'TaintToleration', 'OutOfpods', 'OutOfmemory'],
    meaning: 'The Pod was bound by `nodeName` and does not fit on the Node; it waits.',
  },
  {
    about: 'Pod',
    type: 'Warning',
    reasons: ['ModuleNameTaken'],
    meaning: 'The module name belongs to another namespace on this base.',
  },
  { about: 'Pod', type: 'Warning', reasons: ['ModuleShared'], meaning: "The Pod shares another Pod's installation." },
  {
    about: 'Pod',
    type: 'Warning',
    reasons: ['FieldsIgnored'],
    meaning:
      'Probes, hooks, `command` or init containers have no effect on a module. On the first Pod of each ReplicaSet or other owner only.',
  },
  { about: 'Pod', type: 'Warning', reasons: ['UnsupportedWorkload'], meaning: 'No container of the Pod is a module.' },
  { about: 'Pod', type: 'Warning', reasons: ['FailedKillPod'], meaning: 'The base refused to uninstall.' },
  { about: 'Pod', type: 'Warning', reasons: ['NodeNotReady'], meaning: 'The base is unreachable.' },
  { about: 'Node', type: 'Normal', reasons: ['Starting'], meaning: 'A base was found, and its Node was created.' },
  { about: 'Node', type: 'Normal', reasons: ['NodeReady'], meaning: 'The base is reachable again.' },
  { about: 'Node', type: 'Warning', reasons: ['NodeNotReady'], meaning: 'The base is unreachable.' },
  {
    about: 'Node',
    type: 'Warning',
    reasons: ['Rebooted'],
    meaning: 'The base was restarted; the message names the evidence.',
  },
  {
    about: 'Node',
    type: 'Warning',
    reasons: ['BaseRefused'],
    meaning:
      "The controller refused another base with this identity, over another tunnel or at another address, or with this base's address.",
  },
  { about: 'Node', type: 'Warning', reasons: ['UnknownModule'], meaning: 'The base has modules that no Pod asks for.' },
  {
    about: 'Node',
    type: 'Warning',
    reasons: ['MetaspacePressure'],
    meaning: '90 % of the maximum metaspace are committed.',
  },
  {
    about: 'Node',
    type: 'Warning',
    reasons: ['UnroutableAddress'],
    meaning:
      'The base reports an address that no Service can use: its Pods get no podIP. If it is in no network of bases, the Node shows no address either.',
  },
];
