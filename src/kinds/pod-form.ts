import { type Field, type FieldType, podTypeOf } from './pod-types.ts';

/** What a Pod template says, whatever its author wrote besides. */

/** What a field means that is not there, by its ID: as the API server completes a Pod. */
const DEFAULTS: Readonly<Record<string, unknown>> = {
  'PodSpec.restartPolicy': 'Always',
  'PodSpec.dnsPolicy': 'ClusterFirst',
  'PodSpec.schedulerName': 'default-scheduler',
  'PodSpec.terminationGracePeriodSeconds': 30,
  'PodSpec.enableServiceLinks': true,
  'PodSpec.hostNetwork': false,
  'PodSpec.hostPID': false,
  'PodSpec.hostIPC': false,
  // Of an image that is an address.
  'Container.imagePullPolicy': 'IfNotPresent',
  'Container.terminationMessagePath': '/dev/termination-log',
  'Container.terminationMessagePolicy': 'File',
  'Container.stdin': false,
  'Container.stdinOnce': false,
  'Container.tty': false,
  'Container.workingDir': '',
  'ContainerPort.hostIP': '',
  'ContainerPort.hostPort': 0,
  'ContainerPort.name': '',
  'ContainerPort.protocol': 'TCP',
  'EnvVar.value': '',
  'HTTPGetAction.path': '/',
  'HTTPGetAction.scheme': 'HTTP',
  'ObjectFieldSelector.apiVersion': 'v1',
  'Probe.failureThreshold': 3,
  'Probe.periodSeconds': 10,
  'Probe.successThreshold': 1,
  'Probe.timeoutSeconds': 1,
  'Toleration.effect': '',
  'Toleration.key': '',
  'Toleration.operator': '',
  'Toleration.value': '',
};

/** Objects that say nothing when they are empty. Others do: an empty `emptyDir` is a volume. */
const EMPTY = new Set(['Container.resources', 'PodSpec.securityContext']);

type Json = Readonly<Record<string, unknown>>;

/**
 * A value of a type without what changes nothing: fields that the type does not have, empty lists and maps, nulls, and
 * fields with their default. A part of another type than it should have stays as it is.
 */
export function normalForm(typeName: string, value: unknown): unknown {
  if (!isObject(value)) return value;
  const { fields } = podTypeOf(typeName);
  const entries = Object.entries(value).flatMap(([name, part]) => {
    const field = fields.get(name);
    const normal = field && normalOf(field.type, part);
    return field === undefined || isUnset(field, normal) ? [] : [[name, normal] as const];
  });
  return Object.fromEntries(entries);
}

/** What a field means that is not there, by its ID; undefined: nothing, or nobody knows. */
export function defaultOf(fieldId: string): unknown {
  return Object.hasOwn(DEFAULTS, fieldId) ? DEFAULTS[fieldId] : undefined;
}

/** A value of any type in the form of `normalForm`. */
export function normalOf(type: FieldType, value: unknown): unknown {
  if (value === null || value === undefined) return undefined;
  switch (type.form) {
    case 'value':
      return type.of === 'quantity' && typeof value === 'number' ? String(value) : value;
    case 'object':
      return normalForm(type.of, value);
    case 'list':
      if (!Array.isArray(value)) return value;
      // A null stays: without it, the others would have other places.
      return value.length === 0 ? undefined : value.map((item: unknown) => normalOf(type.of, item) ?? null);
    case 'map': {
      if (!isObject(value)) return value;
      const entries = Object.entries(value).map(([key, item]) => [key, normalOf(type.of, item) ?? null]);
      return entries.length === 0 ? undefined : Object.fromEntries(entries);
    }
  }
}

function isUnset({ id }: Field, value: unknown): boolean {
  if (value === undefined || (Object.hasOwn(DEFAULTS, id) && DEFAULTS[id] === value)) return true;
  return EMPTY.has(id) && isObject(value) && Object.keys(value).length === 0;
}

/** The same without fields that are null. The value itself where it has none. */
export function withoutNulls<T>(value: T): T {
  if (Array.isArray(value)) {
    const items = value.map((item: unknown) => withoutNulls(item));
    return items.some((item, index) => item !== value[index]) ? (items as T) : value;
  }
  if (!isObject(value)) return value;
  const entries = Object.entries(value);
  const kept = entries.filter(([, part]) => part !== null).map(([name, part]) => [name, withoutNulls(part)] as const);
  const isSame = kept.length === entries.length && kept.every(([name, part]) => part === value[name]);
  return isSame ? value : (Object.fromEntries(kept) as T);
}

/** Parts of a value that are of another type than the field has, such as `spec.tolerations: must be a list`. */
export function typeFaultsOf(typeName: string, value: unknown, path: string): string[] {
  return faultsOf({ form: 'object', of: typeName }, value, path);
}

function faultsOf(type: FieldType, value: unknown, path: string): string[] {
  switch (type.form) {
    case 'value':
      return VALUES[type.of]?.is(value) ? [] : [`${path}: must be ${VALUES[type.of]?.words}`];
    case 'list':
      if (!Array.isArray(value)) return [`${path}: must be a list`];
      return value.flatMap((item: unknown, index) => faultsOf(type.of, item, `${path}[${index}]`));
    case 'map':
      if (!isObject(value)) return [`${path}: must be an object`];
      return Object.entries(value).flatMap(([key, item]) => faultsOf(type.of, item, `${path}[${JSON.stringify(key)}]`));
    case 'object': {
      if (!isObject(value)) return [`${path}: must be an object`];
      return [...podTypeOf(type.of).fields.values()].flatMap((field) => {
        const part = value[field.name];
        if (part !== undefined && part !== null) return faultsOf(field.type, part, `${path}.${field.name}`);
        return field.isRequired ? [`${path}.${field.name}: is required`] : [];
      });
    }
  }
}

const VALUES: Readonly<Record<string, { readonly is: (value: unknown) => boolean; readonly words: string }>> = {
  string: { is: (value) => typeof value === 'string', words: 'a text' },
  boolean: { is: (value) => typeof value === 'boolean', words: 'true or false' },
  int32: { is: Number.isInteger, words: 'a whole number' },
  int64: { is: Number.isInteger, words: 'a whole number' },
  quantity: { is: isTextOrNumber, words: 'a quantity' },
  intOrString: { is: isTextOrNumber, words: 'a number or a text' },
  openObject: { is: isObject, words: 'an object' },
};

function isTextOrNumber(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number';
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
