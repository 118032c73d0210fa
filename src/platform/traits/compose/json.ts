import { createHash } from 'node:crypto';

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** JSON with keys in order: equal values have equal texts. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => (isObject(part) ? inKeyOrder(part) : part));
}

/** The same value with the keys of all objects in order. */
export function canonical(value: Json): Json {
  return JSON.parse(canonicalJson(value)) as Json;
}

function inKeyOrder(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));
}

const DIGEST_LENGTH = 16;

/** Digest of a value, whatever the order of its keys. */
export function digestOf(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex').slice(0, DIGEST_LENGTH);
}

/** A value without that key. */
export function without(object: JsonObject, key: string): JsonObject {
  const { [key]: _removed, ...rest } = object;
  return rest;
}
