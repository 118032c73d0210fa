import { canonicalJson, digestOf, isObject, type Json } from './json.ts';
import { type Conflict, type Fragment, Merge } from './merge.ts';
import { inOrderOf } from './order.ts';
import { isWithin, type Path, pathKey, pathText, valueAt, withValueAt } from './path.ts';
import { type Entry, NOT_STORED, type TraitRecord } from './record.ts';
import { WORKLOAD } from './shape.ts';
import { type OwnTerm, ownTerms, type Required, textOf, withoutRequirements } from './terms.ts';

export interface ComposeInput {
  /** The workload as it is. */
  readonly live: Json;
  readonly record: TraitRecord;
  /** Fragments of all traits of the workload, in the order in which they count: by priority, definition and name. */
  readonly fragments: readonly Fragment[];
}

export interface Composed {
  /** The workload as it should be, without the record. */
  readonly object: Json;
  /** What is put in, as it is before the API server has it. */
  readonly record: TraitRecord;
  /** Whether anything but the record changes. */
  readonly isChanged: boolean;
  readonly conflicts: readonly Conflict[];
  /** What stays although no trait wants it any more: somebody has changed it. */
  readonly kept: readonly string[];
}

/**
 * Composes the live workload, without the parts that the last write put in, with the fragments. The order of its parts stays. A trait
 * in a conflict keeps what it has, and gets nothing new; the others are not held up.
 */
export function composeTraits(input: ComposeInput): Composed {
  const held = new Set<string>();
  const conflicts = new Map<string, Conflict>();
  for (;;) {
    const found = attempt(input, held);
    const [size] = [held.size];
    for (const conflict of found.conflicts) {
      conflicts.set(`${conflict.trait} ${conflict.message}`, conflict);
      held.add(conflict.trait);
      if (conflict.other !== undefined) {
        held.add(conflict.other);
        const message = `${conflict.message.split(':')[0]}: trait ${conflict.trait} wants another value`;
        conflicts.set(`${conflict.other} ${message}`, { trait: conflict.other, message, other: conflict.trait });
      }
    }
    if (held.size === size) return { ...found, conflicts: [...conflicts.values()] };
  }
}

function attempt({ live, record, fragments }: ComposeInput, held: ReadonlySet<string>): Composed {
  const isHeld = ({ traits }: Entry): boolean => traits.some((trait) => held.has(trait));
  const { base, kept, parents, places } = takeOut(live, record, isHeld);
  const merge = new Merge(base, record.entries.filter(isHeld));
  for (const fragment of fragments) if (!held.has(fragment.trait)) merge.add(fragment);
  const known = new Map(record.entries.map((entry) => [pathKey(entry.path), entry]));
  let object = merge.object;
  const entries = merge.record.entries.map((entry): Entry => {
    const before = known.get(pathKey(entry.path));
    if (before?.source !== entry.source || before.stored === NOT_STORED) return entry;
    if (entry.requirement !== undefined) return { ...entry, stored: before.stored };
    const stored = valueAt(live, WORKLOAD, entry.path);
    if (stored === undefined || digestOf(stored) !== before.stored) return entry;
    // As the API server has completed it.
    object = withValueAt(object, WORKLOAD, entry.path, stored);
    return { ...entry, stored: before.stored };
  });
  object = inOrderOf(live, object, WORKLOAD);
  const all = [...record.entries.filter(isHeld), ...entries].sort((a, b) =>
    pathKey(a.path) < pathKey(b.path) ? -1 : 1,
  );
  const next = {
    entries: withOwnTerms(object, all, new Map([...places, ...merge.places])),
    parents: uniquePaths([...parents, ...merge.record.parents]),
  };
  const isChanged = canonicalJson(object) !== canonicalJson(live);
  return { object, record: next, isChanged, conflicts: merge.conflicts, kept };
}

interface Base {
  readonly base: Json;
  readonly kept: readonly string[];
  /** Those that are still not empty. */
  readonly parents: readonly Path[];
  /** Places of the terms that had a requirement before, by the key of its path; of those that are held. */
  readonly places: ReadonlyMap<string, readonly number[]>;
}

