import { canonicalJson, digestOf, isObject, type Json } from './json.ts';
import { type Conflict, type Fragment, Merge } from './merge.ts';
import { inOrderOf } from './order.ts';
import { isWithin, type Path, pathKey, pathText, valueAt, withValueAt } from './path.ts';
import type { Entry, TraitRecord } from './record.ts';
import { WORKLOAD } from './shape.ts';
import { withoutRequirement } from './terms.ts';

export interface ComposeInput {
  /** The workload as it is. */
  readonly live: Json;
  readonly record: TraitRecord;
  /** Of all traits of the workload, in the order in which they count: by priority, definition and name. */
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
 * The live workload, without what the last write put in, with the fragments. The order of what is there stays. A trait
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
  const heldEntries = record.entries.filter(isHeld);
  const { base, kept, parents } = takeOut(live, record, isHeld);
  const merge = new Merge(base, heldEntries);
  for (const fragment of fragments) if (!held.has(fragment.trait)) merge.add(fragment);
  const known = new Map(record.entries.map((entry) => [pathKey(entry.path), entry]));
  let object = merge.object;
  const entries = merge.record.entries.map((entry): Entry => {
    const before = known.get(pathKey(entry.path));
    const stored = before?.source === entry.source ? valueAt(live, WORKLOAD, entry.path) : undefined;
    if (before === undefined || stored === undefined || digestOf(stored) !== before.stored) return entry;
    // As the API server has completed it.
    object = withValueAt(object, WORKLOAD, entry.path, stored);
    return { ...entry, stored: before.stored };
  });
  const next = {
    entries: [...heldEntries, ...entries].sort((a, b) => (pathKey(a.path) < pathKey(b.path) ? -1 : 1)),
    parents: uniquePaths([...parents, ...merge.record.parents]),
  };
  object = inOrderOf(live, object, WORKLOAD);
  const isChanged = canonicalJson(object) !== canonicalJson(live);
  return { object, record: next, isChanged, conflicts: merge.conflicts, kept };
}

interface Base {
  readonly base: Json;
  readonly kept: readonly string[];
  /** Those that are still not empty. */
  readonly parents: readonly Path[];
}

/** The workload without what the last write put in, except what is held or what somebody has changed since. */
function takeOut(live: Json, { entries, parents }: TraitRecord, isHeld: (entry: Entry) => boolean): Base {
  const kept: string[] = [];
  let base = live;
  for (const entry of entries.toReversed()) {
    if (isHeld(entry)) continue;
    const { object, reason } = entry.requirement === undefined ? withoutValue(base, entry) : withoutTerm(base, entry);
    base = object;
    if (reason !== undefined) kept.push(reason);
  }
  const left: Path[] = [];
  for (const path of parents.toSorted((a, b) => b.length - a.length)) {
    const found = valueAt(base, WORKLOAD, path);
    const isNeeded = entries.some((entry) => isHeld(entry) && isWithin(entry.path, path));
    if (found !== undefined && isEmpty(found)) base = withValueAt(base, WORKLOAD, path, undefined);
    else if (found !== undefined && isNeeded) left.push(path);
  }
  return { base, kept, parents: left };
}

interface TakenOut {
  readonly object: Json;
  /** Why it stays. */
  readonly reason?: string;
}

function withoutValue(object: Json, { path, before, stored }: Entry): TakenOut {
  const found = valueAt(object, WORKLOAD, path);
  if (found === undefined) return { object };
  if (digestOf(found) === stored) return { object: withValueAt(object, WORKLOAD, path, before) };
  return { object, reason: `${pathText(path)}: somebody has changed it, so it stays` };
}

function withoutTerm(object: Json, { path, requirement, own = [] }: Entry): TakenOut {
  const list = path.slice(0, -1);
  const terms = valueAt(object, WORKLOAD, list);
  if (!Array.isArray(terms) || requirement === undefined) return { object };
  const left = withoutRequirement(terms as readonly Json[], requirement, own);
  if (left !== undefined) return { object: withValueAt(object, WORKLOAD, list, left) };
  return { object, reason: `${pathText(list)}: somebody has changed the terms, so the requirement stays` };
}

function isEmpty(value: Json): boolean {
  return Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0;
}

function uniquePaths(paths: readonly Path[]): Path[] {
  const unique = new Map(paths.map((path) => [pathKey(path), path]));
  return [...unique.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, path]) => path);
}
