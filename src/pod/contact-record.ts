import { phaseOf } from '../queue/phase.ts';
import type { ModuleKey } from '../tunnel/module.ts';

/** The modules of a base that are not removed as unknown. `all`: too many to record, or the record cannot be read. */
export type Kept = ReadonlySet<ModuleKey> | 'all';

/** The identities of an ENV are spread over this many ConfigMaps. Another number makes all bases count as never met. */
export const SHARDS = 8;

/** Limits of one shard. etcd takes 1.5 MiB, and the managed fields of 1,500 keys take another 100 KiB. */
export const SHARD_LIMITS = { entries: 1_500, bytes: 400 * 1024 };

const MAX_KEPT = 200;
const MAX_ENTRY_BYTES = 8 * 1024;

/** One identity that was met. */
export interface Entry {
  readonly kept: Kept;
  /** Wall clock of the first contact, ms; 0 where it cannot be read. Orders evictions and decides nothing else. */
  readonly metAt: number;
  /** False for text that is no entry: all modules of the base are kept then. */
  readonly isReadable: boolean;
}

/** What a base needs of its record. */
export interface Demand {
  readonly identity: string;
  /** Recorded where the identity has no entry. */
  readonly kept: Kept;
  /** Claimed by Pods: they leave an entry that has them. */
  readonly claimed: ReadonlySet<ModuleKey>;
}

export interface ShardPlan {
  /** `data` of a merge patch, with null for what is removed; empty when there is nothing to write. */
  readonly data: Readonly<Record<string, string | null>>;
  /** Entries by identity, as they are once `data` is written; undefined where the shard has no room for one. */
  readonly entries: ReadonlyMap<string, Entry | undefined>;
}

export interface ShardPlanOptions {
  /** Wall clock, RFC 3339. */
  readonly now: string;
  /** Whether the identity has a base or a Node now: its entry is not evicted. */
  readonly isInUse: (identity: string) => boolean;
  readonly limits?: { readonly entries: number; readonly bytes: number };
}

export function shardOf(identity: string): number {
  return Math.floor(phaseOf(identity) * SHARDS);
}

/** What a base has at first contact; `all` where it is too much to be recorded. */
export function keptOf(keys: readonly ModuleKey[]): Kept {
  return isRecordable(keys) ? new Set(keys) : 'all';
}

export function encodeEntry(kept: Kept, metAt: string): string {
  const keys = kept === 'all' ? kept : [...kept].sort();
  return JSON.stringify({ metAt, kept: keys === 'all' || isRecordable(keys) ? keys : 'all' });
}

/** Never throws: what cannot be read keeps all. */
export function decodeEntry(text: unknown): Entry {
  const { kept, metAt } = fieldsOf(text);
  const time = typeof metAt === 'string' ? Date.parse(metAt) : 0;
  const known = { metAt: Number.isFinite(time) ? time : 0 };
  if (kept === 'all') return { ...known, kept, isReadable: true };
  const isList = Array.isArray(kept) && kept.every((key) => typeof key === 'string') && isRecordable(kept);
  return isList ? { ...known, kept: new Set(kept), isReadable: true } : { ...known, kept: 'all', isReadable: false };
}

/**
 * Decides what to write so that each demand has its entry. An identity that has an entry was met before: only what
 * was claimed leaves it. A full shard evicts identities that are not in use, those that keep nothing first, the
 * oldest first: an evicted identity counts as never met when it returns, so nothing of it is removed then.
 */
