import { COMPONENT, COMPONENT_LABEL, ENV_LABEL, nodeNameOf, TAINT, VNODE_LABEL } from '../../src/labels.ts';
import type { BaseView, ClusterView, NodeView, PodView } from './view.ts';

/*
 * Each check says in words what is not yet as it should be; an empty list means that all is seen. The texts are what
 * a person reads when a step fails.
 */

export interface Rollout {
  /** Name of the Deployment, of its module, and value of its Pods' label `app`. */
  readonly name: string;
  readonly version: string;
  readonly replicas: number;
  /** Of the Deployment, as the API server answered our write: what was seen before it does not count. */
  readonly generation: number;
}

/** Every base is a Ready Node with the labels, taints and the address that it should have. */
export function nodeFaults(view: ClusterView, bases: readonly BaseView[], env: string): string[] {
  return bases.flatMap((base) => {
    const name = nodeNameOf(base.identity);
    const node = view.nodes.find((candidate) => candidate.name === name);
    return node ? faultsOfNode(node, base, env) : [`node ${name}: does not exist`];
  });
}

function faultsOfNode(node: NodeView, base: BaseView, env: string): string[] {
  const labels = {
    [COMPONENT_LABEL]: COMPONENT.vnode,
    [ENV_LABEL]: env,
    [VNODE_LABEL.name]: 'base',
    [VNODE_LABEL.tunnel]: `${base.tunnel}_tunnel_provider`,
  };
  const taints = [`${TAINT.virtualNode}=True:NoExecute`, `${TAINT.env}=${env}:NoExecute`];
  const faults = [
    ...(node.isReady ? [] : [`is ${node.status}`]),
    ...(node.ip === base.ip ? [] : [`InternalIP is '${node.ip}', the base has ${base.ip}`]),
    ...Object.entries(labels).flatMap(([key, value]) =>
      node.labels[key] === value ? [] : [`label ${key} is '${node.labels[key] ?? ''}', not '${value}'`],
    ),
    ...taints.filter((taint) => !node.taints.includes(taint)).map((taint) => `taint ${taint} is missing`),
    ...node.taints.filter((taint) => !taints.includes(taint)).map((taint) => `still has taint ${taint}`),
  ];
  return faults.map((fault) => `node ${node.name}: ${fault}`);
}

/** The Deployment has the wanted Pods and no other, each Ready on a base of its own; the bases agree. */
export function rolloutFaults(view: ClusterView, bases: readonly BaseView[], wanted: Rollout): string[] {
  const pods = podsOf(view, wanted.name);
  return [
    ...deploymentFaults(view, wanted),
    ...(pods.length === wanted.replicas ? [] : [`deployment ${wanted.name}: ${pods.length} Pods exist`]),
    ...pods.flatMap((pod) => faultsOfPod(pod, view, moduleOf(wanted))),
    ...sharedNodeFaults(pods),
    ...baseFaults(bases, wanted.name, new Map(pods.map((pod) => [pod.node, moduleOf(wanted)]))),
  ];
}

/** No Pod of it is left, and no base has its module. */
export function removalFaults(view: ClusterView, bases: readonly BaseView[], name: string): string[] {
  return [
    ...view.deployments.filter((entry) => entry.name === name).map(() => `deployment ${name}: still exists`),
    ...podsOf(view, name).map((pod) => `pod ${pod.name}: still exists, ${pod.status} on ${pod.node}`),
    ...baseFaults(bases, name, new Map()),
  ];
}

function deploymentFaults(view: ClusterView, { name, replicas, generation }: Rollout): string[] {
  const deployment = view.deployments.find((entry) => entry.name === name);
  if (deployment === undefined) return [`deployment ${name}: does not exist`];
  const { observedGeneration, updated, ready } = deployment;
  if (observedGeneration < generation) return [`deployment ${name}: the change is not observed yet`];
  if (updated === replicas && ready === replicas && deployment.replicas === replicas) return [];
  const counts = `${deployment.replicas} replicas, ${updated} updated, ${ready} ready`;
  return [`deployment ${name}: ${counts}; wanted are ${replicas}`];
}

/** `module`: name and version of the module that the Pod should be. */
export function faultsOfPod(pod: PodView, view: ClusterView, module: string): string[] {
  const where = `pod ${pod.name}: ${pod.modules.join(' ')} on ${pod.node || 'no node'}`;
  if (!pod.modules.includes(module)) return [`${where} is of another version, ${pod.status}`];
  if (!pod.isReady || pod.status !== 'Running') {
    return [`${where} is ${pod.status}, ${pod.readyText} ready${pod.message && `: ${pod.message}`}`];
  }
  const node = view.nodes.find(({ name }) => name === pod.node);
  if (node === undefined) return [`${where}: there is no such Node`];
  return node.ip === pod.ip ? [] : [`${where}: its IP is '${pod.ip}', that of the Node ${node.ip}`];
}

export function sharedNodeFaults(pods: readonly PodView[]): string[] {
  const nodes = pods.map((pod) => pod.node).filter((node) => node !== '');
  const shared = new Set(nodes.filter((node, index) => nodes.indexOf(node) !== index));
  return [...shared].map((node) => `node ${node}: more than one copy of the module is on it`);
}

/** `wanted`: name and version of the module by Node; the module `name` should be on no other base. */
export function baseFaults(bases: readonly BaseView[], name: string, wanted: ReadonlyMap<string, string>): string[] {
  return bases.flatMap((base) => {
    const module = wanted.get(nodeNameOf(base.identity));
    const expected = module === undefined ? [] : [`${module} ACTIVATED`];
    const found = base.modules.filter((entry) => entry.startsWith(`${name}:`));
    if (found.join() === expected.join()) return [];
    return [`base ${base.identity}: has ${found.join(', ') || 'no module'}, not ${expected.join() || 'none'}`];
  });
}

export function podsOf(view: ClusterView, name: string): PodView[] {
  return view.pods.filter((pod) => pod.labels.app === name);
}

function moduleOf({ name, version }: Rollout): string {
  return `${name}:${version}`;
}
