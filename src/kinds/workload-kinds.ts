import type { ResourceKind } from '../kube/resource.ts';
import { PLATFORM_GROUP } from '../labels.ts';

/** Kinds of workloads that have Pods of modules, besides Deployments. */

export const MODULE_DEPLOYMENTS: ResourceKind = {
  group: PLATFORM_GROUP,
  version: 'v1alpha1',
  kind: 'ModuleDeployment',
  plural: 'moduledeployments',
  isNamespaced: true,
};

export const STATEFUL_SETS: ResourceKind = {
  group: 'apps',
  version: 'v1',
  kind: 'StatefulSet',
  plural: 'statefulsets',
  isNamespaced: true,
};

export const DAEMON_SETS: ResourceKind = {
  group: 'apps',
  version: 'v1',
  kind: 'DaemonSet',
  plural: 'daemonsets',
  isNamespaced: true,
};

/** Kinds of their histories. */

export const CONTROLLER_REVISIONS: ResourceKind = {
  group: 'apps',
  version: 'v1',
  kind: 'ControllerRevision',
  plural: 'controllerrevisions',
  isNamespaced: true,
};

export const REPLICA_SETS: ResourceKind = {
  group: 'apps',
  version: 'v1',
  kind: 'ReplicaSet',
  plural: 'replicasets',
  isNamespaced: true,
};
