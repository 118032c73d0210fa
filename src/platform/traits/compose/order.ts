import { canonicalJson, isObject, type Json } from './json.ts';
import { childShape } from './path.ts';
import type { Shape } from './shape.ts';

/** A value whose keys and items have the order that they have in another one; those that only it has come behind. */
export function inOrderOf(live: Json, value: Json, shape: Shape | undefined): Json {
  if (shape?.form === 'terms') return termsInOrder(live, value);
  if (Array.isArray(live) && Array.isArray(value)) return listInOrder(live, value, shape);
  if (!isObject(live) || !isObject(value)) return value;
  const keys = [...new Set([...Object.keys(live), ...Object.keys(value)])].filter((key) => Object.hasOwn(value, key));
  return Object.fromEntries(
    keys.map((key) => {
      const [before, after] = [live[key], value[key] as Json];
      const isKnown = Object.hasOwn(live, key) && before !== undefined;
      return [key, isKnown ? inOrderOf(before, after, childShape(shape, key)) : after];
    }),
  );
}

function listInOrder(live: readonly Json[], value: readonly Json[], shape: Shape | undefined): Json {
  if (shape?.form !== 'list') return value;
  const { keyOf, of } = shape;
  return placed(live, value, keyOf).map(({ item, place }) => {
    const before = live[place];
    return before === undefined ? item : inOrderOf(before, item, of);
  });
}

interface Placed {
  readonly item: Json;
  /** Index in the former list; its length for an item that is new. */
  readonly place: number;
}

/** Items in the places that items with the same keys had, the first with a key in the first place. */
function placed(live: readonly Json[], value: readonly Json[], keyOf: (item: Json) => string): Placed[] {
  const places = new Map<string, number[]>();
  for (const [index, item] of live.entries()) {
    const key = keyOf(item);
    places.set(key, [...(places.get(key) ?? []), index]);
  }
  const all = value.map((item) => ({ item, place: places.get(keyOf(item))?.shift() ?? live.length }));
  // New items stay in their order.
  return all.sort((a, b) => a.place - b.place);
}

/** The terms stay in their places, and the expressions of each in theirs. */
function termsInOrder(live: Json, value: Json): Json {
  if (!Array.isArray(live) || !Array.isArray(value)) return value;
  return (value as readonly Json[]).map((term, index) => {
    const before = (live as readonly Json[])[index];
    if (!isObject(term) || !isObject(before)) return term;
    const entries = Object.entries(term).map(([list, expressions]) => {
      const own = before[list];
      if (!Array.isArray(own) || !Array.isArray(expressions)) return [list, expressions] as const;
      const all = placed(own as readonly Json[], expressions as readonly Json[], canonicalJson);
      return [list, all.map(({ item }) => item)] as const;
    });
    return Object.fromEntries(entries);
  });
}
