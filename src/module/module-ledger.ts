import type { BackoffOptions } from '../queue/backoff.ts';
import {
  isReplacing,
  type ModuleCommand,
  type ModuleId,
  type ModuleKey,
  type ModuleSpec,
  type ModuleStatus,
  moduleKeyOf,
  type OperationResult,
} from '../tunnel/module.ts';
import { installsBesideActive, shownByInstalls } from './activation.ts';
import { MessageOrder, type MessageTimes } from './message-order.ts';
import { fingerprintOf, isGone, isInWork, type ModuleRecord, newRecord, withCommand } from './module-record.ts';
import { RecordTable } from './record-table.ts';
import {
  afterResult,
  broughtByWrongJar,
  type Evidence,
  isBefore,
  lostByRestart,
  seenAbsent,
  seenDeactivated,
  seenPresent,
  stoodStill,
  switchUnanswered,
  timedOut,
} from './record-transitions.ts';

export interface LedgerOptions {
  readonly installDeadlineMs: number;
  readonly uninstallDeadlineMs: number;
  readonly backoff: BackoffOptions;
}

/** Records of one base. A list has 2,000 modules at most, so a full list and the one before it have room. */
export const MAX_RECORDS = 4_000;

/** A command that could not be sent is not sent again at once. */
export const SEND_AGAIN_MS = 1_000;

