import type { BackoffOptions } from '../queue/backoff.ts';
import type { ModuleCommand, ModuleState, ModuleStatus, OperationResult } from '../tunnel/module.ts';
import { type Failure, type FailureReason, failureOf } from './failure.ts';
import {
  type CommandInFlight,
  isInWork,
  type ModuleRecord,
  withCrash,
  withFailure,
  withoutFailure,
  withState,
} from './module-record.ts';

/** What a message of the base is weighed with. */
export interface Evidence {
  readonly now: number;
  /** The base's clock when it sent the message, where it says so. */
  readonly publishedAt: number | undefined;
  /**
   * When the list was requested. A module counts as absent when a list lacks it that was requested after the first
   * list that lacked it. Where the transport does not show which question is answered, it is the last one.
   */
  readonly askedAt: number;
  /** `askedAt` is known exactly (HTTP), so the list may be as old as its question. */
  readonly isTied: boolean;
  /** An install that an earlier controller sent may still be in work. */
  readonly mayBeAdopted: boolean;
  readonly backoff: BackoffOptions;
}

/** A base clock that jumped further than this did not just deliver two messages out of order. */
const REORDER_WINDOW_MS = 30_000;

/** An absent module with an unanswered install: after this long, and two lists without it, the command was lost. */
const LOST_COMMAND_MS = 60_000;
/** An agent deactivates a module as soon as it works on its uninstall: one still active after this long never came. */
const LOST_UNINSTALL_MS = 10_000;
/** The same when the link or the base was gone meanwhile, so that a loss is likely. */
const UNCERTAIN_COMMAND_MS = 5_000;

/** Another command for the module is unfinished on the base: the lists show its result. */
const BUSY_WAIT_MS = 5_000;

/** Whether a message is older than one that was heard already. */
export function isBefore(publishedAt: number | undefined, heardAt: number | undefined): boolean {
  if (publishedAt === undefined || heardAt === undefined) return false;
  return publishedAt < heardAt && heardAt - publishedAt < REORDER_WINDOW_MS;
}

/** Whether what a list says of a module may be older than what is known of it. */
function isStale(record: ModuleRecord, { publishedAt, askedAt, isTied }: Evidence): boolean {
  return isBefore(publishedAt, record.publishedAt) || (isTied && askedAt < record.answeredAt);
}

/** The record after a list that has the module. */
export function seenPresent(record: ModuleRecord, { state }: ModuleStatus, evidence: Evidence): ModuleRecord {
  const { now, publishedAt } = evidence;
  if (isStale(record, evidence)) return record;
  const next = {
    ...withState(crashed(record, state, evidence), state, now),
    publishedAt,
    unconfirmed: undefined,
    hasSwitchFailed: record.hasSwitchFailed && state !== 'ACTIVATED',
  };
  // First: an uninstall in work deactivates a module too.
  if (record.inFlight) return presentInFlight(next, record.inFlight, evidence);
  if (record.unconfirmed === 'switch' && state === 'DEACTIVATED') return switchHadNoEffect(next, evidence);
  // That it runs ends the failure of an install, not the one of an uninstall.
  const isWell = state === 'ACTIVATED' && record.failure?.reason !== 'KillContainerError';
  return isWell ? withoutFailure(next) : next;
}

/** A command is under way, and the list may say that it has ended, or that it never came. */
function presentInFlight(next: ModuleRecord, inFlight: CommandInFlight, { now, askedAt }: Evidence): ModuleRecord {
  const { state } = next;
  if (inFlight.command === 'install' && (state === 'ACTIVATED' || state === 'DEACTIVATED')) {
    return { ...withoutFailure(next), isReturning: false, inFlight: undefined, fingerprint: inFlight.fingerprint };
  }
  if (inFlight.command === 'switch' && state === 'ACTIVATED') return { ...withoutFailure(next), inFlight: undefined };
  const isUntouched = inFlight.command === 'uninstall' && state === 'ACTIVATED' && askedAt > inFlight.sentAt;
  const isLost = isUntouched && now - inFlight.sentAt >= LOST_UNINSTALL_MS;
  // Deactivated is what a module is while the agent uninstalls it, and what a replaced version is before: a command
  // that was lost must not hold its Pod until the deadline. A base that is busy does work on it.
  const isYoung = askedAt <= inFlight.sentAt || now - inFlight.sentAt < LOST_UNINSTALL_MS;
  const isAtWork = inFlight.command === 'uninstall' && state === 'DEACTIVATED' && (isYoung || inFlight.isBusy);
  const isSettled = inFlight.uncertain && !isAtWork && !isInWork({ ...next, inFlight: undefined });
  if (!isLost && !isSettled) return next;
  const isDoubted = inFlight.command === 'uninstall' && state === 'DEACTIVATED';
  return { ...next, inFlight: undefined, doubtedUntil: isDoubted ? inFlight.deadlineAt : next.doubtedUntil };
}

