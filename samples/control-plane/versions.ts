/** What the binaries are built from; `build/go.mod` names the same versions, and a unit test holds the two together. */
export const KUBERNETES_VERSION = 'v1.35.4';
export const ETCD_VERSION = '3.6.5';

export const COMPONENT_NAMES = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;
export type ComponentName = (typeof COMPONENT_NAMES)[number];
