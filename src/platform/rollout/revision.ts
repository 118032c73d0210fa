import { createHash } from 'node:crypto';
import { normalForm, withoutNulls } from '../../kinds/pod-form.ts';
import { CONTROLLER_REVISIONS, MODULE_DEPLOYMENTS } from '../../kinds/workload-kinds.ts';
import { controllerOf, type KubeObject, type OwnerReference } from '../../kube/objects.ts';
import { apiVersionOf, collectionPathOf } from '../../kube/resource.ts';
import { type CachedObject, metaOf } from '../../kube/watch/informer-types.ts';
import { ANNOTATION, COMPONENT, COMPONENT_LABEL, REVISION_LABEL } from '../../labels.ts';
import { OWNER_INDEXERS, type WatchedKind } from '../../reconcile/informers.ts';
import type { CachedModuleDeployment, ModuleTemplate } from './module-deployment.ts';

/** Each template that a ModuleDeployment has had is a ControllerRevision, as those of a StatefulSet are. */

export interface RevisionObject extends KubeObject {
  readonly data?: { readonly spec?: { readonly template?: ModuleTemplate } };
  readonly revision: number;
}

/** The part of a ControllerRevision that the informer keeps. */
export interface Revision extends CachedObject {
  readonly hash: string;
  /** Counts up with each rollout; a template that comes back gets a new number. */
  readonly number: number;
  readonly controller: OwnerReference | undefined;
  readonly template: ModuleTemplate | undefined;
}

export const CACHED_REVISIONS: WatchedKind<Revision> = {
  kind: CONTROLLER_REVISIONS.kind,
  path: collectionPathOf(CONTROLLER_REVISIONS),
  labelSelector: () => `${COMPONENT_LABEL}=${COMPONENT.moduleDeployment}`,
  indexers: OWNER_INDEXERS,
  project: projectRevision,
};

export function projectRevision(object: KubeObject): Revision {
  const { metadata, data, revision } = object as RevisionObject;
  return {
    ...metaOf(object),
    hash: metadata.labels?.[REVISION_LABEL] ?? '',
    number: revision,
    controller: controllerOf(metadata),
    template: withoutNulls(data?.spec?.template),
  };
}

export function revisionNameOf({ name }: { readonly name: string }, hash: string): string {
  return `${name}-${hash}`;
}

export function buildRevision(deployment: CachedModuleDeployment, hash: string, number: number): RevisionObject {
  const { namespace, spec } = deployment;
  const { labels } = spec.template.metadata;
  return {
    metadata: {
      name: revisionNameOf(deployment, hash),
      namespace,
      labels: { ...labels, [COMPONENT_LABEL]: COMPONENT.moduleDeployment, [REVISION_LABEL]: hash },
      ownerReferences: [ownerReferenceOf(deployment)],
    },
    data: { spec: { template: spec.template } },
    revision: number,
  };
}

export function ownerReferenceOf({ name, uid }: CachedModuleDeployment): OwnerReference {
  const { kind } = MODULE_DEPLOYMENTS;
  const apiVersion = apiVersionOf(MODULE_DEPLOYMENTS);
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
}

/**
 * Stable over processes and versions, so of the template as it is. `collisions`: how often another template has had the
 * hash of this one.
 */
export function hashOf(template: ModuleTemplate, collisions = 0): string {
  return digestOf(`${canonicalJson(template)}/${collisions}`, 10);
}

/**
 * Whether Pods of the two templates are the same: an empty list, a field with its default, or one that the schema does
 * not have makes no difference. A revision that is found so keeps its hash, and no Pod is replaced.
 */
export function isSameTemplate(a: ModuleTemplate | undefined, b: ModuleTemplate | undefined): boolean {
  return a !== undefined && b !== undefined && (a === b || formOf(a) === formOf(b));
}

/** Objects of caches stay the same until they change. */
const forms = new WeakMap<ModuleTemplate, string>();

function formOf(template: ModuleTemplate): string {
  const known = forms.get(template);
  if (known !== undefined) return known;
  const { metadata, spec } = template;
  // A Pod has its own values of these.
  const { [REVISION_LABEL]: _hash, ...labels } = metadata?.labels ?? {};
  const { [ANNOTATION.replaces]: _uid, ...annotations } = metadata?.annotations ?? {};
  const form = canonicalJson({ labels, annotations, spec: normalForm('PodSpec', spec) });
  forms.set(template, form);
  return form;
}

/** A revision to go back to; or why there is none. */
export type Rollback =
  | { readonly target: Revision; readonly fault?: undefined }
  | { readonly target?: undefined; readonly fault: string };

/** `history`: oldest first. `template`: as it is now. `number`: 0 (default) = the previous one. */
export function rollbackOf(history: readonly Revision[], template: ModuleTemplate, number = 0): Rollback {
  const newest = history.at(-1);
  const current = isSameTemplate(newest?.template, template) ? newest?.hash : undefined;
  const target = history.findLast((revision) =>
    number === 0 ? revision.hash !== current : revision.number === number,
  );
  if (target?.template !== undefined) return { target };
  return { fault: number === 0 ? 'there is no earlier revision' : `there is no revision ${number}` };
}

/** Letters and digits of which no words can be made, as Kubernetes has them in names of Pods. */
const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';

/** `length` characters that are safe in a name. */
export function digestOf(text: string, length: number): string {
  const bytes = createHash('sha256').update(text).digest();
  return Array.from(bytes.subarray(0, length), (byte) => ALPHABET[byte % ALPHABET.length]).join('');
}

/** JSON with keys in order: the API server promises none. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => {
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  });
}
