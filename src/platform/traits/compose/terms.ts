import { canonicalJson, digestOf, isObject, type Json, type JsonObject, without } from './json.ts';

/**
 * Node selector terms: a Pod fits if one of them does, so what a trait requires stands in each of them. A term without
 * expressions fits no Node, and stays as it is: with one it would.
 */

type List = 'matchExpressions' | 'matchFields';
const LISTS: readonly List[] = ['matchExpressions', 'matchFields'];

/** Something that a trait requires of Nodes. */
export interface Requirement {
  readonly list: List;
  readonly expression: Json;
}

/** A term that had a requirement before a trait wanted it: its place, and a digest of it without what traits require. */
export interface OwnTerm {
  readonly place: number;
  readonly digest: string;
}

/** A requirement in a list of terms, with the terms that it has of its user. */
export interface Required {
  readonly requirement: Requirement;
  readonly own: readonly OwnTerm[];
}

/** The requirements of a fragment's terms; or why it has none. */
export function requirementsOf(terms: Json): readonly Requirement[] | { readonly fault: string } {
  if (!Array.isArray(terms) || terms.length !== 1 || !isObject(terms[0])) {
    return { fault: 'must have one term: a trait requires something, and offers no alternatives' };
  }
  const [term] = terms as unknown as readonly [JsonObject];
  const unknown = Object.keys(term).find((key) => !LISTS.includes(key as List));
  if (unknown !== undefined) return { fault: `has no field ${unknown}` };
  const found = LISTS.flatMap((list) => {
    const expressions = term[list];
    return Array.isArray(expressions) ? expressions.map((expression: Json) => ({ list, expression })) : [];
  });
  const sorted = found.sort((a, b) => (textOf(a) < textOf(b) ? -1 : 1));
  return sorted.length === 0 ? { fault: 'has no expressions' } : sorted;
}

export function textOf({ list, expression }: Requirement): string {
  return canonicalJson([list, expression]);
}

/** Terms with a requirement in each that has expressions. */
export function withRequirement(terms: readonly Json[], requirement: Requirement): readonly Json[] {
  if (terms.length === 0) return [{ [requirement.list]: [requirement.expression] }];
  return terms.map((term) => {
    if (!isObject(term) || isEmpty(term) || indexIn(term, requirement) !== -1) return term;
    return { ...term, [requirement.list]: [...expressionsOf(term, requirement.list), requirement.expression] };
  });
}

/** Places of the terms that have a requirement. */
export function placesWith(terms: readonly Json[], requirement: Requirement): number[] {
  return terms.flatMap((term, place) => (isObject(term) && indexIn(term, requirement) !== -1 ? [place] : []));
}

/** The terms at these places, as a record has them. `all`: what traits require in this list. */
export function ownTerms(terms: readonly Json[], places: readonly number[], all: readonly Requirement[]): OwnTerm[] {
  return places.map((place) => ({ place, digest: coreDigest(terms[place] ?? null, all) }));
}

export interface Removal {
  readonly terms: readonly Json[];
  /** Places of the terms that had a requirement before, by its text; of those that stay. */
  readonly places: ReadonlyMap<string, readonly number[]>;
  /** Texts of requirements of which nobody can say where they were before. */
  readonly unclear: readonly string[];
}

/**
 * Terms without some requirements, except where these were before. One of which nobody can say where it was stays: else
 * a Pod would fit where somebody forbade it. `staying`: texts of those that are left.
 */
export function withoutRequirements(
  terms: readonly Json[],
  all: readonly Required[],
  staying: ReadonlySet<string>,
): Removal {
  const requirements = all.map(({ requirement }) => requirement);
  const digests = terms.map((term) => coreDigest(term, requirements));
  const placed = all.map(({ requirement, own }) => ({
    requirement,
    text: textOf(requirement),
    places: placesOf(own, digests),
  }));
  const removed = placed.filter(({ text, places }) => places !== undefined && !staying.has(text));
  /** New place of each term; undefined: the term is gone. */
  const moved: (number | undefined)[] = [];
  const left: Json[] = [];
  for (const [place, term] of terms.entries()) {
    const rest = removed.reduce(
      (object, { requirement, places = [] }) => (places.includes(place) ? object : withoutOne(object, requirement)),
      term,
    );
    const isGone = isObject(rest) && rest !== term && isEmpty(rest);
    moved.push(isGone ? undefined : left.length);
    if (!isGone) left.push(rest);
  }
  const stay = placed.filter(({ text }) => staying.has(text));
  return {
    terms: left,
    places: new Map(stay.map(({ text, places = [] }) => [text, places.flatMap((place) => moved[place] ?? [])])),
    unclear: placed.filter(({ text, places }) => places === undefined && !staying.has(text)).map(({ text }) => text),
  };
}

/** Present places of own terms: their former ones, or, if terms were moved, those of the only terms that are like them. */
function placesOf(own: readonly OwnTerm[], digests: readonly string[]): number[] | undefined {
  const places: number[] = [];
  for (const { place, digest } of own) {
    const [only, ...more] = digests.flatMap((one, index) => (one === digest ? [index] : []));
    const found = digests[place] === digest ? place : more.length === 0 ? only : undefined;
    if (found === undefined) return undefined;
    places.push(found);
  }
  return places;
}

/** Digest of what a term has besides what traits require. */
function coreDigest(term: Json, all: readonly Requirement[]): string {
  const texts = new Set(all.map(textOf));
  if (!isObject(term)) return digestOf(term);
  return digestOf(
    LISTS.map((list) =>
      expressionsOf(term, list)
        .filter((expression) => !texts.has(textOf({ list, expression })))
        .map(canonicalJson)
        .sort(),
    ),
  );
}

function withoutOne(term: Json, { list, expression }: Requirement): Json {
  if (!isObject(term)) return term;
  const at = indexIn(term, { list, expression });
  if (at === -1) return term;
  const left = expressionsOf(term, list).toSpliced(at, 1);
  return left.length === 0 ? without(term, list) : { ...term, [list]: left };
}

function isEmpty(term: JsonObject): boolean {
  return LISTS.every((list) => expressionsOf(term, list).length === 0);
}

function expressionsOf(term: JsonObject, list: List): readonly Json[] {
  const expressions = term[list];
  return Array.isArray(expressions) ? (expressions as readonly Json[]) : [];
}

/** Place of the last one: that of a trait stands behind the others. */
function indexIn(term: JsonObject, { list, expression }: Requirement): number {
  const text = canonicalJson(expression);
  return expressionsOf(term, list).findLastIndex((one) => canonicalJson(one) === text);
}
