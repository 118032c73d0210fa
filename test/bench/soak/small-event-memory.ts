import { LruMap } from '../../../src/lru-map.ts';

/**
 * Loaded into a controller of a short soak (`--import`). The only maps of this kind remember which Events were told,
 * 4,096 of a kind, some kilobytes for each Pod: they fill for half an hour, and until then nothing else can be seen
 * beside them. With so few they are full at once, and work as before.
 */
const CAPACITY = 32;

/** Instead of the map's own entries, and gone with it. */
const entriesOf = new WeakMap<object, Map<string, unknown>>();

LruMap.prototype.getOrCreate = function getOrCreate<V>(this: object, key: string, create: () => V): V {
  const entries = (entriesOf.get(this) ?? new Map<string, V>()) as Map<string, V>;
  entriesOf.set(this, entries);
  const value = entries.get(key) ?? create();
  entries.delete(key);
  entries.set(key, value);
  const [oldest] = entries.keys();
  if (entries.size > CAPACITY && oldest !== undefined) entries.delete(oldest);
  return value;
};
