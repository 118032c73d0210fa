import type { Clock } from '../clock.ts';
import { ControllerError, messageOf } from '../errors.ts';
import { isAlreadyExists, isConflict, isNotFound, isNotPermitted } from '../kube/transport/api-error.ts';
import { identityOf, nodeNameOf } from '../labels.ts';
import type { Leadership } from '../leadership.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from '../metrics.ts';
import { backoffMs } from '../queue/backoff.ts';
import { WorkQueue } from '../queue/work-queue.ts';
import type { ModuleKey } from '../tunnel/module.ts';
import type { BasePlan } from './base-plan.ts';
import {
  type Demand,
  type Entry,
  type Kept,
  keptOf,
  planShard,
  SHARDS,
  type ShardPlan,
  shardOf,
} from './contact-record.ts';
import { type ContactApi, ContactStore } from './contact-store.ts';
import type { Contact, LedBase } from './led-base.ts';

export interface FirstContactsOptions {
  readonly api: ContactApi;
  readonly env: string;
  readonly leadership: Pick<Leadership, 'isHeld'>;
  /** The living base behind a Node, led or followed. */
  readonly baseOf: (nodeName: string) => LedBase | undefined;
  /** Whether a base or a Node of that name is there now, led or followed. */
  readonly isInUse: (nodeName: string) => boolean;
  /** Makes the plan of a base again. */
  readonly enqueue: (nodeName: string) => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** Bases that come within this time share one GET and one PATCH of their shard. A removal takes ten times as long. */
const BATCH_MS = 1_000;
const BACKOFF = { baseMs: 1_000, maxMs: 300_000 };
/** Conflicts with other replicas end by themselves; this many in a row do not. */
const WARN_AFTER_RACES = 5;

interface Waiting {
  readonly base: LedBase;
  readonly contact: Contact;
  readonly demand: Demand;
}

/**
 * Remembers, for its ENV, which identities were met, and which modules each base had at its first contact that no Pod
 * has asked for since. The record outlives Nodes and processes: ConfigMaps in `kube-node-lease`.
 *
 * Each process reads the record of a base once after it came to lead it, behind the base's first list, and trusts
 * what it read until another one leads. Nothing is cached beyond that: an entry may be evicted and written again by
 * others meanwhile, and a stale entry would remove what the new one keeps. Every write names the version that was
 * read, so that a late or repeated one is refused. A write that is lost keeps more, never less.
 */
export class FirstContacts {
  readonly #options: FirstContactsOptions;
  readonly #queue: WorkQueue;
  /** Node names by shard. Emptied when their record is as it should be, or when others lead them. */
  readonly #waiting = Array.from({ length: SHARDS }, () => new Set<string>());
  /** Number of failures in a row, by shard. Emptied by a success. */
  readonly #failures = new Map<number, number>();
  #isWarned = false;
  readonly #store: ContactStore;

  constructor(options: FirstContactsOptions) {
    this.#options = options;
    const { api, env, clock, logger, metrics } = options;
    const sync = (key: string): Promise<void> => this.#sync(Number(key));
    this.#queue = new WorkQueue({ name: 'first-contacts', workers: 2, sync, clock, logger, metrics });
    this.#store = new ContactStore(api, env);
  }

  /** Reads and writes until `signal` is aborted. What waits then is found again by the next process. */
  run(signal: AbortSignal): Promise<void> {
    return this.#queue.run(signal);
  }

  /**
   * Takes what a plan says that was made with a list. Returns whether a module is kept; undefined while the record is
   * not known: nothing may be removed then.
   */
  observe(
    base: LedBase,
    { isWanted, isOfFormerOwner }: Pick<BasePlan, 'isWanted' | 'isOfFormerOwner'>,
  ): ((key: ModuleKey) => boolean) | undefined {
    const { contact } = base;
    if (contact.kept === undefined) {
      const kept = keptOf(foundAt(base).filter((key) => !isWanted(key) && !isOfFormerOwner(key)));
      contact.kept = kept === 'all' ? kept : new Set(kept);
      contact.listed = undefined;
    }
    for (const key of contact.kept === 'all' ? [] : contact.kept) if (isWanted(key)) claim(contact, key);
    if (!contact.isRecorded || contact.claimed.size > 0) this.#add(base.nodeName);
    return contact.isRecorded ? (key) => isKept(contact, key) : undefined;
  }

  #add(nodeName: string): void {
    const shard = shardOf(identityOf(nodeName) ?? nodeName);
    this.#waiting[shard]?.add(nodeName);
    // After a failure the next try is set already.
    if (!this.#failures.has(shard)) this.#queue.addAfter(String(shard), BATCH_MS);
  }

