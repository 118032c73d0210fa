import type { Patch } from './client.ts';

/** The JSON merge patch (RFC 7386) that makes `before` equal to `after`: a field that only `before` has becomes null. */
export function mergePatchOf(before: object, after: object): Patch {
  const patch: Patch = {};
  const old = new Map<string, unknown>(Object.entries(before));
  for (const [key, value] of Object.entries(after)) {
    if (value === undefined) continue;
    const was = old.get(key);
    patch[key] = isPlain(value) && isPlain(was) ? mergePatchOf(was, value) : value;
    old.delete(key);
  }
  for (const key of old.keys()) patch[key] = null;
  return patch;
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
