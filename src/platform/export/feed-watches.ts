import type { Clock, Timer } from '../../clock.ts';
import type { Metrics } from '../../metrics.ts';
import type { ExportTable } from './export-table.ts';
import { type FeedScope, scopeKey } from './feed-access.ts';

/** Where the changes go; the part of a response of Node that is used. */
export interface WatchStream {
  write(text: string): unknown;
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
}

/** All watches of one scope see the same. */
interface Channel {
  readonly scope: FeedScope;
  /** What they have seen, as JSON by key. */
  readonly sent: Map<string, string>;
  readonly watches: Set<Watch>;
}

/** Of balancers, and of all others together: whoever has a token of the cluster keeps no balancer out. */
export const MAX_WATCHES = 500;
/** A balancer that leaves more than this unread is cut off: it comes again, and gets everything. */
const MAX_UNREAD_BYTES = 8 * 1024 * 1024;
/** Shorter than the idle timeouts of what may stand between: an empty line is sent, and rights are looked at again. */
export const BEAT_MS = 15_000;

/**
 * Streams of changes, one JSON object in a line: `{"type":"ADDED|MODIFIED|DELETED","object":…}`. A stream begins with
 * everything that there is as ADDED, and `{"type":"SYNCED"}` after that.
 */
export class FeedWatches {
  readonly #options: FeedWatchesOptions;
  readonly #channels = new Map<string, Channel>();
  readonly #counts = { balancers: 0, others: 0 };
  #beat: Timer | undefined;

  constructor(options: FeedWatchesOptions) {
    this.#options = options;
    options.table.addListener((keys) => this.#onChange(keys));
    options.metrics.exportWatches.set(0);
  }

  /** Undefined: there are too many. Else `stream` gets everything from now on; the answer ends that. */
  open(scope: FeedScope, stream: WatchStream, watcher: Watcher): (() => void) | undefined {
    if (this.#counts[kindOf(watcher)] >= MAX_WATCHES) return undefined;
    const channel = this.#channelOf(scope);
    const watch: Watch = { stream, ...watcher };
    channel.watches.add(watch);
    this.#counted(watch, 1);
    const lines = [...channel.sent.values()].map((json) => lineOf('ADDED', json));
    stream.write(`${lines.join('')}{"type":"SYNCED"}\n`);
    return () => this.#close(channel, watch);
  }

  #channelOf(scope: FeedScope): Channel {
    const name = scopeKey(scope);
    const known = this.#channels.get(name);
    if (known) return known;
    const channel: Channel = { scope, sent: new Map(), watches: new Set() };
    for (const { key, view } of entriesIn(this.#options.table, scope)) channel.sent.set(key, view.json);
    this.#channels.set(name, channel);
    return channel;
  }

  #close(channel: Channel, watch: Watch): void {
    if (!channel.watches.delete(watch)) return;
    this.#counted(watch, -1);
    if (channel.watches.size > 0) return;
    this.#channels.delete(scopeKey(channel.scope));
  }

  #counted(watch: Watch, by: number): void {
    this.#counts[kindOf(watch)] += by;
    const count = this.#counts.balancers + this.#counts.others;
    this.#options.metrics.exportWatches.set(count);
    if (count === 0) {
      this.#beat?.cancel();
      this.#beat = undefined;
    } else {
      this.#beat ??= this.#options.clock.setTimer(() => this.#onBeat(), BEAT_MS);
    }
  }

  #onChange(keys: ReadonlySet<string>): void {
    for (const { scope, sent, watches } of this.#channels.values()) {
      const lines = [...keys].map((key) => changeOf(sent, key, jsonIn(this.#options.table, scope, key))).join('');
      if (lines !== '') for (const { stream } of watches) send(stream, lines);
    }
  }

  #onBeat(): void {
    this.#beat = this.#options.clock.setTimer(() => this.#onBeat(), BEAT_MS);
    for (const { watches } of this.#channels.values()) {
      for (const { stream, isAllowed } of watches) {
        send(stream, '\n');
        // Balancers go to another replica.
        if (!this.#options.table.isCurrent()) stream.end();
        void isAllowed().then((isStill) => isStill || stream.end());
      }
    }
  }
}

function kindOf({ isBalancer }: Watcher): 'balancers' | 'others' {
  return isBalancer ? 'balancers' : 'others';
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

function send(stream: WatchStream, text: string): void {
  if (stream.writableLength > MAX_UNREAD_BYTES) stream.destroy();
  else stream.write(text);
}

function lineOf(type: 'ADDED' | 'MODIFIED' | 'DELETED', json: string): string {
  return `{"type":"${type}","object":${json}}\n`;
}
