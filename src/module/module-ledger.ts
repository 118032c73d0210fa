import type { BackoffOptions } from '../queue/backoff.ts';
import {
  type ModuleCommand,
  type ModuleId,
  type ModuleKey,
  type ModuleSpec,
  type ModuleState,
  type ModuleStatus,
  moduleKeyOf,
  type OperationResult,
} from '../tunnel/module.ts';
import { type Failure, type FailureReason, failureOf } from './failure.ts';
import {
  fingerprintOf,
  isGone,
  isInWork,
  type ModuleRecord,
  newRecord,
  withCrash,
  withFailure,
  withoutFailure,
  withState,
} from './module-record.ts';

export interface LedgerOptions {
  readonly installDeadlineMs: number;
  readonly uninstallDeadlineMs: number;
  readonly backoff: BackoffOptions;
}

/** A base clock that jumped further than this did not just deliver two messages out of order. */
const REORDER_WINDOW_MS = 30_000;

/** An absent module with an unanswered command: after this long, and two lists without it, the command was lost. */
const LOST_COMMAND_MS = 60_000;

/** Another command for the module is unfinished on the base: the lists tell what comes of it, sent again at the earliest then. */
const BUSY_WAIT_MS = 5_000;

/** What an answer meant for the module it was about; `none` = nobody asked, or it could not be told whose it is. */
export interface OperationEnd {
  readonly command: ModuleCommand;
  readonly id: ModuleId;
  readonly result: 'done' | 'failed' | 'timeout';
  readonly tookMs: number;
}

/**
 * What one base has installed, from its lists and its answers, and which commands are under way.
 * Keeps no time and does no I/O. One rule above all: until a list was read, nothing is known (`isKnown`),
 * and unknown is not none.
 */
export class ModuleLedger {
  readonly #options: LedgerOptions;
  /** Emptied of modules that are gone and that nobody asks about by `forgetUnless`. */
  readonly #records = new Map<ModuleKey, ModuleRecord>();
  #isKnown = false;
  #restarted = false;
  #askedAt = Number.NEGATIVE_INFINITY;
  #answeredAt = Number.NEGATIVE_INFINITY;
  #newestPublishedAt: number | undefined;

  constructor(options: LedgerOptions) {
    this.#options = options;
  }

  /** Whether a list was read since we met the base, lost it out of sight, or it restarted. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  get askedAt(): number {
    return this.#askedAt;
  }

  get answeredAt(): number {
    return this.#answeredAt;
  }

  get(key: ModuleKey): ModuleRecord | undefined {
    return this.#records.get(key);
  }

  records(): IterableIterator<ModuleRecord> {
    return this.#records.values();
  }

  /** Somebody asks the base for its list now. */
  listAsked(now: number): void {
    this.#askedAt = now;
  }

  /** The base was out of sight, or our own link was: commands and answers may be lost. */
  linkLost(): void {
    this.#isKnown = false;
    for (const [key, record] of this.#records) {
      if (record.inFlight) this.#records.set(key, { ...record, inFlight: { ...record.inFlight, uncertain: true } });
    }
  }

  /** Another process answers under the identity: all it had is gone, until its list says otherwise. */
  baseRestarted(publishedAt: number | undefined): void {
    this.#isKnown = false;
    this.#restarted = true;
    if (publishedAt !== undefined) this.#newestPublishedAt = publishedAt;
  }

