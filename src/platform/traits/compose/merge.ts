import { canonical, canonicalJson, digestOf, isObject, type Json, type JsonObject } from './json.ts';
import { childShape, isWithin, type Path, pathKey, pathText, valueAt } from './path.ts';
import { type Entry, NOT_STORED, type TraitRecord } from './record.ts';
import { type Shape, WORKLOAD } from './shape.ts';
import { placesWith, type Requirement, requirementsOf, textOf, withRequirement } from './terms.ts';

/** What a trait wants of a workload. */
export interface Fragment {
  /** Name of the trait. */
  readonly trait: string;
  /** Parts of a workload: `metadata` with labels and annotations, and `spec`. */
  readonly wanted: JsonObject;
}

/** Something that a trait wants and that cannot be. */
export interface Conflict {
  readonly trait: string;
  /** Names the field, and what stands against it. */
  readonly message: string;
  /** The trait that wants something else. Undefined: the workload has it, or no trait may want it. */
  readonly other?: string | undefined;
}

type List = Extract<Shape, { form: 'list' }>;

interface Wish {
  traits: Set<string>;
  readonly path: Path;
  readonly before?: Json | undefined;
  readonly requirement?: Requirement;
  /** Places of the terms that had the requirement before. */
  readonly places?: readonly number[];
}

/** Merges fragments into a workload, one after the other. The parts of the workload stay, and those of traits come behind them. */
export class Merge {
  #object: Json;
  readonly #wishes = new Map<string, Wish>();
  readonly #parents = new Map<string, Path>();
  /** Entries of traits that are left as they are. */
  readonly #held: readonly Entry[];
  readonly conflicts: Conflict[] = [];

  constructor(object: Json, held: readonly Entry[]) {
    this.#object = object;
    this.#held = held;
  }

  get object(): Json {
    return this.#object;
  }

  add({ trait, wanted }: Fragment): void {
    this.#object = this.#merge(trait, WORKLOAD, this.#object, canonical(wanted), []) ?? this.#object;
  }

  /** What was put in, as it is before the API server has it. */
  get record(): TraitRecord {
    const entries = [...this.#wishes.values()].map(({ traits, path, requirement, ...rest }): Entry => {
      const source = digestOf(requirement ?? valueAt(this.#object, WORKLOAD, path) ?? null);
      return {
        traits: [...traits].sort(),
        path,
        ...(requirement && { requirement }),
        ...rest,
        source,
        stored: NOT_STORED,
      };
    });
    return { entries, parents: [...this.#parents.values()] };
  }

  /** Places of the terms that had a requirement before, by the key of its path. */
  get places(): ReadonlyMap<string, readonly number[]> {
    return new Map([...this.#wishes].flatMap(([key, { places }]) => (places === undefined ? [] : [[key, places]])));
  }

  /** Undefined: it cannot be, and nothing is there. */
  #merge(trait: string, shape: Shape, existing: Json | undefined, wanted: Json, path: Path): Json | undefined {
    switch (shape.form) {
      case 'value':
        return this.#value(trait, shape, existing, wanted, path);
      case 'list':
        return this.#list(trait, shape, existing, wanted, path);
      case 'terms':
        return this.#terms(trait, existing, wanted, path);
      default:
        return this.#fields(trait, shape, existing, wanted, path);
    }
  }

  #fields(trait: string, shape: Shape, existing: Json | undefined, wanted: Json, path: Path): Json | undefined {
    if (!isObject(wanted) || (existing !== undefined && !isObject(existing))) {
      return this.#refuse(trait, path, 'must be an object', existing);
    }
    if (existing === undefined) this.#created(path);
    const merged: Record<string, Json> = {};
    for (const [name, value] of Object.entries(existing ?? {})) define(merged, name, value);
    for (const [name, value] of Object.entries(wanted)) {
      const before = Object.hasOwn(merged, name) ? merged[name] : undefined;
      const after = this.#field(trait, shape, before, value, [...path, name]);
      if (after !== undefined) define(merged, name, after);
    }
    return merged;
  }

  #field(trait: string, shape: Shape, before: Json | undefined, value: Json, path: Path): Json | undefined {
    const name = String(path.at(-1));
    const child = childShape(shape, name);
    if (child === undefined) return this.#refuse(trait, path, 'is not a field that a trait may set', before);
    if (shape.form === 'map' && shape.isReserved(name)) {
      return this.#refuse(trait, path, 'belongs to the controllers', before);
    }
    if (value === null) return this.#refuse(trait, path, 'must not be null', before);
    return this.#merge(trait, child, before, value, path);
  }

  #value(
    trait: string,
    { normal, unset }: Extract<Shape, { form: 'value' }>,
    existing: Json | undefined,
    wanted: Json,
    path: Path,
  ): Json {
    if (existing === undefined) {
      this.#wish(trait, path);
      return wanted;
    }
    if (normal(existing) === normal(wanted)) {
      this.#share(trait, path);
      return existing;
    }
    const isDefault = unset !== undefined && normal(existing) === normal(unset);
    if (isDefault && this.#ownerOf(path) === undefined) {
      this.#wish(trait, path, { before: existing });
      return wanted;
    }
    return this.#conflict(trait, path, existing);
  }

  #list(trait: string, shape: List, existing: Json | undefined, wanted: Json, path: Path): Json | undefined {
    if (!Array.isArray(wanted) || (existing !== undefined && !Array.isArray(existing))) {
      return this.#refuse(trait, path, 'must be a list', existing);
    }
    if (existing === undefined) this.#created(path);
    const items = [...((existing ?? []) as readonly Json[])];
    const keyed = (wanted as readonly Json[]).map((item) => ({ item, key: shape.keyOf(item) }));
    for (const { item, key } of keyed.sort((a, b) => (a.key < b.key ? -1 : 1))) {
      const index = items.findIndex((one) => shape.keyOf(one) === key);
      const after = this.#item(trait, shape, items[index], item, [...path, { item: key }]);
      if (after !== undefined) items[index === -1 ? items.length : index] = after;
    }
    return items;
  }

