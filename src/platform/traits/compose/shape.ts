import { defaultOf, normalOf } from '../../../kinds/pod-form.ts';
import { type Field, type FieldType, podTypeOf } from '../../../kinds/pod-types.ts';
import { canonicalJson, isObject, type Json } from './json.ts';

/** How the value of a field is merged with that of a fragment. */
export type Shape =
  /** Field by field. */
  | { readonly form: 'object'; readonly field: (name: string) => Shape | undefined }
  /** Key by key; each value as a whole. */
  | { readonly form: 'map'; readonly isReserved: (key: string) => boolean }
  /** Item by item; `of`: items with the same key are merged. Undefined: they have to be equal. */
  | {
      readonly form: 'list';
      readonly keyOf: (item: Json) => string;
      readonly of: Shape | undefined;
      readonly item: Normal;
    }
  /** `nodeSelectorTerms`: of several terms one is enough, so what is required is added to each. */
  | { readonly form: 'terms' }
  /** One value. `unset`: what it means when it is not there; undefined: nobody knows. */
  | { readonly form: 'value'; readonly normal: Normal; readonly unset: Json | undefined };

/** A value without what changes nothing: equal values have equal texts. */
type Normal = (value: Json) => string;

/** Keys that the controllers write themselves, and that decide what an object is. */
const RESERVED = /^(?:[^/]*\.)?koupleless\.io\//;
/** Keys with this prefix that a trait may set all the same: they are wishes of a user. */
const FREE = new Set(['virtual-kubelet.koupleless.io/env']);

/** Types whose fields are merged one by one. All others are one value: two sources of a volume would be none. */
const MERGED = new Set([
  'PodSpec',
  'Container',
  'Affinity',
  'NodeAffinity',
  'PodAffinity',
  'PodAntiAffinity',
  'NodeSelector',
  'PodSecurityContext',
  'SecurityContext',
  'ResourceRequirements',
  'PodDNSConfig',
]);

/** Lists that the API has as one value, and to which an item can be added nevertheless: more of them allow or forbid more. */
const SETS = new Set([
  'PodSpec.tolerations',
  'PodSpec.readinessGates',
  'Container.envFrom',
  'NodeAffinity.preferredDuringSchedulingIgnoredDuringExecution',
  'PodAffinity.preferredDuringSchedulingIgnoredDuringExecution',
  'PodAffinity.requiredDuringSchedulingIgnoredDuringExecution',
  'PodAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution',
  'PodAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution',
]);

const TERMS = 'NodeSelector.nodeSelectorTerms';

const ANY: Shape = { form: 'value', normal: canonicalJson, unset: undefined };
const LABELS: Shape = { form: 'map', isReserved: (key) => RESERVED.test(key) && !FREE.has(key) };
const METADATA = objectOf({ labels: LABELS, annotations: LABELS });
/** A field that is not here cannot be changed, or decides which Pods are whose. */
const SPEC = {
  replicas: ANY,
  peer: ANY,
  minReadySeconds: ANY,
  revisionHistoryLimit: ANY,
  progressDeadlineSeconds: ANY,
  strategy: ANY,
  updateStrategy: ANY,
} as const;

/** What a fragment may have of a workload. */
export const WORKLOAD: Shape = objectOf({
  metadata: METADATA,
  spec: objectOf({
    ...SPEC,
    template: objectOf({ metadata: METADATA, spec: typeShape('PodSpec') }),
  }),
});

function objectOf(fields: Readonly<Record<string, Shape>>): Shape {
  const known = new Map(Object.entries(fields));
  return { form: 'object', field: (name) => known.get(name) };
}

function typeShape(name: string): Shape {
  return {
    form: 'object',
    field: (field) => {
      const found = podTypeOf(name).fields.get(field);
      return found && fieldShape(found);
    },
  };
}

function fieldShape({ id, type }: Field): Shape {
  if (id === TERMS) return { form: 'terms' };
  const normal = normalIn(type);
  const value: Shape = { form: 'value', normal, unset: defaultOf(id) as Json | undefined };
  switch (type.form) {
    case 'object':
      return MERGED.has(type.of) ? typeShape(type.of) : value;
    case 'map':
      return { form: 'map', isReserved: () => false };
    case 'value':
      return value;
    case 'list': {
      const { of, keys } = type;
      const item = normalIn(of);
      if (keys.length > 0) {
        const merged = of.form === 'object' && MERGED.has(of.of) ? typeShape(of.of) : undefined;
        return { form: 'list', keyOf: (one) => keyText(of, keys, one), of: merged, item };
      }
      return SETS.has(id) ? { form: 'list', keyOf: item, of: undefined, item } : value;
    }
  }
}

function normalIn(type: FieldType): Normal {
  return (value) => canonicalJson(normalOf(type, value) ?? null);
}

/** A key that is not there has its default: the protocol of a port. */
function keyText(type: FieldType, keys: readonly string[], item: Json): string {
  if (!isObject(item)) return canonicalJson(item);
  return canonicalJson(
    keys.map((key) => item[key] ?? defaultOf(`${type.form === 'object' ? type.of : ''}.${key}`) ?? ''),
  );
}
