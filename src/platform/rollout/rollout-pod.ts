import type { ModulePod } from '../../kinds/module-pod.ts';
import type { NodeSelectorTerm, PodObject } from '../../kube/objects.ts';
import { ANNOTATION, REVISION_LABEL } from '../../labels.ts';
import type { CachedModuleDeployment, ModuleTemplate } from './module-deployment.ts';
import { digestOf, ownerReferenceOf } from './revision.ts';

/**
 * The name of a new Pod. Whoever decides from the same state finds the same name: a Pod that was created by a call
 * without an answer, or by another process, is not created a second time. `isTaken`: whether a Pod has a
 * name.
 */
export function podNameOf(
  { name, uid }: Pick<CachedModuleDeployment, 'name' | 'uid'>,
  hash: string,
  isTaken: (name: string) => boolean,
): string {
  for (let index = 0; ; index++) {
    const candidate = `${name}-${hash}-${digestOf(`${uid}/${hash}/${index}`, 5)}`;
    if (!isTaken(candidate)) return candidate;
  }
}

export interface PodParts {
  readonly name: string;
  readonly hash: string;
  readonly template: ModuleTemplate;
  /** On whose base it has to run. */
  readonly replaces: ModulePod | undefined;
}

export function buildPod(deployment: CachedModuleDeployment, { name, hash, template, replaces }: PodParts): PodObject {
  const { labels, annotations } = template.metadata;
  return {
    metadata: {
      name,
      namespace: deployment.namespace,
      labels: { ...labels, [REVISION_LABEL]: hash },
      annotations: { ...annotations, ...(replaces && { [ANNOTATION.replaces]: replaces.uid }) },
      ownerReferences: [ownerReferenceOf(deployment)],
    },
    spec: replaces?.nodeName === undefined ? template.spec : pinned(template.spec, replaces.nodeName),
  };
}

/** One of the terms has to match: each gets the Node, as in the Pods of a DaemonSet. */
function pinned(spec: PodObject['spec'], nodeName: string): PodObject['spec'] {
  const { affinity } = spec;
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const onNode = { key: 'metadata.name', operator: 'In', values: [nodeName] };
  const terms: readonly NodeSelectorTerm[] = required?.nodeSelectorTerms ?? [{}];
  const nodeSelectorTerms = terms.map((term) => ({ ...term, matchFields: [...(term.matchFields ?? []), onNode] }));
  return {
    ...spec,
    affinity: {
      ...affinity,
      nodeAffinity: {
        ...affinity?.nodeAffinity,
        requiredDuringSchedulingIgnoredDuringExecution: { ...required, nodeSelectorTerms },
      },
    },
  };
}