/** The workload without what the last write put in, except what is held or what somebody has changed since. */
function takeOut(live: Json, { entries, parents }: TraitRecord, isHeld: (entry: Entry) => boolean): Base {
  const { object, kept, places } = withoutTerms(live, entries, isHeld);
  let base = object;
  for (const entry of entries.toReversed()) {
    const { path, before, stored, requirement } = entry;
    const found = valueAt(base, WORKLOAD, path);
    if (isHeld(entry) || requirement !== undefined || found === undefined) continue;
    if (digestOf(found) === stored) base = withValueAt(base, WORKLOAD, path, before);
    else kept.push(`${pathText(path)}: somebody has changed it, so it stays`);
  }
  const left: Path[] = [];
  for (const path of parents.toSorted((a, b) => b.length - a.length)) {
    const found = valueAt(base, WORKLOAD, path);
    const isNeeded = entries.some((entry) => isHeld(entry) && isWithin(entry.path, path));
    if (found !== undefined && isEmpty(found)) base = withValueAt(base, WORKLOAD, path, undefined);
    else if (found !== undefined && isNeeded) left.push(path);
  }
  return { base, kept, parents: left, places };
}

/** The same for what stands in node selector terms: all of one list at once, since each changes the terms. */
function withoutTerms(live: Json, entries: readonly Entry[], isHeld: (entry: Entry) => boolean) {
  const kept: string[] = [];
  const places = new Map<string, readonly number[]>();
  let object = live;
  for (const [list, all] of requirementsByList(entries)) {
    const terms = valueAt(live, WORKLOAD, list);
    if (!Array.isArray(terms)) continue;
    const staying = new Set(all.filter(isHeld).map(({ requirement }) => textOf(requirement)));
    const removal = withoutRequirements(terms as readonly Json[], all, staying);
    object = withValueAt(object, WORKLOAD, list, removal.terms);
    for (const [text, found] of removal.places) places.set(pathKey([...list, { item: text }]), found);
    if (removal.unclear.length > 0) {
      kept.push(`${pathText(list)}: somebody has changed the terms, so what traits require stays`);
    }
  }
  return { object, kept, places };
}

type Requiring = Entry & Required;

function requirementsByList(entries: readonly Entry[]): (readonly [list: Path, entries: readonly Requiring[]])[] {
  const lists = new Map<string, { readonly list: Path; readonly all: Requiring[] }>();
  for (const entry of entries) {
    const { requirement, own = [], path } = entry;
    if (requirement === undefined) continue;
    const list = path.slice(0, -1);
    const found = lists.get(pathKey(list)) ?? { list, all: [] };
    found.all.push({ ...entry, requirement, own });
    lists.set(pathKey(list), found);
  }
  return [...lists.values()].map(({ list, all }) => [list, all]);
}

/** Entries with the terms that had their requirements before, as they are now. */
function withOwnTerms(
  object: Json,
  entries: readonly Entry[],
  places: ReadonlyMap<string, readonly number[]>,
): Entry[] {
  const own = new Map<string, readonly OwnTerm[]>();
  for (const [list, all] of requirementsByList(entries)) {
    const terms = valueAt(object, WORKLOAD, list);
    if (!Array.isArray(terms)) continue;
    const requirements = all.map(({ requirement }) => requirement);
    for (const { path } of all) {
      const found = places.get(pathKey(path));
      if (found !== undefined) own.set(pathKey(path), ownTerms(terms as readonly Json[], found, requirements));
    }
  }
  return entries.map((entry) => {
    const found = own.get(pathKey(entry.path));
    return found === undefined || found.length === 0 ? entry : { ...entry, own: found };
  });
}

function isEmpty(value: Json): boolean {
  return Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0;
}

function uniquePaths(paths: readonly Path[]): Path[] {
  const unique = new Map(paths.map((path) => [pathKey(path), path]));
  return [...unique.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, path]) => path);
}