/** The record after a list that lacks the module. */
export function seenAbsent(record: ModuleRecord, evidence: Evidence): ModuleRecord {
  const { now, askedAt } = evidence;
  if (isStale(record, evidence)) return record;
  const { inFlight } = record;
  // One that was asked for before the command may have been drawn up before the module was there.
  if (inFlight?.command === 'uninstall') return askedAt < inFlight.sentAt ? record : uninstalled(record, now);
  if (inFlight?.command === 'install') return absentInstall(record, inFlight, evidence);
  if (record.state === undefined) return record;
  const isConfirmed = record.missingSince !== undefined && askedAt >= record.missingSince;
  if (!isConfirmed) return { ...record, missingSince: record.missingSince ?? now };
  if (isLeftByFailure(record)) return { ...withState(record, undefined, now), fingerprint: undefined };
  const vanished = crash(record, 'ModuleVanished', 'the base no longer lists the module', evidence);
  return { ...withState(vanished, undefined, now), inFlight: undefined, fingerprint: undefined };
}

/**
 * The record after a list that has the module DEACTIVATED. `isBeside`: another version is active or may become it, so
 * this is as it should be. Alone, nothing on the base would ever activate the module again: it has ended.
 */
export function seenDeactivated(record: ModuleRecord, isBeside: boolean, evidence: Evidence): ModuleRecord {
  if (record.state !== 'DEACTIVATED' || record.inFlight) return record;
  if (isBeside) return record.failure?.reason === 'BizDeactivated' ? withoutFailure(record) : record;
  if (record.failure && record.failure.reason !== 'SwitchError') return record;
  return crash(record, 'BizDeactivated', 'no version of the module is active on the base', evidence);
}

/** The record of a module that is missing in the list of a restarted base. */
export function lostByRestart(record: ModuleRecord, now: number): ModuleRecord {
  const gone = { isReturning: false, inFlight: undefined, fingerprint: undefined, unanswered: 0 };
  const lost = { ...withState(record, undefined, now), ...gone };
  // What was not there yet has not ended: only its command is lost, and what kept it from starting may be gone.
  if (record.state === undefined) return { ...withoutFailure(lost), failures: 0 };
  const failure: Failure = { reason: 'BaseRestarted', message: 'the base process restarted' };
  return { ...lost, failure, failures: 0, retryAt: 0 };
}

/** The record after an answer; `hasOtherVersion`: another version of the name is on the base. */
export function afterResult(
  record: ModuleRecord,
  result: OperationResult,
  hasOtherVersion: boolean,
  evidence: Evidence,
): ModuleRecord {
  const { now, backoff } = evidence;
  const asked = record.inFlight?.command === result.command ? record.inFlight : undefined;
  if (result.outcome === 'busy') {
    if (asked === undefined) return record;
    return { ...record, inFlight: { ...asked, uncertain: true, isBusy: true }, retryAt: now + BUSY_WAIT_MS };
  }
  if (result.outcome === 'failed') {
    if (asked === undefined) return record;
    const unanswered = Math.max(0, record.unanswered - (asked.command === 'install' ? 1 : 0));
    return withFailure({ ...endOfWork(record, now), unanswered }, failureOf(result), now, backoff);
  }
  const origin = result.command === 'install' ? withOrigin(record, result, evidence) : record;
  // A list that has shown the end of the command says more of the state.
  if (asked === undefined && isBefore(evidence.publishedAt, record.publishedAt)) return origin;
  if (result.command === 'uninstall') return uninstalled(record, now);
  if (result.command === 'switch') return switched(record, now);
  return installed(origin, result, hasOtherVersion, now);
}

/** Whether an install of this process has brought the module. */
function withOrigin(record: ModuleRecord, { outcome }: OperationResult, { mayBeAdopted }: Evidence): ModuleRecord {
  if (outcome === 'done') return { ...record, unanswered: 0, intruder: undefined };
  // The only install that was sent has not brought it.
  const isForeign = record.unanswered === 1 && record.inFlight?.uncertain !== true && !mayBeAdopted;
  return { ...record, intruder: record.intruder ?? (isForeign ? 'unknown' : undefined) };
}

/** The record of a module that the jar of another one has brought to the base. */
export function broughtByWrongJar(record: ModuleRecord, { state }: ModuleStatus, now: number): ModuleRecord {
  return { ...withState(record, state, now), intruder: 'wrong-jar' };
}