  /** Takes a whole list. Returns false when it is older than what is known. */
  takeList(list: readonly ModuleStatus[], publishedAt: number | undefined, now: number): boolean {
    if (this.#isOld(publishedAt)) return false;
    const restarted = this.#restarted;
    const present = new Map(list.map((status) => [moduleKeyOf(status), status]));
    for (const [key, status] of present) {
      const record = this.#records.get(key) ?? newRecord(status, now);
      this.#records.set(key, this.#seenPresent(record, status, publishedAt, now));
    }
    for (const [key, record] of this.#records) {
      if (present.has(key)) continue;
      this.#records.set(key, restarted ? this.#lostByRestart(record, now) : this.#seenAbsent(record, publishedAt, now));
    }
    this.#isKnown = true;
    this.#restarted = false;
    this.#answeredAt = now;
    return true;
  }

  /** Takes an answer to install or uninstall. Returns what ended by it, if anything did. */
  takeResult(result: OperationResult, publishedAt: number | undefined, now: number): OperationEnd | undefined {
    const record = this.#recordOf(result);
    if (record === undefined) return undefined;
    const asked = record.inFlight?.command === result.command ? record.inFlight : undefined;
    const stamped = { ...record, publishedAt: publishedAt ?? record.publishedAt };
    // A late answer to an earlier command must not end the one under way: the list tells what is true.
    if (record.inFlight === undefined || asked) this.#set(this.#afterResult(stamped, result, now));
    if (asked === undefined || result.outcome === 'busy') return undefined;
    const end = result.outcome === 'failed' ? 'failed' : 'done';
    return { command: result.command, id: record.id, result: end, tookMs: now - asked.sentAt };
  }

  installSent(spec: ModuleSpec, now: number): void {
    const record = this.#records.get(moduleKeyOf(spec)) ?? newRecord(spec, now);
    const deadlineAt = now + this.#options.installDeadlineMs;
    const fingerprint = fingerprintOf(spec);
    this.#set({ ...record, inFlight: { command: 'install', sentAt: now, deadlineAt, uncertain: false, fingerprint } });
  }

  uninstallSent(id: ModuleId, now: number): void {
    const record = this.#records.get(moduleKeyOf(id)) ?? newRecord(id, now);
    const deadlineAt = now + this.#options.uninstallDeadlineMs;
    this.#set({
      ...record,
      inFlight: { command: 'uninstall', sentAt: now, deadlineAt, uncertain: false, fingerprint: undefined },
    });
  }

  /** The command could not be handed over for sure: the next list decides what became of it. */
  sendFailed(id: ModuleId, now: number): void {
    const record = this.#records.get(moduleKeyOf(id));
    if (record?.inFlight)
      this.#set({ ...record, inFlight: { ...record.inFlight, uncertain: true }, retryAt: now + 1000 });
  }

  /** Ends commands whose deadline is over; each counts as a failure, as does a module that stands still in work. */
  expire(now: number): OperationEnd[] {
    const ends: OperationEnd[] = [];
    for (const record of this.#records.values()) {
      const { inFlight } = record;
      if (inFlight === undefined) {
        this.#expireAdopted(record, now);
        continue;
      }
      if (now < inFlight.deadlineAt) continue;
      const seconds = Math.round((inFlight.deadlineAt - inFlight.sentAt) / 1000);
      const failure: Failure = {
        reason: inFlight.command === 'install' ? 'InstallTimeout' : 'KillContainerError',
        message: `the base did not answer ${inFlight.command} within ${seconds} s`,
      };
      this.#set(withFailure(record, failure, now, this.#options.backoff));
      ends.push({ command: inFlight.command, id: record.id, result: 'timeout', tookMs: now - inFlight.sentAt });
    }
    return ends;
  }

  /** Drops modules that are gone and that `isWanted` does not name. */
  forgetUnless(isWanted: (key: ModuleKey) => boolean): void {
    for (const [key, record] of this.#records) {
      if (isGone(record) && !isWanted(key)) this.#records.delete(key);
    }
  }

  /** An install that an earlier controller sent, or that was ended by its deadline, gets no second answer. */
  #expireAdopted(record: ModuleRecord, now: number): void {
    if (!isInWork(record) || record.failure !== undefined || now - record.since < this.#options.installDeadlineMs)
      return;
    const message = 'the base has had the module in work for longer than the install deadline';
    this.#set(withFailure(record, { reason: 'InstallTimeout', message }, now, this.#options.backoff));
  }

  #set(record: ModuleRecord): void {
    this.#records.set(moduleKeyOf(record.id), record);
  }

  /** An answer without a name is about the only command it can be about, or about nobody's. */
  #recordOf(result: OperationResult): ModuleRecord | undefined {
    if (result.module) return this.#records.get(moduleKeyOf(result.module)) ?? undefined;
    const candidates = [...this.#records.values()].filter((record) => record.inFlight?.command === result.command);
    return candidates.length === 1 ? candidates[0] : undefined;
  }

  #isOld(publishedAt: number | undefined): boolean {
    const newest = this.#newestPublishedAt;
    if (publishedAt === undefined) return false;
    if (newest !== undefined && publishedAt < newest && newest - publishedAt < REORDER_WINDOW_MS) return true;
    this.#newestPublishedAt = publishedAt;
    return false;
  }

  #seenPresent(record: ModuleRecord, status: ModuleStatus, publishedAt: number | undefined, now: number): ModuleRecord {
    if (isBefore(publishedAt, record.publishedAt)) return record;
    const crashed = this.#crashed(record, status.state, now);
    const next = { ...withState(crashed, status.state, now), publishedAt, unconfirmed: false };
    const { inFlight } = record;
    // That it runs ends the failure of an install, not the one of an uninstall.
    const isWell = status.state === 'ACTIVATED' && record.failure?.reason !== 'KillContainerError';
    if (inFlight === undefined) return isWell ? withoutFailure(next) : next;
    const isInstalled = status.state === 'ACTIVATED' || status.state === 'DEACTIVATED';
    if (inFlight.command === 'install' && isInstalled) {
      return { ...withoutFailure(next), inFlight: undefined, fingerprint: inFlight.fingerprint };
    }
    return inFlight.uncertain && !isInWork({ ...next, inFlight: undefined }) ? { ...next, inFlight: undefined } : next;
  }

  /** A module that ended by itself: it was (or may have been) fine, nobody commanded it, and now it is not. */
  #crashed(record: ModuleRecord, state: ModuleState, now: number): ModuleRecord {
    if (record.inFlight || record.state === state) return record;
    // What a failed install left behind is no second failure.
    if (record.failure && record.state !== 'ACTIVATED' && record.state !== 'DEACTIVATED') return record;
    if (state === 'BROKEN') return this.#crash(record, 'ModuleBroken', 'the base lists the module as BROKEN', now);
    if (state === 'STOPPED') return this.#crash(record, 'ModuleStopped', 'the base lists the module as STOPPED', now);
    return record;
  }

  #crash(record: ModuleRecord, reason: FailureReason, message: string, now: number): ModuleRecord {
    return withCrash(record, { reason, message }, now, this.#options.backoff);
  }

  #seenAbsent(record: ModuleRecord, publishedAt: number | undefined, now: number): ModuleRecord {
    if (isBefore(publishedAt, record.publishedAt)) return record;
    const { inFlight } = record;
    if (inFlight?.command === 'uninstall') return this.#uninstalled(record, now);
    if (inFlight?.uncertain) return { ...withState(record, undefined, now), inFlight: undefined };
    if (inFlight) return this.#absentInstall(record, now);
    if (record.state === undefined) return record;
    const confirmed = record.missingSince !== undefined && this.#askedAt >= record.missingSince;
    if (confirmed) {
      const crashed = this.#crash(record, 'ModuleVanished', 'the base does not list the module any more', now);
      return { ...withState(crashed, undefined, now), fingerprint: undefined };
    }
    return { ...record, missingSince: record.missingSince ?? now };
  }

  /** A base lists a module only once its jar is there, so absence during an install proves nothing for long. */
  #absentInstall(record: ModuleRecord, now: number): ModuleRecord {
    const sentAt = record.inFlight?.sentAt ?? now;
    if (now - sentAt < LOST_COMMAND_MS || this.#askedAt < sentAt) return record;
    if (record.missingSince === undefined) return { ...record, missingSince: now };
    if (this.#askedAt < record.missingSince) return record;
    return { ...withState(record, undefined, now), inFlight: undefined };
  }

  #lostByRestart(record: ModuleRecord, now: number): ModuleRecord {
    const failure: Failure = { reason: 'BaseRestarted', message: 'the base process was started anew' };
    return {
      ...withState(record, undefined, now),
      inFlight: undefined,
      fingerprint: undefined,
      failure,
      failures: 0,
      retryAt: 0,
    };
  }

  #uninstalled(record: ModuleRecord, now: number): ModuleRecord {
    return { ...withoutFailure(withState(record, undefined, now)), inFlight: undefined, fingerprint: undefined };
  }

  #afterResult(record: ModuleRecord, result: OperationResult, now: number): ModuleRecord {
    const isOurs = record.inFlight?.command === result.command;
    if (result.outcome === 'busy') {
      if (!isOurs || !record.inFlight) return record;
      return { ...record, inFlight: { ...record.inFlight, uncertain: true }, retryAt: now + BUSY_WAIT_MS };
    }
    if (result.outcome === 'failed') {
      return isOurs ? withFailure(record, failureOf(result), now, this.#options.backoff) : record;
    }
    if (result.command === 'uninstall') return this.#uninstalled(record, now);
    return this.#installed(record, result, now);
  }

  #installed(record: ModuleRecord, result: OperationResult, now: number): ModuleRecord {
    const fingerprint = record.inFlight?.fingerprint ?? record.fingerprint;
    const cleared = { ...record, inFlight: undefined, fingerprint };
    // REPEAT_BIZ says that the module is there, not in which state: the list tells.
    if (result.outcome === 'already') return { ...cleared, state: record.state ?? 'RESOLVED', unconfirmed: true };
    const unconfirmed = this.#hasOtherVersion(record.id);
    return { ...withoutFailure(withState(cleared, result.state ?? 'ACTIVATED', now)), unconfirmed };
  }

  #hasOtherVersion(id: ModuleId): boolean {
    for (const other of this.#records.values()) {
      if (other.id.name === id.name && other.id.version !== id.version && other.state !== undefined) return true;
    }
    return false;
  }
}

function isBefore(publishedAt: number | undefined, evidenceAt: number | undefined): boolean {
  if (publishedAt === undefined || evidenceAt === undefined) return false;
  return publishedAt < evidenceAt && evidenceAt - publishedAt < REORDER_WINDOW_MS;
}
