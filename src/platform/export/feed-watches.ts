import type { Clock, Timer } from '../../clock.ts';
import type { Metrics } from '../../metrics.ts';
import type { ExportTable } from './export-table.ts';
import { type FeedScope, scopeKey } from './feed-access.ts';

/** Receiver of the changes; the part of a response of Node that is used. */
export interface WatchStream {
  write(text: string | Uint8Array): unknown;
  end(): unknown;
  destroy(): unknown;
  /** Bytes that the other side has not taken yet. */
  readonly writableLength: number;
}

export interface FeedWatchesOptions {
  readonly table: ExportTable;
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, 'exportWatches'>;
}

/** Who watches. */
export interface Watcher {
  /** Asked from time to time; false ends the watch. */
  readonly isAllowed: () => Promise<boolean>;
  /** It has a token of the group, which others cannot make. */
  readonly isBalancer: boolean;
}

interface Watch extends Watcher {
  readonly stream: WatchStream;
  readonly channel: Channel;
  readonly pool: WatchPool;
  /** Unread bytes at the last look, and all that was written since then. */
  unreadBytes: number;
  /** Nothing may be written any more: that would be an error which ends the process. */
  isEnded: boolean;
}

/** All watches of one scope see the same. */
interface Channel {
  readonly scope: FeedScope;
  /** What they have seen, as JSON by key. */
  readonly sent: Map<string, string>;
  readonly watches: Set<Watch>;
}

/**
 * Maximum number of watches of balancers, and of all others together: whoever has a token of the cluster keeps no
 * balancer out.
 */
export const MAX_WATCHES = 500;
const MIB = 1024 * 1024;
/** A watch that leaves more than this unread is cut off: its balancer comes again, and gets everything. */
const MAX_UNREAD_BYTES = 8 * MIB;
/**
 * Maximum of the unread bytes of all balancers together. Unread bytes take two to three times as much memory: they are
 * kept encrypted too.
 */
const MAX_UNREAD_BYTES_OF_BALANCERS = 128 * MIB;
/**
 * Maximum of the unread bytes of all others together: a tenant takes no room of balancers, and cannot fill the memory
 * of the process.
 */
const MAX_UNREAD_BYTES_OF_OTHERS = 32 * MIB;
/** Shorter than the idle timeouts of what may stand between: an empty line is sent, and rights are looked at again. */
export const BEAT_MS = 15_000;
const SYNCED = '{"type":"SYNCED"}\n';

/** The watches of balancers, or of all others: they share a number of bytes that may be unread. */
class WatchPool {
  readonly #maxUnreadBytes: number;
  readonly #watches = new Set<Watch>();
  /** The sum of all watches. */
  #unreadBytes = 0;

  constructor(maxUnreadBytes: number) {
    this.#maxUnreadBytes = maxUnreadBytes;
  }

  get watches(): ReadonlySet<Watch> {
    return this.#watches;
  }

  add(watch: Watch): void {
    this.#watches.add(watch);
  }

  /** Returns false if it was not there. */
  delete(watch: Watch): boolean {
    if (!this.#watches.delete(watch)) return false;
    this.#unreadBytes -= watch.unreadBytes;
    return true;
  }

  write(watch: Watch, text: string | Uint8Array): void {
    watch.stream.write(text);
    watch.unreadBytes += text.length;
    this.#unreadBytes += text.length;
  }

  /** Returns the unread bytes of one watch as they are now. */
  look(watch: Watch): number {
    const { writableLength } = watch.stream;
    this.#unreadBytes += writableLength - watch.unreadBytes;
    watch.unreadBytes = writableLength;
    return writableLength;
  }

  /**
   * Number of bytes by which the bound is passed if `bytes` more are written; 0 or less: they have room. Looks at all
   * watches only if they seem to have none.
   */
  excess(bytes: number): number {
    const excess = this.#unreadBytes + bytes - this.#maxUnreadBytes;
    if (excess <= 0) return excess;
    for (const watch of this.#watches) this.look(watch);
    return this.#unreadBytes + bytes - this.#maxUnreadBytes;
  }

  /**
   * The watches to cut before `changes` are written, as many as are needed: those with the most unread bytes, and of
   * equal ones the newest, so that nobody cuts older watches by opening more.
   */
  surplus(changes: ReadonlyMap<Watch, string>): Watch[] {
    const lengthOf = (watch: Watch): number => changes.get(watch)?.length ?? 0;
    let bytes = 0;
    for (const [{ pool }, { length }] of changes) if (pool === this) bytes += length;
    let excess = this.excess(bytes);
    if (excess <= 0) return [];
    return [...this.#watches]
      .reverse()
      .sort((a, b) => b.unreadBytes - a.unreadBytes)
      .filter((watch) => {
        const freed = watch.unreadBytes + lengthOf(watch);
        if (excess <= 0 || freed === 0) return false;
        excess -= freed;
        return true;
      });
  }
}

/**
 * Streams of changes, one JSON object in a line: `{"type":"ADDED|MODIFIED|DELETED","object":…}`. A stream begins with
 * everything that there is as ADDED, and `{"type":"SYNCED"}` after that.
 */
export class FeedWatches {
  readonly #options: FeedWatchesOptions;
  readonly #channels = new Map<string, Channel>();
  readonly #balancers = new WatchPool(MAX_UNREAD_BYTES_OF_BALANCERS);
  readonly #others = new WatchPool(MAX_UNREAD_BYTES_OF_OTHERS);
  #beat: Timer | undefined;

  constructor(options: FeedWatchesOptions) {
    this.#options = options;
    options.table.addListener((keys) => this.#onChange(keys));
    options.metrics.exportWatches.set(0);
  }

  /**
   * Undefined: there are too many, or too much would be unread. Else `stream` gets everything from now on; the answer
   * ends that.
   */
  open(scope: FeedScope, stream: WatchStream, watcher: Watcher): (() => void) | undefined {
    const pool = watcher.isBalancer ? this.#balancers : this.#others;
    if (pool.watches.size >= MAX_WATCHES) return undefined;
    const name = scopeKey(scope);
    const channel = this.#channels.get(name) ?? newChannel(this.#options.table, scope);
    if (pool.excess(firstLength(channel)) > 0) return undefined;
    this.#channels.set(name, channel);
    const watch: Watch = { stream, channel, pool, unreadBytes: 0, isEnded: false, ...watcher };
    channel.watches.add(watch);
    pool.add(watch);
    this.#count();
    const lines = [...channel.sent.values()].map((json) => lineOf('ADDED', json));
    // An unread string would take half as much memory again as these bytes.
    pool.write(watch, Buffer.from(`${lines.join('')}${SYNCED}`));
    return () => this.#close(watch);
  }

  #close(watch: Watch): void {
    if (!watch.pool.delete(watch)) return;
    const { scope, watches } = watch.channel;
    watches.delete(watch);
    this.#count();
    if (watches.size === 0) this.#channels.delete(scopeKey(scope));
  }

  /** Its unread bytes count no longer, although the stream closes a little later. */
  #cut(watch: Watch): void {
    watch.stream.destroy();
    this.#close(watch);
  }

  /** What was written can still be read, until the next beat. */
  #end(watch: Watch): void {
    watch.isEnded = true;
    watch.stream.end();
  }

  #count(): void {
    const count = this.#balancers.watches.size + this.#others.watches.size;
    this.#options.metrics.exportWatches.set(count);
    if (count === 0) {
      this.#beat?.cancel();
      this.#beat = undefined;
    } else {
      this.#beat ??= this.#options.clock.setTimer(() => this.#onBeat(), BEAT_MS);
    }
  }

