import { type FieldType, podTypeOf } from './pod-types.ts';

/** A part of the structural schema of a CRD. */
export interface Structural {
  readonly properties?: Readonly<Record<string, Structural>>;
  readonly required?: readonly string[];
  readonly [keyword: string]: unknown;
}

function oneOf(...values: readonly string[]): Structural {
  return { enum: values };
}

/** The API server takes an empty text for none. */
function oneOrNone(...values: readonly string[]): Structural {
  return oneOf('', ...values);
}

const PORT = 65_535;

/** Rules of the API server about single values, by the ID of the field. Its OpenAPI document has none of them. */
const RULES: Readonly<Record<string, Structural>> = {
  'ContainerPort.containerPort': { minimum: 1, maximum: PORT },
  'ContainerPort.hostPort': { minimum: 0, maximum: PORT },
  'ContainerPort.protocol': oneOrNone('TCP', 'UDP', 'SCTP'),
  'Container.imagePullPolicy': oneOrNone('Always', 'IfNotPresent', 'Never'),
  'EnvVar.name': { pattern: '^[ -<>-~]+$' },
  'LabelSelectorRequirement.operator': oneOf('In', 'NotIn', 'Exists', 'DoesNotExist'),
  'NodeSelectorRequirement.operator': oneOf('In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'),
  'PodSpec.dnsPolicy': oneOrNone('ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None'),
  'PodSpec.terminationGracePeriodSeconds': { minimum: 0 },
  'PreferredSchedulingTerm.weight': { minimum: 1, maximum: 100 },
  'Toleration.effect': oneOrNone('NoSchedule', 'PreferNoSchedule', 'NoExecute'),
  'Toleration.operator': oneOrNone('Exists', 'Equal', 'Lt', 'Gt'),
  'TopologySpreadConstraint.maxSkew': { minimum: 1 },
  'TopologySpreadConstraint.whenUnsatisfiable': oneOf('DoNotSchedule', 'ScheduleAnyway'),
  'WeightedPodAffinityTerm.weight': { minimum: 1, maximum: 100 },
};

const OPEN = { 'x-kubernetes-preserve-unknown-fields': true };
const QUANTITY =
  '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$';

const VALUES: Readonly<Record<string, Structural>> = {
  string: { type: 'string' },
  boolean: { type: 'boolean' },
  int32: { type: 'integer', format: 'int32' },
  int64: { type: 'integer', format: 'int64' },
  // A type would refuse `cpu: 0.5`, which a Pod may have.
  quantity: { ...OPEN, pattern: QUANTITY },
  intOrString: { 'x-kubernetes-int-or-string': true },
  openObject: { type: 'object', ...OPEN },
};

const made = new Map<string, Structural>();

/**
 * The structural schema of a type of the API: the API server refuses values of another type, drops fields that are null,
 * and drops or refuses those that it does not name. Without defaults: a template stays as its author wrote it.
 */
export function podSchemaOf(name: string): Structural {
  const known = made.get(name);
  if (known) return known;
  const { isAtomic, fields } = podTypeOf(name);
  const all = [...fields.values()];
  const required = all.filter(({ isRequired }) => isRequired).map((field) => field.name);
  const schema = {
    type: 'object',
    properties: Object.fromEntries(
      all.map(({ name: field, id, type }) => [field, { ...schemaOf(type), ...RULES[id] }]),
    ),
    ...(required.length > 0 && { required }),
    ...(isAtomic && { 'x-kubernetes-map-type': 'atomic' }),
  };
  made.set(name, schema);
  return schema;
}

/** A schema with other rules for some fields, which come first. */
export function withFields(schema: Structural, fields: Readonly<Record<string, object>>): Structural {
  const { properties = {} } = schema;
  const others = Object.entries(properties).filter(([name]) => fields[name] === undefined);
  return { ...schema, properties: { ...(fields as Record<string, Structural>), ...Object.fromEntries(others) } };
}

function schemaOf(type: FieldType): Structural {
  switch (type.form) {
    case 'value':
      return valueSchemaOf(type.of);
    case 'object':
      return podSchemaOf(type.of);
    case 'map':
      return { type: 'object', additionalProperties: schemaOf(type.of) };
    case 'list':
      return { type: 'array', items: schemaOf(type.of), ...keysOf(type) };
  }
}

function valueSchemaOf(name: string): Structural {
  const schema = VALUES[name];
  if (schema === undefined) throw new RangeError(`no schema for a value of type ${name}`);
  return schema;
}

/** The keys of a list in a CRD are fields that each item has. The ports of a container may lack `protocol`. */
function keysOf({ of, keys }: FieldType & { readonly form: 'list' }): Structural {
  if (of.form !== 'object' || keys.length === 0) return {};
  const { fields } = podTypeOf(of.of);
  if (!keys.every((key) => fields.get(key)?.isRequired)) return {};
  return { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': keys };
}
