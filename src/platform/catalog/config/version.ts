import { createHash } from 'node:crypto';

const DIGITS_OF_DIGEST = 8;
const DIGITS_OF_SOURCE = 16;

/** A version of a configuration. */
export interface StoredVersion {
  /** `YYYYMMDDhhmmss-{first 8 hex of the digest}`, UTC. */
  readonly id: string;
  /** SHA-256 of what the version is made of, in hex. */
  readonly digest: string;
}

/** What readers of a version get. */
export interface StoredContent {
  /** Content, merged with that of the parents. */
  readonly content: string;
  /** Parts for single instances, by their names. */
  readonly instances: Readonly<Record<string, string>>;
}

export interface VersionContent extends StoredContent {
  /** `{name}@{version}` of the parents. */
  readonly parents: readonly string[];
}

/** SHA-256 of what makes a version, in hex. The order of instances does not matter. */
export function digestOf({ content, instances, parents }: VersionContent): string {
  const parts = partsOf(instances);
  // The first line is an object, and a list where there are no parts.
  const first = JSON.stringify(parts.length === 0 ? parents : { parents, parts });
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
export function sizeOf({ content, instances }: StoredContent): number {
  return [content, ...Object.values(instances)].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

function partsOf(instances: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(instances).sort(([a], [b]) => (a < b ? -1 : 1));
}