/** A command that an answer or its deadline has ended. Ends that only a list shows are not among them. */
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
  /**
   * At most `MAX_RECORDS`. Emptied of modules that nobody asks about and that are gone or missing by `forgetUnless`.
   */
  readonly #records = new RecordTable();
  readonly #order = new MessageOrder();
  #isKnown = false;
  #restarted = false;
  #activatesNew: boolean | undefined;
  /** What the newest list has, when there was no room for it. Emptied by `forgetUnless`, which makes room. */
  #refused: ReadonlySet<ModuleKey> | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;
  /** When the first list came. */
  #knownSince: number | undefined;

  constructor(options: LedgerOptions) {
    this.#options = options;
  }

  /** Whether a list was read since the base was met, was out of sight, or restarted. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** A restart was reported, and no list has come since. */
  get isRestarting(): boolean {
    return this.#restarted;
  }

  /** The newest list was refused, since there was no room for its modules. */
  get isFull(): boolean {
    return this.#refused !== undefined;
  }

  get askedAt(): number {
    return this.#askedAt;
  }

  /** How long an install may be in work. */
  get installDeadlineMs(): number {
    return this.#options.installDeadlineMs;
  }

  /**
   * Whether the base makes a version active by its install although another one is (`-Dactivate.new.module`), as
   * installs of this process have shown; undefined: none has.
   */
  get activatesNew(): boolean | undefined {
    return this.#activatesNew;
  }

  /** When the newest list was asked for. */
  get listedAt(): number {
    return this.#order.listedAt;
  }

  get(key: ModuleKey): ModuleRecord | undefined {
    return this.#records.get(key);
  }

  records(): IterableIterator<ModuleRecord> {
    return this.#records.values();
  }

  get recordCount(): number {
    return this.#records.size;
  }

  /** How many commands are under way. */
  get inFlightCount(): number {
    return this.#records.inFlightCount;
  }

  /** Whether a command waits for its answer that is not in doubt: over HTTP its connection is open. */
  get hasOpenCommand(): boolean {
    return this.#records.inFlight().some(({ inFlight }) => inFlight?.uncertain === false);
  }

  /** Somebody asks the base for its list now. */
  listAsked(now: number): void {
    this.#askedAt = now;
  }

  /** The base, or the controller's own link, was down: commands and answers may be lost. */
  linkLost(): void {
    this.#isKnown = false;
    this.doubtCommands();
  }

  /** The command or its answer may be lost: the next lists decide. */
  doubtCommands(): void {
    for (const record of this.#records.values()) {
      if (record.inFlight === undefined) continue;
      // It may arrive twice.
      const unanswered = record.unanswered + (record.inFlight.command === 'install' ? 1 : 0);
      this.#records.set({ ...record, unanswered, inFlight: { ...record.inFlight, uncertain: true } });
    }
  }

  /**
   * Another process, maybe with another clock, answers under the identity: all it had is gone, unless its list has it.
   */
  baseRestarted(publishedAt: number | undefined): void {
    const isRepeated = this.#restarted;
    this.#isKnown = false;
    this.#restarted = true;
    this.#activatesNew = undefined;
    this.#order.restart(publishedAt);
    // The order alone refuses lists from before it; a base may report restarts at any rate.
    if (isRepeated) return;
    for (const record of this.#records.values()) this.#records.set({ ...record, publishedAt, doubtedUntil: 0 });
  }

  /** Whether records of all these modules may be kept. */
  hasRoomFor(modules: readonly ModuleId[]): boolean {
    if (this.#records.size + modules.length <= MAX_RECORDS) return true;
    const keys = new Set(modules.map(moduleKeyOf));
    for (const key of keys) if (this.#records.get(key)) keys.delete(key);
    return this.#records.size + keys.size <= MAX_RECORDS;
  }

  /**
   * Takes a whole list. Returns false when it is older than what is known, or when there is no room for it: part of a
   * list says nothing of the modules that it lacks, so nothing of it is taken.
   */
  takeList(list: readonly ModuleStatus[], times: MessageTimes, now: number): boolean {
    if (this.#order.isOldList(times)) return false;
    this.#refused = this.hasRoomFor(list) ? undefined : new Set(list.map(moduleKeyOf));
    if (this.#refused) return false;
    this.#knownSince ??= now;
    const evidence = this.#evidence(times, now);
    const present = new Map(list.map((status) => [moduleKeyOf(status), status]));
    const installs = installsBesideActive(this.#records);
    for (const [key, status] of present) {
      const record = this.#records.get(key) ?? this.#found(status, evidence);
      this.#records.set(seenPresent(record, status, evidence));
    }
    this.#takeAbsence(present, evidence);
    this.#takeDeactivated(evidence);
    this.#activatesNew = shownByInstalls(installs, (key) => this.#records.get(key)) ?? this.#activatesNew;
    this.#isKnown = true;
    this.#restarted = false;
    this.#order.listTaken(evidence.askedAt);
    return true;
  }

  /** Takes an answer to install or uninstall. Returns what ended by it, if anything did. */
  takeResult(result: OperationResult, times: MessageTimes, now: number): OperationEnd | undefined {
    const brought = result.brought ?? [];
    if (this.hasRoomFor(brought)) for (const status of brought) this.#takeBrought(status, now);
    const record = this.#recordOf(result);
    if (record === undefined) return undefined;
    if (this.#order.isOldResult(moduleKeyOf(record.id), result.command, times.publishedAt)) return undefined;
    const asked = record.inFlight?.command === result.command ? record.inFlight : undefined;
    const doubtedUntil = result.outcome === 'busy' ? record.doubtedUntil : 0;
    const isOld = isBefore(times.publishedAt, record.publishedAt);
    const publishedAt = isOld ? record.publishedAt : (times.publishedAt ?? record.publishedAt);
    const stamped = { ...record, publishedAt, answeredAt: now, doubtedUntil };
    // A late answer to an earlier command must not end the running one: the list decides.
    if (record.inFlight === undefined || asked) {
      const hasOther = this.#records.siblingsOf(record.id).some((sibling) => mayBeThere(sibling));
      this.#records.set(afterResult(stamped, result, hasOther, this.#evidence(times, now)));
      this.#onGone(record, now);
    }
    if (asked === undefined || result.outcome === 'busy') return undefined;
    const end = result.outcome === 'failed' ? 'failed' : 'done';
    return { command: result.command, id: record.id, result: end, tookMs: now - asked.sentAt };
  }

  installSent(spec: ModuleSpec, now: number): void {
    const record = this.#records.get(moduleKeyOf(spec)) ?? newRecord(spec, now);
    const deadlineAt = now + this.#options.installDeadlineMs;
    const sent = { fingerprint: fingerprintOf(spec), isReplacing: isReplacing(spec) };
    this.#records.set(withCommand(record, { command: 'install', sentAt: now, deadlineAt, ...sent }));
  }

  /**
   * An uninstall or a switch was sent; both have the deadline of an uninstall. `isReturning`: the version is uninstalled
   * to be installed again.
   */
  commandSent(command: Exclude<ModuleCommand, 'install'>, id: ModuleId, now: number, isReturning = false): void {
    const record = this.#records.get(moduleKeyOf(id)) ?? newRecord(id, now);
    const deadlineAt = now + this.#options.uninstallDeadlineMs;
    const sent = { fingerprint: undefined, isReplacing: false };
    this.#records.set({ ...withCommand(record, { command, sentAt: now, deadlineAt, ...sent }), isReturning });
  }

  /** The command was not handed over, or not for sure: then the next lists decide what became of it. */
  sendFailed(id: ModuleId, mayHaveArrived: boolean, now: number): void {
    const record = this.#records.get(moduleKeyOf(id));
    if (!record?.inFlight) return;
    if (mayHaveArrived && record.inFlight.command === 'switch') {
      this.#records.set(switchUnanswered(record, now, this.#options.backoff));
      return;
    }
    const inFlight = mayHaveArrived ? { ...record.inFlight, uncertain: true } : undefined;
    this.#records.set({ ...record, inFlight, retryAt: now + SEND_AGAIN_MS });
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
      this.#records.set(timedOut(record, inFlight, now, this.#options.backoff));
      ends.push({ command: inFlight.command, id: record.id, result: 'timeout', tookMs: now - inFlight.sentAt });
    }
    return ends;
  }

  /**
   * Drops modules that `isWanted` does not name and that are gone. Of foreign ones, which nobody waits for, also those
   * that the newest list lacks: without a question, or a base that lists other names each time would fill the table.
   */
  forgetUnless(isWanted: (key: ModuleKey) => boolean): void {
    const refused = this.#refused;
    this.#refused = undefined;
    this.#records.forget((key, record) => {
      if (isWanted(key)) return false;
      return isGone(record) || isForgettable(record) || (refused && !refused.has(key) && isForeign(record)) === true;
    });
  }

  /** An install that an earlier controller sent, or that was ended by its deadline, gets no second answer. */
  #expireAdopted(record: ModuleRecord, now: number): void {
    const isLate = now - record.since >= this.#options.installDeadlineMs;
    if (isLate && isInWork(record) && record.failure === undefined) {
      this.#records.set(stoodStill(record, now, this.#options.backoff));
    }
  }

  /** A module that no list had before, and for which no command was sent. */
  #found(status: ModuleStatus, { now, mayBeAdopted }: Evidence): ModuleRecord {
    const record = newRecord(status, now);
    return this.#isKnown && !mayBeAdopted ? { ...record, intruder: 'unknown' } : record;
  }

  #takeBrought(status: ModuleStatus, now: number): void {
    const record = this.#records.get(moduleKeyOf(status)) ?? newRecord(status, now);
    this.#records.set(broughtByWrongJar(record, status, now));
  }

  /** An answer without a name is about the only command it can be about, or about nobody's. */
  #recordOf(result: OperationResult): ModuleRecord | undefined {
    if (result.module) return this.#records.get(moduleKeyOf(result.module));
    const candidates = this.#records.inFlight().filter((record) => record.inFlight?.command === result.command);
    return candidates.length === 1 ? candidates[0] : undefined;
  }

  #takeAbsence(present: ReadonlyMap<ModuleKey, ModuleStatus>, evidence: Evidence): void {
    const { now } = evidence;
    /** One for each name, of which a base may have 2,000 versions. */
    const gone = new Map<string, ModuleRecord>();
    for (const record of this.#records.values()) {
      if (present.has(moduleKeyOf(record.id))) continue;
      const next = this.#restarted ? lostByRestart(record, now) : seenAbsent(record, evidence);
      this.#records.set(next);
      if (record.state !== undefined && next.state === undefined) gone.set(record.id.name, record);
    }
    for (const record of gone.values()) this.#onGone(record, now);
  }

  #takeDeactivated(evidence: Evidence): void {
    const served = new Set<string>();
    for (const record of this.#records.values()) {
      if (record.state === 'ACTIVATED' || isInWork(record)) served.add(record.id.name);
    }
    for (const record of this.#records.values()) {
      if (record.state !== 'DEACTIVATED') continue;
      this.#records.set(seenDeactivated(record, served.has(record.id.name), evidence));
    }
  }

  #evidence({ publishedAt, askedAt }: MessageTimes, now: number): Evidence {
    const { backoff, installDeadlineMs } = this.#options;
    const isTied = askedAt !== undefined;
    const mayBeAdopted = now - (this.#knownSince ?? now) < installDeadlineMs;
    return { now, publishedAt, askedAt: askedAt ?? this.#askedAt, isTied, mayBeAdopted, backoff };
  }

  /** A version that has gone may be what kept another one of its name from starting: that need not wait longer. */
  #onGone({ id, state }: ModuleRecord, now: number): void {
    if (state === undefined || this.#records.get(moduleKeyOf(id))?.state !== undefined) return;
    for (const other of this.#records.siblingsOf(id)) {
      if (other.state === undefined && other.failure && other.retryAt > now)
        this.#records.set({ ...other, retryAt: now });
    }
  }
}

/** It is on the base, or an install that is under way may have brought it. */
function mayBeThere({ state, inFlight }: ModuleRecord): boolean {
  return state !== undefined || inFlight?.command === 'install';
}

/** Nobody commands it, and no install of this process brought it. */
function isForeign({ inFlight, fingerprint }: ModuleRecord): boolean {
  return inFlight === undefined && fingerprint === undefined;
}

/** What is in work may be left out of a list for a moment, and another install may have to wait for it. */
function isForgettable(record: ModuleRecord): boolean {
  return record.missingSince !== undefined && isForeign(record) && !isInWork(record);
}
