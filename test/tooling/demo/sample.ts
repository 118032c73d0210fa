import type { BaseView, ClusterView, ModuleDeploymentView, NodeView, PodView } from '../../../samples/demo/view.ts';

export function node(number: number, part: Partial<NodeView> = {}): NodeView {
  return {
    name: `vnode.base-${number}`,
    status: 'Ready',
    isReady: true,
    ip: `198.51.100.${number}`,
    tunnel: 'MQTT',
    labels: {
      'virtual-kubelet.koupleless.io/component': 'vnode',
      'virtual-kubelet.koupleless.io/env': 'dev',
      'vnode.koupleless.io/name': 'base',
      'vnode.koupleless.io/tunnel': 'mqtt_tunnel_provider',
    },
    taints: ['schedule.koupleless.io/virtual-node=True:NoExecute', 'schedule.koupleless.io/node-env=dev:NoExecute'],
    ...part,
  };
}

/** A copy of `shop`, Ready on the base with this number. */
export function pod(number: number, part: Partial<PodView> = {}): PodView {
  return {
    namespace: 'default',
    name: `shop-${number}`,
    labels: { app: 'shop' },
    modules: ['shop:1.0.0'],
    status: 'Running',
    message: '',
    isReady: true,
    readyText: '1/1',
    node: `vnode.base-${number}`,
    ip: `198.51.100.${number}`,
    ...part,
  };
}

export function base(number: number, ...modules: string[]): BaseView {
  return { identity: `base-${number}`, tunnel: 'mqtt', ip: `198.51.100.${number}`, modules };
}

/** `orders`, rolled out whole with four Pods. */
export function moduleDeployment(part: Partial<ModuleDeploymentView> = {}): ModuleDeploymentView {
  return {
    name: 'orders',
    wanted: 4,
    observedGeneration: 1,
    replicas: 4,
    updated: 4,
    available: 4,
    revision: 1,
    reason: 'RolloutComplete',
    ...part,
  };
}

export function cluster(part: Partial<ClusterView> = {}): ClusterView {
  return { nodes: [node(1), node(2)], pods: [], deployments: [], moduleDeployments: [], ...part };
}
