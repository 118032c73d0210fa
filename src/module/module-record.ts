import { type BackoffOptions, backoffMs } from '../queue/backoff.ts';
import type { ModuleCommand, ModuleId, ModuleSpec, ModuleState } from '../tunnel/module.ts';
import type { Failure } from './failure.ts';

/** A command that was sent and, as far as is known, not answered. */
export interface CommandInFlight {
  readonly command: ModuleCommand;
  readonly sentAt: number;
  readonly deadlineAt: number;
  /** The command or its answer may be lost, or the base was busy: the next list decides. */
  readonly uncertain: boolean;
  /** The base refused it, because it works on another command for the module. */
  readonly isBusy: boolean;
  /** What an install installs. */
  readonly fingerprint: string | undefined;
  /** An install that uninstalls all other versions of the name first. */
  readonly isReplacing: boolean;
}

/** What is known of one `name:version` on one base. */
export interface ModuleRecord {
  readonly id: ModuleId;
  /** undefined = not on the base. */
  readonly state: ModuleState | undefined;
  /** The base's clock at the newest evidence, where it says so: a list published before it is no news. */
  readonly publishedAt: number | undefined;
  /** When the base last answered a command for it: answers to earlier questions may be older. */
  readonly answeredAt: number;
  /** Since when the state is what it is. */
  readonly since: number;
  /** A list lacked a module that was there: believed when a list that was asked for later lacks it too. */
  readonly missingSince: number | undefined;
  /** The state is from the answer to this, and another version of the name is here: the next list decides. */
  readonly unconfirmed: 'install' | 'switch' | undefined;
  /** It is uninstalled to be installed again, which makes it the active version. */
  readonly isReturning: boolean;
  /** switchBiz did not make it the active version: a new install has to, when none is active. */
  readonly hasSwitchFailed: boolean;
  readonly inFlight: CommandInFlight | undefined;
  /** An uninstall without an answer was given up: until this time it may be in work all the same. */
  readonly doubtedUntil: number;
  /** Failures and crashes in a row; counted from zero once the module has run for `STABLE_MS`. */
  readonly failures: number;
  /** The failure that stands now; undefined while the module is as wanted. */
  readonly failure: Failure | undefined;
  /** The install that failed: another one need not wait for its back-off. */
  readonly failedFingerprint: string | undefined;
  /** No command before this time. */
  readonly retryAt: number;
  /** The installed spec; undefined when an earlier controller installed it. */
  readonly fingerprint: string | undefined;
  /** How many installs of this process may still bring it: their answers have not come. */
  readonly unanswered: number;
  /**
   * Something other than an install for it has brought it to the base: the jar of another module, or something that is
   * not known. No Pod is Ready on it: it is removed, or replaced.
   */
  readonly intruder: 'wrong-jar' | 'unknown' | undefined;
}

export function newRecord(id: ModuleId, now: number): ModuleRecord {
  return {
    id: { name: id.name, version: id.version },
    state: undefined,
    publishedAt: undefined,
    answeredAt: Number.NEGATIVE_INFINITY,
    since: now,
    missingSince: undefined,
    unconfirmed: undefined,
    isReturning: false,
    hasSwitchFailed: false,
    inFlight: undefined,
    doubtedUntil: 0,
    failures: 0,
    failure: undefined,
    failedFingerprint: undefined,
    retryAt: 0,
    fingerprint: undefined,
    unanswered: 0,
    intruder: undefined,
  };
}

/** Each plan of a base asks for those of all its Pods. */
const fingerprints = new WeakMap<ModuleSpec, string>();

/** Two installs with one fingerprint give the same module; a different one needs another BIZ_VERSION. */
export function fingerprintOf(spec: ModuleSpec): string {
  const known = fingerprints.get(spec);
  if (known !== undefined) return known;
  const envs = Object.entries(spec.envs).sort(([a], [b]) => (a < b ? -1 : 1));
  const fingerprint = JSON.stringify([spec.url, spec.args, envs]);
  fingerprints.set(spec, fingerprint);
  return fingerprint;
}

/** The base has been sent a command. */
export function withCommand(record: ModuleRecord, sent: Omit<CommandInFlight, 'uncertain' | 'isBusy'>): ModuleRecord {
  const unanswered = record.unanswered + (sent.command === 'install' ? 1 : 0);
  return { ...record, unanswered, inFlight: { ...sent, uncertain: false, isBusy: false } };
}

export function withState(record: ModuleRecord, state: ModuleState | undefined, now: number): ModuleRecord {
  const since = record.state === state ? record.since : now;
  const intruder = state === undefined ? undefined : record.intruder;
  return { ...record, state, since, missingSince: undefined, intruder };
}

/** A module that ran this long and then ends starts with no failures, as a container of a kubelet does. */
const STABLE_MS = 600_000;

/** A failed command: the next try waits, longer after each failure in a row. */
export function withFailure(
  record: ModuleRecord,
  failure: Failure,
  now: number,
  backoff: BackoffOptions,
): ModuleRecord {
  const failures = record.failures + 1;
  const hasSwitchFailed = record.hasSwitchFailed || failure.reason === 'SwitchError';
  const failedFingerprint = record.inFlight?.fingerprint;
  const retryAt = now + backoffMs(failures, backoff);
  return {
    ...record,
    isReturning: false,
    inFlight: undefined,
    failures,
    failure,
    failedFingerprint,
    hasSwitchFailed,
    retryAt,
  };
}

/** A module that ran and ended by itself: the first restart is at once, later ones wait, as a kubelet's. */
export function withCrash(record: ModuleRecord, failure: Failure, now: number, backoff: BackoffOptions): ModuleRecord {
  const wasStable = record.state === 'ACTIVATED' && now - record.since >= STABLE_MS;
  const failures = (wasStable ? 0 : record.failures) + 1;
  const retryAt = now + backoffMs(failures - 1, backoff);
  return { ...record, failures, failure, failedFingerprint: record.fingerprint, retryAt };
}

/** The module is as wanted; how often it failed before is kept, in case it ends soon again. */
export function withoutFailure(record: ModuleRecord): ModuleRecord {
  if (record.failure === undefined && record.retryAt === 0) return record;
  return { ...record, failure: undefined, failedFingerprint: undefined, retryAt: 0 };
}

/** Running on the base, by a command of this controller or of an earlier one. */
export function isInWork(record: ModuleRecord): boolean {
  return record.inFlight !== undefined || record.state === 'RESOLVED' || record.state === 'UNRESOLVED';
}

/** Nothing of it is on the base, and no command can bring it back. */
export function isGone(record: ModuleRecord | undefined): boolean {
  return record === undefined || (record.state === undefined && record.inFlight === undefined);
}