  #item(trait: string, { of, item: normal }: List, before: Json | undefined, item: Json, path: Path): Json | undefined {
    if (before === undefined) {
      this.#wish(trait, path);
      return of === undefined ? item : this.#merge(trait, of, undefined, item, path);
    }
    if (of !== undefined) return this.#merge(trait, of, before, item, path);
    if (normal(before) !== normal(item)) return this.#conflict(trait, path, before);
    this.#share(trait, path);
    return before;
  }

  #terms(trait: string, existing: Json | undefined, wanted: Json, path: Path): Json | undefined {
    const requirements = requirementsOf(wanted);
    if ('fault' in requirements) return this.#refuse(trait, path, requirements.fault, existing);
    if (existing === undefined) this.#created(path);
    let terms = (existing ?? []) as readonly Json[];
    for (const requirement of requirements) {
      const at: Path = [...path, { item: textOf(requirement) }];
      const known = this.#wishes.get(pathKey(at));
      if (known !== undefined) {
        known.traits.add(trait);
        continue;
      }
      // What is held stands in each term already.
      if (this.#held.some((entry) => pathKey(entry.path) === pathKey(at))) continue;
      const places = placesWith(terms, requirement);
      this.#wishes.set(pathKey(at), { traits: new Set([trait]), path: at, requirement, places });
      terms = withRequirement(terms, requirement);
    }
    return terms;
  }

  /** A new thing, unless it is part of one that is new itself. */
  #wish(trait: string, path: Path, more: Pick<Wish, 'before'> = {}): void {
    const outer = this.#wishAround(path);
    if (outer === undefined) this.#wishes.set(pathKey(path), { traits: new Set([trait]), path, ...more });
    else outer.traits.add(trait);
  }

  /** Another trait wants it too. What the workload has itself is nobody's. */
  #share(trait: string, path: Path): void {
    this.#wishAround(path)?.traits.add(trait);
  }

  #created(path: Path): void {
    if (this.#wishAround(path) === undefined) this.#parents.set(pathKey(path), path);
  }

  #wishAround(path: Path): Wish | undefined {
    for (let length = path.length; length > 0; length--) {
      const found = this.#wishes.get(pathKey(path.slice(0, length)));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #ownerOf(path: Path): string | undefined {
    const [own] = this.#wishAround(path)?.traits ?? [];
    return own ?? this.#held.find((entry) => isWithin(path, entry.path))?.traits[0];
  }

  #conflict(trait: string, path: Path, existing: Json): Json {
    const other = this.#ownerOf(path);
    const who = other === undefined || other === trait ? 'the workload has' : `trait ${other} wants`;
    this.conflicts.push({
      trait,
      message: `${pathText(path)}: ${who} ${shortened(existing)}`,
      ...(other !== trait && other !== undefined && { other }),
    });
    return existing;
  }

  #refuse(trait: string, path: Path, why: string, existing: Json | undefined): Json | undefined {
    this.conflicts.push({ trait, message: `${pathText(path)}: ${why}` });
    return existing;
  }
}

/** A key may be named as something that every object has. */
function define(object: Record<string, Json>, key: string, value: Json): void {
  Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
}

const MAX_SHOWN = 80;

function shortened(value: Json): string {
  const text = canonicalJson(value);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
