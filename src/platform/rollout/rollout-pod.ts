import type { ModulePod } from '../../kinds/module-pod.ts';
import type { NodeSelectorTerm, PodObject } from '../../kube/objects.ts';
import { ANNOTATION, COMPONENT, COMPONENT_LABEL, REVISION_LABEL } from '../../labels.ts';
import type { CachedModuleDeployment, ModuleTemplate } from './module-deployment.ts';
import { digestOf, ownerReferenceOf } from './revision.ts';
import { templateTypeFaultsOf } from './template-faults.ts';

/**
 * The names of new Pods, one for each of `hashes`. Whoever decides from the same state finds the same names: a Pod that
 * was created by a call without an answer, or by another process, is not created a second time. `isTaken`: whether a
 * Pod has a name.
 */
export function podNamesOf(
  { name, uid }: Pick<CachedModuleDeployment, 'name' | 'uid'>,
  hashes: readonly string[],
  isTaken: (name: string) => boolean,
): string[] {
  // Of each hash the index to go on with: thousands of names that begin at 0 would take minutes.
  const nextIndex = new Map<string, number>();
  const given = new Set<string>();
  return hashes.map((hash) => {
    for (let index = nextIndex.get(hash) ?? 0; ; index++) {
      const candidate = `${name}-${hash}-${digestOf(`${uid}/${hash}/${index}`, 5)}`;
      if (given.has(candidate) || isTaken(candidate)) continue;
      nextIndex.set(hash, index + 1);
      given.add(candidate);
      return candidate;
    }
  });
}

export interface PodParts {
  readonly name: string;
  readonly hash: string;
  readonly template: ModuleTemplate;
  /** The base where it has to run, and the UID of the Pod whose place it takes there; empty: it takes nobody's. */
  readonly replaces: Pick<ModulePod, 'uid' | 'nodeName'> | undefined;
}

/**
 * Why no Pod may be created from a template of a ModuleDeployment: a part of it has another type than it should have, or
 * the Pod would not match the ModuleDeployment's own selector, which would let go of it and create another one. Newer
 * schemas refuse both; an object that is stored may be older. Undefined where there is no fault.
 */
export function podFaultOf(
  { spec }: Pick<CachedModuleDeployment, 'spec'>,
  { hash, template }: Pick<PodParts, 'hash' | 'template'>,
): string | undefined {
  const [fault] = templateTypeFaultsOf(template);
  if (fault !== undefined) return fault;
  const labels = podLabelsOf(template, hash);
  const other = Object.entries(spec.selector.matchLabels).find(([key, value]) => labels[key] !== value);
  if (other === undefined) return undefined;
  const [key, value] = other;
  const has = labels[key] === undefined ? 'have no such label' : `have ${labels[key]}`;
  return `spec.selector.matchLabels: ${key} is ${value}, and its Pods ${has}: create another ModuleDeployment without it`;
}

function podLabelsOf(template: ModuleTemplate, hash: string): Record<string, string> {
  return { ...template.metadata.labels, [REVISION_LABEL]: hash };
}

export function buildPod(deployment: CachedModuleDeployment, { name, hash, template, replaces }: PodParts): PodObject {
  // Which Pod it replaces is not for the template to say.
  const { [ANNOTATION.replaces]: _, ...annotations } = template.metadata.annotations ?? {};
  return {
    metadata: {
      name,
      namespace: deployment.namespace,
      labels: podLabelsOf(template, hash),
      annotations: { ...annotations, ...(replaces && { [ANNOTATION.replaces]: replaces.uid }) },
      ownerReferences: [ownerReferenceOf(deployment)],
    },
    spec: onBases(replaces?.nodeName === undefined ? template.spec : pinned(template.spec, replaces.nodeName)),
  };
}

/** Only Nodes of bases have the label: without it the scheduler could make room for the Pod on another Node. */
function onBases(spec: PodObject['spec']): PodObject['spec'] {
  return { ...spec, nodeSelector: { ...spec.nodeSelector, [COMPONENT_LABEL]: COMPONENT.vnode } };
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
