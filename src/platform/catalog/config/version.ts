import { createHash } from 'node:crypto';
import { type StoredVersion, versionDigestOf } from './config-store.ts';

const DIGITS_OF_DIGEST = 8;
const DIGITS_OF_SOURCE = 16;

export interface VersionContent {
  /** Content, merged with that of the parents. */
  readonly content: string;
  /** Parts for single instances. */
  readonly instances: Readonly<Record<string, string>>;
  /** `{name}@{version}` of the parents. */
  readonly parents: readonly string[];
}

/** SHA-256 of what makes a version, in hex. The order of instances does not matter. */
export function digestOf({ content, instances, parents }: VersionContent): string {
  const parts = partsOf(instances);
  if (parts.length === 0) return versionDigestOf(content, parents);
  // The first line is an object, and a list where there are no parts.
  const first = JSON.stringify({ parents, parts });
  return createHash('sha256').update(`${first}\n`).update(content).digest('hex');
}

/** Id of a version that is new at a time: the time as `YYYYMMDDhhmmss` in UTC, and the start of its digest. */
export function versionIdOf(digest: string, milliseconds: number): string {
  const time = new Date(milliseconds).toISOString().replace(/\D/g, '').slice(0, 14);
  return `${time}-${digest.slice(0, DIGITS_OF_DIGEST)}`;
}

/** A version with the same content, parts and parents, if one is known. */
export function knownVersion<T extends StoredVersion>(versions: readonly T[], digest: string): T | undefined {
  return versions.find((one) => one.digest === digest);
}

/** Digest of a ModuleConfig's own part in a version. It changes with the object, never with its parents. */
export function sourceOf(own: {
  readonly content: string;
  readonly instances: Readonly<Record<string, string>>;
  readonly parent: string | undefined;
}): string {
  const text = JSON.stringify([own.parent ?? '', partsOf(own.instances)]);
  return createHash('sha256').update(`${text}\n`).update(own.content).digest('hex').slice(0, DIGITS_OF_SOURCE);
}

/** Size of a version, in bytes. */
export function sizeOf({ content, instances }: Pick<VersionContent, 'content' | 'instances'>): number {
  return [content, ...Object.values(instances)].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

function partsOf(instances: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(instances).sort(([a], [b]) => (a < b ? -1 : 1));
}