  #onChange(keys: ReadonlySet<string>): void {
    const changes = new Map<Watch, string>();
    for (const { scope, sent, watches } of this.#channels.values()) {
      const lines = [...keys].map((key) => changeOf(sent, key, jsonIn(this.#options.table, scope, key))).join('');
      if (lines !== '') for (const watch of watches) if (this.#isOpen(watch)) changes.set(watch, lines);
    }
    for (const pool of [this.#balancers, this.#others]) {
      for (const watch of pool.surplus(changes)) {
        changes.delete(watch);
        this.#cut(watch);
      }
    }
    for (const [watch, lines] of changes) watch.pool.write(watch, lines);
  }

  /** Whether more may be written to it. Cuts it if it leaves too much unread. */
  #isOpen(watch: Watch): boolean {
    if (watch.isEnded) return false;
    if (watch.pool.look(watch) <= MAX_UNREAD_BYTES) return true;
    this.#cut(watch);
    return false;
  }

  #onBeat(): void {
    this.#beat = this.#options.clock.setTimer(() => this.#onBeat(), BEAT_MS);
    for (const watch of [...this.#balancers.watches, ...this.#others.watches]) {
      if (watch.isEnded) this.#cut(watch);
      else if (this.#isOpen(watch)) this.#onBeatOf(watch);
    }
  }

  #onBeatOf(watch: Watch): void {
    // Empty lines behind what is unread keep nothing alive, and each takes memory.
    if (watch.unreadBytes === 0) watch.pool.write(watch, '\n');
    // Balancers go to another replica.
    if (!this.#options.table.isCurrent()) this.#end(watch);
    void watch.isAllowed().then((isStill) => isStill || this.#end(watch));
  }
}

/** What balancers of a scope get, sorted. */
export function entriesIn(table: ExportTable, { group, namespace }: FeedScope) {
  const entries = table.entriesOf(group);
  return namespace === undefined ? entries : entries.filter((entry) => entry.namespace === namespace);
}

function jsonIn(table: ExportTable, { group, namespace }: FeedScope, key: string): string | undefined {
  const entry = table.get(key);
  if (entry === undefined || !entry.settings.groups.includes(group) || entry.conflicts.has(group)) return undefined;
  return namespace === undefined || entry.namespace === namespace ? entry.view.json : undefined;
}

/** A channel that nobody watches yet. */
function newChannel(table: ExportTable, scope: FeedScope): Channel {
  const sent = new Map(entriesIn(table, scope).map(({ key, view }) => [key, view.json]));
  return { scope, sent, watches: new Set() };
}

/** Length of the first content of a watch, without making it. */
function firstLength({ sent }: Channel): number {
  let length = SYNCED.length + sent.size * lineOf('ADDED', '').length;
  for (const json of sent.values()) length += json.length;
  return length;
}

/** The line about a change, which `sent` then has; '' for none. */
function changeOf(sent: Map<string, string>, key: string, after: string | undefined): string {
  const before = sent.get(key);
  if (before === after) return '';
  if (after === undefined) {
    sent.delete(key);
    return lineOf('DELETED', before ?? 'null');
  }
  sent.set(key, after);
  return lineOf(before === undefined ? 'ADDED' : 'MODIFIED', after);
}

function lineOf(type: 'ADDED' | 'MODIFIED' | 'DELETED', json: string): string {
  return `{"type":"${type}","object":${json}}\n`;
}
