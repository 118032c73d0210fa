import { digestOf, isObject, type Json } from './json.ts';
import { type Path, type Step, valueAt } from './path.ts';
import { WORKLOAD } from './shape.ts';
import type { OwnTerm, Requirement } from './terms.ts';

/** One thing that traits have put into a workload. */
export interface Entry {
  /** Names of the traits that want it, sorted. */
  readonly traits: readonly string[];
  readonly path: Path;
  /** The value that was there before. Undefined: none was. */
  readonly before?: Json | undefined;
  /** Requirement that stands in each node selector term. Undefined: the entry is a value. */
  readonly requirement?: Requirement | undefined;
  /** The terms that had the requirement before. */
  readonly own?: readonly OwnTerm[] | undefined;
  /** Digest of what the traits want. */
  readonly source: string;
  /** Digest of what the API server has stored, which may have defaults. */
  readonly stored: string;
}

/** What traits have put into a workload: enough to take it out again. */
export interface TraitRecord {
  readonly entries: readonly Entry[];
  /** Lists and maps that were not there before. */
  readonly parents: readonly Path[];
}

/** `stored` of an entry that the API server has not seen yet. */
export const NOT_STORED = '';
export const NO_RECORD: TraitRecord = { entries: [], parents: [] };
/** A record is an annotation of the workload, which may have 256 KiB of them. */
const MAX_RECORD_BYTES = 128 * 1024;

export function recordText({ entries, parents }: TraitRecord): string {
  return JSON.stringify({ entries, parents });
}

/** A record that somebody has written by hand may be anything; undefined: it is none. */
export function recordIn(text: string | undefined): TraitRecord | undefined {
  if (text === undefined) return NO_RECORD;
  if (text.length > MAX_RECORD_BYTES) return undefined;
  try {
    const found: unknown = JSON.parse(text);
    if (!isObject(found)) return undefined;
    const { entries, parents } = found as Partial<Record<keyof TraitRecord, unknown>>;
    if (!Array.isArray(entries) || !Array.isArray(parents)) return undefined;
    return entries.every(isEntry) && parents.every(isPath) ? { entries, parents } : undefined;
  } catch {
    return undefined;
  }
}

/** The record of a workload that the API server has completed. */
export function sealed(object: Json, { entries, parents }: TraitRecord): TraitRecord {
  const stored = entries.map((entry) =>
    entry.stored === NOT_STORED ? { ...entry, stored: storedDigest(object, entry) } : entry,
  );
  return { entries: stored, parents };
}

function storedDigest(object: Json, { path, requirement }: Pick<Entry, 'path' | 'requirement'>): string {
  return digestOf(requirement ?? valueAt(object, WORKLOAD, path) ?? null);
}

function isEntry(value: unknown): value is Entry {
  if (!isObject(value)) return false;
  const { traits, path, requirement, own, source, stored } = value as Partial<Record<keyof Entry, unknown>>;
  const areTexts = [source, stored].every((one) => typeof one === 'string');
  return (
    isTexts(traits) && isPath(path) && areTexts && (own === undefined || areOwnTerms(own)) && isRequirement(requirement)
  );
}

function isRequirement(value: unknown): boolean {
  if (value === undefined) return true;
  if (!isObject(value)) return false;
  return (value.list === 'matchExpressions' || value.list === 'matchFields') && value.expression !== undefined;
}

function areOwnTerms(value: unknown): boolean {
  const isOne = (one: unknown) => isObject(one) && Number.isInteger(one.place) && typeof one.digest === 'string';
  return Array.isArray(value) && value.every(isOne);
}

function isPath(value: unknown): value is Path {
  return Array.isArray(value) && value.length > 0 && value.every(isStep);
}

function isStep(value: unknown): value is Step {
  return typeof value === 'string' || (isObject(value) && typeof value.item === 'string');
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}
