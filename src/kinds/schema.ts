import Type, { type TSchema } from 'typebox';

/**
 * The parts of which the kinds of this project are made. One schema is a TypeScript type (`Static`), the structural
 * schema of a CRD, and the table in the documents. TypeBox passes keywords of Kubernetes through as they are.
 */

/** A rule in CEL that the API server checks; `message` names the field and what to write. */
export interface CelRule {
  readonly rule: string;
  readonly message: string;
}

export function rules(...all: readonly CelRule[]): { 'x-kubernetes-validations': readonly CelRule[] } {
  return { 'x-kubernetes-validations': all };
}

export function enumOf<const T extends string>(values: readonly T[], options: object = {}) {
  return Type.Unsafe<T>({ type: 'string', enum: values, ...options });
}

/** Labels with values that a Pod may have. No schema can say what their keys may be. */
export function labelMap(options: object = {}) {
  return stringMap({ maxLength: MAX_LABEL_VALUE_LENGTH, pattern: LABEL_VALUE_PATTERN }, options);
}

export function annotationMap(options: object = {}) {
  return stringMap({}, options);
}

/** A map of strings; `value`: what their schema has besides. */
export function stringMap(value: object, options: object) {
  return Type.Unsafe<Record<string, string>>({
    type: 'object',
    additionalProperties: { type: 'string', ...value },
    ...options,
  });
}

const MAX_LABEL_VALUE_LENGTH = 63;
const LABEL_VALUE_PATTERN = '^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$';

/** A number of Pods, or a percentage of them. */
export function countOrPercent(options: object = {}) {
  return Type.Unsafe<number | string>({
    'x-kubernetes-int-or-string': true,
    anyOf: [{ type: 'integer' }, { type: 'string' }],
    pattern: '^(100|[1-9]?[0-9])%$',
    minimum: 0,
    ...options,
  });
}

/** A time as the API server writes it. */
export function time(options: object = {}) {
  return Type.Unsafe<string>({ type: 'string', format: 'date-time', ...options });
}

/** Schema in the form that a CRD holds: plain JSON, without the symbols of TypeBox. */
export function openApiOf(schema: TSchema): unknown {
  return JSON.parse(JSON.stringify(schema));
}
