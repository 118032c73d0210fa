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
