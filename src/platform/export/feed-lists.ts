import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import type { Clock } from '../../clock.ts';
import type { ExportTable } from './export-table.ts';
import { type FeedScope, scopeKey } from './feed-access.ts';
import { entriesIn } from './feed-watches.ts';

/** The answer that takes a list; the part of a response of Node that is used. */
export interface ListStream {
  /** Also comes after the other side has taken everything. */
  once(event: 'close', listener: () => void): unknown;
  destroy(): unknown;
}

export interface FeedListsOptions {
  readonly table: ExportTable;
  readonly clock: Clock;
}

export interface FeedList {
  /** Version of the table that the list shows. */
  readonly version: number;
  /** JSON. Answers share it: a string would be copied for each of them. */
  readonly bytes: Buffer;
  readonly etag: string;
  /** A shorter one is never sent with gzip. */
  readonly isCompressible: boolean;
}

interface KeptList extends FeedList {
  /** Made for the first client that takes gzip. */
  compressed: Promise<Buffer> | undefined;
  /** What it adds to the size of the lists that are kept. */
  compressedLength: number;
}

const compress = promisify(gzip);
/** The level of the API server for its lists: a higher one takes several times as long. */
const COMPRESSION = { level: constants.Z_BEST_SPEED };
/** A shorter list fits into one packet. */
const MIN_COMPRESSED_BYTES = 1024;
const MIB = 1024 * 1024;
/** Lists that are kept: whoever asks for many groups that there are not costs no memory. */
const MAX_LISTS = 100;
/** All lists that are kept. The newest one is kept however long it is. */
const MAX_BYTES = 32 * MIB;
/**
 * Maximum of the unread bytes of all balancers together. Each unread answer is kept encrypted, although all share the
 * list.
 */
const MAX_UNREAD_BYTES_OF_BALANCERS = 64 * MIB;
/**
 * Maximum of the unread bytes of all others together: they take no room of balancers, and cannot fill the memory of the
 * process.
 */
const MAX_UNREAD_BYTES_OF_OTHERS = 32 * MIB;
/** An answer that is not taken until then is cut off. */
const MAX_UNREAD_MS = 60_000;

/** The lists of the feed, each made once for a version of the table, and the answers that are not yet taken. */
export class FeedLists {
  readonly #options: FeedListsOptions;
  /** Lists by scope, the one made first in front. */
  readonly #lists = new Map<string, KeptList>();
  /** Total size of `#lists`. */
  #bytes = 0;
  readonly #balancers = { unreadBytes: 0, maxUnreadBytes: MAX_UNREAD_BYTES_OF_BALANCERS };
  readonly #others = { unreadBytes: 0, maxUnreadBytes: MAX_UNREAD_BYTES_OF_OTHERS };

  constructor(options: FeedListsOptions) {
    this.#options = options;
  }

  of(scope: FeedScope): FeedList {
    return this.#keptOf(scope);
  }

  #keptOf(scope: FeedScope): KeptList {
    const { table } = this.#options;
    const name = scopeKey(scope);
    const known = this.#lists.get(name);
    if (known?.version === table.version) return known;
    const json = entriesIn(table, scope).map(({ view }) => view.json);
    const bytes = Buffer.from(`[${json.join(',')}]`);
    const etag = `"${createHash('sha256').update(bytes).digest('base64url')}"`;
    const isCompressible = bytes.length >= MIN_COMPRESSED_BYTES;
    const { version } = table;
    const list: KeptList = { version, bytes, etag, isCompressible, compressed: undefined, compressedLength: 0 };
    this.#drop(name);
    this.#lists.set(name, list);
    this.#bytes += bytes.length;
    this.#dropSurplus(name);
    return list;
  }

  /** The same with gzip, made once for each version. */
  compressedOf(scope: FeedScope): Promise<Buffer> {
    const name = scopeKey(scope);
    const list = this.#keptOf(scope);
    list.compressed ??= compress(list.bytes, COMPRESSION).then((bytes) => {
      if (this.#lists.get(name) !== list) return bytes;
      list.compressedLength = bytes.length;
      this.#bytes += bytes.length;
      this.#dropSurplus(name);
      return bytes;
    });
    return list.compressed;
  }

  #dropSurplus(newest: string): void {
    for (const oldest of this.#lists.keys()) {
      if (oldest === newest || (this.#lists.size <= MAX_LISTS && this.#bytes <= MAX_BYTES)) break;
      this.#drop(oldest);
    }
  }

  /**
   * Counts `bytes` as unread until `stream` closes, which is 60 s later at the latest. Returns false if too much would
   * be unread. One answer alone always has room.
   */
  hold(stream: ListStream, { length }: Buffer, isBalancer: boolean): boolean {
    const pool = isBalancer ? this.#balancers : this.#others;
    if (pool.unreadBytes > 0 && pool.unreadBytes + length > pool.maxUnreadBytes) return false;
    pool.unreadBytes += length;
    const timer = this.#options.clock.setTimer(() => stream.destroy(), MAX_UNREAD_MS);
    stream.once('close', () => {
      timer.cancel();
      pool.unreadBytes -= length;
    });
    return true;
  }

  #drop(name: string): void {
    const list = this.#lists.get(name);
    if (list === undefined) return;
    this.#bytes -= list.bytes.length + list.compressedLength;
    this.#lists.delete(name);
  }
}