/** It is no longer running; the list shows what it left behind. */
function endOfWork(record: ModuleRecord, now: number): ModuleRecord {
  return record.state === 'RESOLVED' || record.state === 'UNRESOLVED' ? withState(record, undefined, now) : record;
}

function installed(record: ModuleRecord, result: OperationResult, hasOtherVersion: boolean, now: number): ModuleRecord {
  const fingerprint = record.inFlight?.fingerprint ?? record.fingerprint;
  const cleared = { ...record, isReturning: false, inFlight: undefined, fingerprint };
  // REPEAT_BIZ says that the module is there, not in which state: the list shows it.
  if (result.outcome === 'already') return { ...cleared, state: record.state ?? 'RESOLVED', unconfirmed: 'install' };
  const next = withoutFailure(withState(cleared, result.state ?? 'ACTIVATED', now));
  return { ...next, unconfirmed: hasOtherVersion ? 'install' : undefined, hasSwitchFailed: false };
}

/** Answered as done, but the base still has another version active: it must not be sent over and over. */
function switchHadNoEffect(record: ModuleRecord, { now, backoff }: Evidence): ModuleRecord {
  const message = 'switchBiz had no effect: the base lists the version as DEACTIVATED';
  return withFailure(record, { reason: 'SwitchError', message }, now, backoff);
}

/** It deactivated the other versions: the next list shows it. */
function switched(record: ModuleRecord, now: number): ModuleRecord {
  return { ...withoutFailure(withState(record, 'ACTIVATED', now)), inFlight: undefined, unconfirmed: 'switch' };
}

function uninstalled(record: ModuleRecord, now: number): ModuleRecord {
  const gone = { inFlight: undefined, fingerprint: undefined, unanswered: 0 };
  return { ...withoutFailure(withState(record, undefined, now)), ...gone };
}

const TIMEOUT_REASONS: Readonly<Record<ModuleCommand, FailureReason>> = {
  install: 'InstallTimeout',
  uninstall: 'KillContainerError',
  switch: 'SwitchError',
};

/** The record after a switch whose connection broke: it can be repeated, but not without a pause. */
export function switchUnanswered(record: ModuleRecord, now: number, backoff: BackoffOptions): ModuleRecord {
  const message = 'the connection broke before switchBiz was answered';
  return withFailure(record, { reason: 'SwitchError', message }, now, backoff);
}

/** The record of a module that was in work for longer than an install may take. */
export function stoodStill(record: ModuleRecord, now: number, backoff: BackoffOptions): ModuleRecord {
  const message = 'the module has been installing for longer than the install deadline';
  return withFailure(record, { reason: 'InstallTimeout', message }, now, backoff);
}

/** The record after the deadline of its command. */
export function timedOut(
  record: ModuleRecord,
  { command, sentAt, deadlineAt }: CommandInFlight,
  now: number,
  backoff: BackoffOptions,
): ModuleRecord {
  const message = `the base did not answer ${command} within ${Math.round((deadlineAt - sentAt) / 1000)} s`;
  return withFailure(record, { reason: TIMEOUT_REASONS[command], message }, now, backoff);
}

/** A base lists a module only once its jar is there, so absence during an install proves nothing for long. */
function absentInstall(record: ModuleRecord, inFlight: CommandInFlight, { now, askedAt }: Evidence): ModuleRecord {
  const lostAfterMs = inFlight.uncertain ? UNCERTAIN_COMMAND_MS : LOST_COMMAND_MS;
  if (now - inFlight.sentAt < lostAfterMs || askedAt < inFlight.sentAt) return record;
  if (record.missingSince === undefined) return { ...record, missingSince: now };
  if (askedAt < record.missingSince) return record;
  return { ...withState(record, undefined, now), inFlight: undefined };
}

/** A module that ended by itself: it was (or may have been) fine, nobody commanded it, and now it is not. */
function crashed(record: ModuleRecord, state: ModuleState, evidence: Evidence): ModuleRecord {
  if (record.inFlight || record.state === state) return record;
  if (isLeftByFailure(record)) return record;
  if (state === 'BROKEN') return crash(record, 'ModuleBroken', 'the base lists the module as BROKEN', evidence);
  if (state === 'STOPPED') return crash(record, 'ModuleStopped', 'the base lists the module as STOPPED', evidence);
  return record;
}

/** What a failed install has left behind, or was seen as while it was in work: its end is no second failure. */
function isLeftByFailure({ failure, state }: ModuleRecord): boolean {
  return failure !== undefined && state !== 'ACTIVATED' && state !== 'DEACTIVATED';
}

function crash(record: ModuleRecord, reason: FailureReason, message: string, evidence: Evidence): ModuleRecord {
  return withCrash(record, { reason, message }, evidence.now, evidence.backoff);
}
