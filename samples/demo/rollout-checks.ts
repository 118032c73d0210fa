import { baseFaults, faultsOfPod, podsOf, sharedNodeFaults } from './checks.ts';
import type { BaseView, ClusterView, PodView } from './view.ts';

/** A ModuleDeployment as it should be seen, in the middle of a rollout or at its end. */
export interface ModuleRollout {
  /** Name of the ModuleDeployment, of its module, and value of its Pods' label `app`. */
  readonly name: string;
  /** How many Pods there are of each version, the newest first. */
  readonly versions: Readonly<Record<string, number>>;
  /** Of the condition Progressing. */
  readonly reason: string;
  /** As the API server answered the write of the demo: what was seen before it does not count. */
  readonly generation: number;
  /** Where its Pods are; undefined where the scheduler has chosen. */
  readonly nodes: ReadonlySet<string> | undefined;
}

/** Its status, its Pods and the bases agree; each Pod is Ready, and alone on its base. */
export function moduleRolloutFaults(
  view: ClusterView,
  bases: readonly BaseView[],
  wanted: ModuleRollout,
): readonly string[] {
  const pods = podsOf(view, wanted.name);
  const moduleOf = ({ modules }: PodView): string => modules[0] ?? '';
  return [
    ...statusFaults(view, wanted),
    ...versionFaults(pods.map(moduleOf), wanted),
    ...pods.flatMap((pod) => faultsOfPod(pod, view, moduleOf(pod))),
    ...pods
      .filter(({ node }) => wanted.nodes?.has(node) === false)
      .map((pod) => `pod ${pod.name}: is on ${pod.node || 'no node'}, where no Pod was before`),
    ...sharedNodeFaults(pods),
    ...baseFaults(bases, wanted.name, new Map(pods.map((pod) => [pod.node, moduleOf(pod)]))),
  ];
}

/** Neither it nor a Pod of it is left, and no base has its module. */
export function moduleRemovalFaults(view: ClusterView, bases: readonly BaseView[], name: string): readonly string[] {
  return [
    ...view.moduleDeployments.filter((entry) => entry.name === name).map(() => `md ${name}: still exists`),
    ...podsOf(view, name).map((pod) => `pod ${pod.name}: still exists, ${pod.status} on ${pod.node}`),
    ...baseFaults(bases, name, new Map()),
  ];
}

function statusFaults(view: ClusterView, { name, versions, reason, generation }: ModuleRollout): string[] {
  const status = view.moduleDeployments.find((entry) => entry.name === name);
  if (status === undefined) return [`md ${name}: does not exist`];
  if (status.observedGeneration < generation) return [`md ${name}: the change is not observed yet`];
  const counts = Object.values(versions);
  const [updated = 0] = counts;
  const replicas = counts.reduce((sum, count) => sum + count, 0);
  const texts = [
    [status.replicas, status.updated, status.available, status.reason],
    [replicas, updated, replicas, reason],
  ].map(
    ([all, some, available, why]) => `${all} replicas, ${some} updated, ${available} available, ${why || 'no reason'}`,
  );
  return texts[0] === texts[1] ? [] : [`md ${name}: ${texts[0]}; wanted are ${texts[1]}`];
}

function versionFaults(modules: readonly string[], { name, versions }: ModuleRollout): string[] {
  const wanted = Object.entries(versions).flatMap(([version, count]) => Array(count).fill(`${name}:${version}`));
  const [found, expected] = [modules.toSorted().join(' '), wanted.toSorted().join(' ')];
  return found === expected ? [] : [`md ${name}: its Pods are ${found || 'none'}, not ${expected}`];
}
