import type { ControlPlaneOptions } from '../../samples/control-plane/control-plane.ts';

/** Kubernetes' own controllers make 20 to 50 requests a second by default; with hundreds of Pods one waits for them. */
const UNTHROTTLED = ['--kube-api-qps=1000', '--kube-api-burst=2000'];

export const MANY_PODS: ControlPlaneOptions = {
  extraArgs: {
    'kube-controller-manager': [...UNTHROTTLED, '--concurrent-deployment-syncs=20', '--concurrent-replicaset-syncs=20'],
    'kube-scheduler': UNTHROTTLED,
  },
};
