import type { PodTypes } from '../../src/kinds/pod-types.ts';

/** The part of an OpenAPI v3 document that is read. */
export interface OpenApi {
  readonly components: { readonly schemas: Readonly<Record<string, OpenApiSchema>> };
}

interface OpenApiSchema {
  readonly $ref?: string;
  readonly allOf?: readonly OpenApiSchema[];
  readonly type?: string;
  readonly format?: string;
  readonly items?: OpenApiSchema;
  readonly properties?: Readonly<Record<string, OpenApiSchema>>;
  readonly additionalProperties?: OpenApiSchema;
  readonly required?: readonly string[];
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-map-type'?: string;
}

const ROOT = 'io.k8s.api.core.v1.PodSpec';

/** Types that are a value in JSON, by their name in the document. */
const VALUES: Readonly<Record<string, string>> = {
  'io.k8s.apimachinery.pkg.api.resource.Quantity': 'quantity',
  'io.k8s.apimachinery.pkg.util.intstr.IntOrString': 'intOrString',
  'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta': 'openObject',
};

/** The types of a Pod's spec, from the document that an API server serves at `/openapi/v3/apis/apps/v1`. */
export function podTypesOf({ components: { schemas } }: OpenApi): PodTypes {
  const types: Record<string, Record<string, string>> = {};
  const longNames = new Map<string, string>();
  const add = (longName: string): string => {
    const name = longName.slice(longName.lastIndexOf('.') + 1);
    const known = longNames.get(name);
    if (known !== undefined && known !== longName) throw new Error(`${known} and ${longName} have one short name`);
    if (known !== undefined) return name;
    longNames.set(name, longName);
    const { properties = {}, required = [], ...schema } = schemas[longName] ?? {};
    const fields: Record<string, string> = {};
    types[name] = fields;
    if (schema['x-kubernetes-map-type'] === 'atomic') fields['@'] = 'atomic';
    for (const [field, value] of Object.entries(properties))
      fields[field] = `${textOf(value, `${name}.${field}`)}${required.includes(field) ? '!' : ''}`;
    return name;
  };
  const textOf = (schema: OpenApiSchema, where: string): string => {
    const reference = (schema.$ref ?? schema.allOf?.[0]?.$ref)?.split('/').at(-1);
    if (reference !== undefined) return VALUES[reference] ?? add(reference);
    // A set, too, is changed as a whole: there is one, of exit codes.
    const { 'x-kubernetes-list-map-keys': keys = [] } = schema;
    if (schema.items !== undefined) return `${textOf(schema.items, where)}[${keys.join(',')}]`;
    if (schema.additionalProperties !== undefined) return `map<${textOf(schema.additionalProperties, where)}>`;
    return valueTextOf(schema, where);
  };
  add(ROOT);
  return Object.fromEntries(Object.entries(types).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function valueTextOf({ type, format = 'int64' }: OpenApiSchema, where: string): string {
  if (type === 'integer') return format;
  if (type === 'string' || type === 'boolean') return type;
  throw new Error(`${where} has the type ${type}, which has no form here`);
}

/** The text of `src/kinds/pod-types.json`. */
export function podTypesText(types: PodTypes): string {
  return `${JSON.stringify(types, null, 2)}\n`;
}