export function planShard(
  stored: ReadonlyMap<string, unknown>,
  demands: readonly Demand[],
  { now, isInUse, limits = SHARD_LIMITS }: ShardPlanOptions,
): ShardPlan {
  const data = new Map<string, string | null>();
  const entries = new Map<string, Entry | undefined>();
  const room = new Room(stored, limits, (identity) => !entries.has(identity) && !isInUse(identity));
  for (const { identity, claimed } of demands) {
    if (!stored.has(identity)) continue;
    const entry = withoutClaimed(decodeEntry(stored.get(identity)), claimed);
    entries.set(identity, entry.next);
    if (entry.isChanged) data.set(identity, encodeEntry(entry.next.kept, timeOf(entry.next, now)));
  }
  const fresh = demands.filter(({ identity }) => !stored.has(identity));
  for (const { identity } of fresh) entries.set(identity, undefined);
  for (const { identity, kept } of fresh) {
    const text = encodeEntry(kept, now);
    const evicted = room.make(identity, text);
    if (evicted === undefined) continue;
    for (const other of evicted) data.set(other, null);
    data.set(identity, text);
    entries.set(identity, decodeEntry(text));
  }
  return { data: Object.fromEntries(data), entries };
}

function withoutClaimed(entry: Entry, claimed: ReadonlySet<ModuleKey>): { next: Entry; isChanged: boolean } {
  if (entry.kept === 'all') return { next: entry, isChanged: false };
  const kept = new Set([...entry.kept].filter((key) => !claimed.has(key)));
  return { next: { ...entry, kept }, isChanged: kept.size < entry.kept.size };
}

function timeOf({ metAt }: Entry, now: string): string {
  return metAt > 0 ? new Date(metAt).toISOString() : now;
}

/** What a shard has room for. */
class Room {
  readonly #stored: ReadonlyMap<string, unknown>;
  readonly #limits: { readonly entries: number; readonly bytes: number };
  readonly #mayEvict: (identity: string) => boolean;
  /** The first to go is the last; sorted when the first is needed. */
  #candidates: string[] | undefined;
  #entries: number;
  #bytes = 0;

  constructor(
    stored: ReadonlyMap<string, unknown>,
    limits: { readonly entries: number; readonly bytes: number },
    mayEvict: (identity: string) => boolean,
  ) {
    this.#stored = stored;
    this.#limits = limits;
    this.#mayEvict = mayEvict;
    this.#entries = stored.size;
    for (const [identity, text] of stored) this.#bytes += bytesOf(identity, text);
  }

  /** Takes room for an entry. Returns which entries go for it; undefined when all of them are not enough. */
  make(identity: string, text: string): string[] | undefined {
    const candidates = this.#overLimit(1, bytesOf(identity, text)) ? this.#evictable() : [];
    const evicted: string[] = [];
    let freed = 0;
    while (this.#overLimit(1 - evicted.length, bytesOf(identity, text) - freed)) {
      const other = candidates.at(-1 - evicted.length);
      if (other === undefined) return undefined;
      evicted.push(other);
      freed += bytesOf(other, this.#stored.get(other));
    }
    candidates.length -= evicted.length;
    this.#entries += 1 - evicted.length;
    this.#bytes += bytesOf(identity, text) - freed;
    return evicted;
  }

  #overLimit(moreEntries: number, moreBytes: number): boolean {
    return this.#entries + moreEntries > this.#limits.entries || this.#bytes + moreBytes > this.#limits.bytes;
  }

  #evictable(): string[] {
    this.#candidates ??= [...this.#stored]
      .filter(([identity]) => this.#mayEvict(identity))
      .map(([identity, text]) => ({ identity, entry: decodeEntry(text) }))
      .sort((a, b) => rankOf(b.entry) - rankOf(a.entry) || b.entry.metAt - a.entry.metAt)
      .map(({ identity }) => identity);
    return this.#candidates;
  }
}

function rankOf({ kept }: Entry): number {
  return kept !== 'all' && kept.size === 0 ? 0 : 1;
}

function bytesOf(identity: string, text: unknown): number {
  return Buffer.byteLength(identity) + Buffer.byteLength(String(text));
}

function isRecordable(keys: readonly ModuleKey[]): boolean {
  return keys.length <= MAX_KEPT && Buffer.byteLength(JSON.stringify(keys)) <= MAX_ENTRY_BYTES;
}

function fieldsOf(text: unknown): { readonly kept?: unknown; readonly metAt?: unknown } {
  if (typeof text !== 'string' || text.length > 2 * MAX_ENTRY_BYTES) return {};
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}
