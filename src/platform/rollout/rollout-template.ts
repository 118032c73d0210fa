import type { BaseSharing, PodModule } from '../../kinds/module-pod.ts';
import { matchesLabels } from '../../kube/placement.ts';

/** A template, and the bases that its Pods could be bound to, leaving aside what runs there. */
export interface PlannedTemplate {
  /** The hash of its revision. */
  readonly hash: string;
  readonly sharing: BaseSharing;
  readonly isUsable: (nodeName: string) => boolean;
  /** Names of all usable bases, the preferred ones first. Asked only where a Pod needs another base. */
  readonly bases: () => readonly string[];
}

/** Whether a base can never have both, even for a moment. */
export function cannotShare(pod: BaseSharing, other: BaseSharing): boolean {
  const isOnlyVersion = pod.isOnlyVersion || other.isOnlyVersion;
  return (
    pod.modules.some((module) => other.modules.some((another) => areApart(module, another, isOnlyVersion))) ||
    pod.exclusions.some((selector) => matchesLabels(selector, other.labels)) ||
    other.exclusions.some((selector) => matchesLabels(selector, pod.labels))
  );
}

function areApart(a: PodModule, b: PodModule, isOnlyVersion: boolean): boolean {
  return a.name === b.name && (a.version === b.version ? a.content !== b.content : isOnlyVersion);
}
