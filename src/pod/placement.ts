import type { NodeSelectorTerm, PodObject, ResourceContainer, Toleration } from '../kube/objects.ts';
import { quantityOf } from '../kube/quantity.ts';

type PodSpec = PodObject['spec'];

/** Which Nodes a Pod may run on, besides the room that it needs. */
export interface Placement {
  readonly nodeSelector: Readonly<Record<string, string>> | undefined;
  /** Of the required node affinity: one of them has to match. Undefined where there is none. */
  readonly terms: readonly NodeSelectorTerm[] | undefined;
  readonly tolerations: readonly Toleration[];
}

export function placementOf({ nodeSelector, affinity, tolerations }: PodSpec): Placement {
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return { nodeSelector, terms: required?.nodeSelectorTerms, tolerations: tolerations ?? [] };
}

/** The memory that the scheduler and a kubelet count for a Pod, in bytes. */
export function memoryRequestOf(spec: PodSpec): number {
  const ofPod = quantityOf(spec.resources?.requests?.memory);
  const overhead = quantityOf(spec.overhead?.memory) ?? 0;
  if (ofPod !== undefined) return ofPod + overhead;
  let sidecars = 0;
  let peak = 0;
  for (const container of spec.initContainers ?? []) {
    const request = requestOf(container);
    if (container.restartPolicy === 'Always') sidecars += request;
    peak = Math.max(peak, container.restartPolicy === 'Always' ? sidecars : sidecars + request);
  }
  const steady = spec.containers.reduce((sum, container) => sum + requestOf(container), sidecars);
  return Math.max(steady, peak) + overhead;
}

function requestOf({ resources }: ResourceContainer): number {
  return quantityOf(resources?.requests?.memory) ?? 0;
}
