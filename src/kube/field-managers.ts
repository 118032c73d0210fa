import type { KubeObject } from './objects.ts';

/** An entry of `metadata.managedFields`, as far as it is read. */
export interface FieldManager {
  readonly manager?: string;
  readonly operation?: string;
  readonly subresource?: string;
  readonly time?: string;
}

/** The managers of an object's fields. */
export function managersOf({ metadata }: KubeObject): readonly FieldManager[] {
  return (metadata.managedFields ?? []) as readonly FieldManager[];
}

/**
 * The managers of the fields without one that has updated some, so that an object can be written with them: its fields
 * are then nobody's, and the next server-side apply of a user is no conflict. Undefined where it owns none, or nobody
 * else owns any.
 */
export function managersWithout(object: KubeObject, fieldManager: string): readonly FieldManager[] | undefined {
  const all = managersOf(object);
  const others = all.filter(
    ({ manager, operation, subresource }) =>
      manager !== fieldManager || operation !== 'Update' || subresource !== undefined,
  );
  return others.length === 0 || others.length === all.length ? undefined : others;
}