  async #sync(shard: number): Promise<void> {
    const waiting = this.#waitingIn(shard);
    if (waiting.length === 0) return this.#succeeded(shard);
    try {
      const entries = await this.#write(shard, waiting);
      for (const one of waiting) this.#settle(shard, one, entries.get(one.demand.identity));
      const isFull = [...entries.values()].includes(undefined);
      if (isFull) this.#failed(shard, { reason: 'there is no room for more bases', delayMs: BACKOFF.maxMs });
      else this.#succeeded(shard);
    } catch (error) {
      const failures = (this.#failures.get(shard) ?? 0) + 1;
      this.#failures.set(shard, failures);
      const code = error instanceof ControllerError ? error.code : undefined;
      const isQuiet = isRace(error) && failures < WARN_AFTER_RACES;
      this.#failed(shard, { code, reason: messageOf(error), delayMs: backoffMs(failures, BACKOFF), isQuiet });
    }
  }

  /** Bases that this process leads and that have something to read or write; all others are dropped. */
  #waitingIn(shard: number): Waiting[] {
    const { leadership, baseOf } = this.#options;
    const found: Waiting[] = [];
    for (const nodeName of this.#waiting[shard] ?? []) {
      const base = leadership.isHeld(nodeName) ? baseOf(nodeName) : undefined;
      const contact = base?.contact;
      if (contact?.kept === undefined || (contact.isRecorded && contact.claimed.size === 0)) {
        this.#waiting[shard]?.delete(nodeName);
        continue;
      }
      const kept: Kept = contact.kept === 'all' ? 'all' : new Set(contact.kept);
      const demand = { identity: identityOf(nodeName) ?? nodeName, kept, claimed: new Set(contact.claimed) };
      if (base) found.push({ base, contact, demand });
    }
    return found;
  }

  async #write(shard: number, waiting: readonly Waiting[]): Promise<ShardPlan['entries']> {
    const { clock, isInUse, leadership } = this.#options;
    const stored = await this.#store.read(shard);
    const demands = waiting.map(({ demand }) => demand);
    const { data, entries } = planShard(stored.texts, demands, {
      now: clock.wallTime().toISOString(),
      isInUse: (identity) => isInUse(nodeNameOf(identity)),
    });
    const changed = waiting.filter(({ demand }) => Object.hasOwn(data, demand.identity));
    const permit = (): boolean => changed.every(({ base }) => leadership.isHeld(base.nodeName));
    if (changed.length > 0) await this.#store.write(shard, stored, data, permit);
    return entries;
  }

  /** The record has `entry`, or has no room for it. Pods may have claimed more meanwhile. */
  #settle(shard: number, { base, contact, demand }: Waiting, entry: Entry | undefined): void {
    if (entry === undefined) return;
    for (const key of demand.claimed) contact.claimed.delete(key);
    if (!contact.isRecorded) {
      contact.isRecorded = true;
      contact.kept = entry.kept === 'all' ? 'all' : new Set(entry.kept);
      if (!entry.isReadable) this.#options.logger.warn({ node: base.nodeName }, 'record of a base cannot be read');
    }
    // Another replica led the base meanwhile: what is known now is of another contact.
    if (base.contact !== contact) return;
    if (contact.claimed.size === 0) this.#waiting[shard]?.delete(base.nodeName);
    if (base.unknown.size > 0) this.#options.enqueue(base.nodeName);
  }

  #succeeded(shard: number): void {
    this.#failures.delete(shard);
    if ((this.#waiting[shard]?.size ?? 0) > 0) this.#queue.addAfter(String(shard), BATCH_MS);
    if (!this.#isWarned || this.#failures.size > 0) return;
    this.#isWarned = false;
    this.#options.logger.info({}, 'records of bases are read and written again');
  }

  #failed(shard: number, { delayMs, isQuiet = false, ...why }: Failure): void {
    this.#failures.set(shard, this.#failures.get(shard) ?? 1);
    this.#queue.addAfter(String(shard), delayMs);
    if (this.#isWarned || isQuiet) return;
    this.#isWarned = true;
    const fields = { configMap: this.#store.nameOf(shard), ...why };
    this.#options.logger.warn(fields, 'record of bases cannot be read or written: their unknown modules are kept');
  }
}

interface Failure {
  readonly code?: string | undefined;
  readonly reason: string;
  readonly delayMs: number;
  /** It probably ends by itself. */
  readonly isQuiet?: boolean;
}

/** The module is an ordinary one from now on. */
function claim(contact: Contact, key: ModuleKey): void {
  if (contact.kept === undefined || contact.kept === 'all' || !contact.kept.delete(key)) return;
  if (contact.isRecorded) contact.claimed.add(key);
}

/**
 * What the base had before the first plan. Some agents list the base itself; where its name comes only with a later
 * health answer, the record has it too, which keeps nothing that would be removed.
 */
function foundAt({ contact, masterName }: LedBase): ModuleKey[] {
  return [...(contact.listed ?? [])].filter(([, { name }]) => name !== masterName).map(([key]) => key);
}

function isKept({ kept }: Contact, key: ModuleKey): boolean {
  return kept === 'all' || kept?.has(key) === true;
}

/** Another replica was first, or leads the base by now. */
function isRace(error: unknown): boolean {
  return isConflict(error) || isAlreadyExists(error) || isNotFound(error) || isNotPermitted(error);
}
