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

/** Terms with a requirement in each, and digests of those that had it before. */
export function withRequirement(
  terms: readonly Json[],
  requirement: Requirement,
): { readonly terms: readonly Json[]; readonly own: readonly string[] } {
  if (terms.length === 0) return { terms: [{ [requirement.list]: [requirement.expression] }], own: [] };
  const own: string[] = [];
  const all = terms.map((term) => {
    if (!isObject(term) || isEmpty(term)) return term;
    if (indexIn(term, requirement) !== -1) {
      own.push(digestOf(term));
      return term;
    }
    return { ...term, [requirement.list]: [...expressionsOf(term, requirement.list), requirement.expression] };
  });
  return { terms: all, own };
}

/**
 * Terms without a requirement, except where it was before. Undefined: nobody can say in which of them it was, so that
 * nothing is removed: a Pod would fit where somebody forbade it.
 */
export function withoutRequirement(
  terms: readonly Json[],
  requirement: Requirement,
  own: readonly string[],
): readonly Json[] | undefined {
  const digests = terms.map((term) => digestOf(term));
  if (!own.every((one) => digests.includes(one))) return undefined;
  return terms.flatMap((term, index) => {
    const digest = digests[index] as string;
    if (!isObject(term) || own.includes(digest)) return [term];
    const at = indexIn(term, requirement);
    if (at === -1) return [term];
    const left = expressionsOf(term, requirement.list).filter((_one, place) => place !== at);
    const rest = left.length === 0 ? without(term, requirement.list) : { ...term, [requirement.list]: left };
    return isEmpty(rest) ? [] : [rest];
  });
}

function isEmpty(term: JsonObject): boolean {
  return LISTS.every((list) => expressionsOf(term, list).length === 0);
}

function expressionsOf(term: JsonObject, list: List): readonly Json[] {
  const expressions = term[list];
  return Array.isArray(expressions) ? (expressions as readonly Json[]) : [];
}

/** The last one: ours stands behind the others. */
function indexIn(term: JsonObject, { list, expression }: Requirement): number {
  const text = canonicalJson(expression);
  return expressionsOf(term, list).findLastIndex((one) => canonicalJson(one) === text);
}
