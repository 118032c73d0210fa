import { ANNOTATION } from '../labels.ts';
import { isInWork, type ModuleRecord } from '../module/module-record.ts';
import type { ModuleCommand, ModuleSpec } from '../tunnel/module.ts';
import type { Claim } from './claims.ts';
import type { ModuleView, WaitingView } from './module-view.ts';
import { hasEverRun, type Succession } from './succession.ts';
import { repeatedReason, type WaitingReason } from './waiting-reason.ts';

/** What to do about one `name:version` of a base whose list is known. */
export interface ModuleDecision {
  readonly command?: ModuleCommand;
  /** What an install installs. */
  readonly spec?: ModuleSpec;
  /** View of the module for the Pods that claim it. */
  readonly view: ModuleView;
  /** The module stays: a leaving Pod need not wait for its end. */
  readonly keeps: boolean;
  /** When the base should be asked for its list. */
  readonly lookAt?: number;
  readonly wakeAt?: number;
  /** It is being made the active version of its name, or is about to be. */
  readonly isTakeover?: boolean;
}

export interface ModuleDecisionInput {
  readonly record: ModuleRecord | undefined;
  /** undefined = no living Pod wants it: it has to go. */
  readonly claim: Claim | undefined;
  /** Why it must not be installed. */
  readonly fault?: string | undefined;
  readonly succession: Succession;
  /** A command about another version of the name may have ended that this one is active, and no list shows it yet. */
  readonly isInDoubt: boolean;
  /** The version that takes over when this one has to go. */
  readonly heir: Heir;
  readonly canSwitch: boolean;
  /** The base makes a version the active one of its name when it installs it; undefined: not known. */
  readonly activatesNew: boolean | undefined;
  readonly askedAt: number;
  readonly now: number;
}

/**
 * What living Pods still ask for of the name of a version that has to go: nothing that is on the base, a version that is
 * on the base, or one that is being made active, or is about to be.
 */
export type Heir = 'none' | 'here' | 'coming';

/** A command is usually answered; if not, the list is looked at this often. */
const LOOK_AT_SILENT_COMMAND_MS = 15_000;
/** A module in work whose end nobody will report is looked at this often. */
const LOOK_AT_WORK_MS = 3_000;

export function decideModule(input: ModuleDecisionInput): ModuleDecision {
  const { replacer } = input.succession;
  return input.claim && replacer ? decideReplaced(input, replacer) : decideOwn(input);
}

function decideOwn(input: ModuleDecisionInput): ModuleDecision {
  const { record, claim } = input;
  if (record?.inFlight) return decideInFlight(input, record);
  if (claim === undefined) return decideRemoval(input);
  if (record === undefined || record.state === undefined) return decideInstall(input, claim, record);
  if (record.missingSince !== undefined || record.unconfirmed !== undefined) {
    // Not yet believed; asked for once more, and shown as it was.
    return { view: { kind: 'Unknown' }, keeps: true, lookAt: lookAfter(input, record.missingSince ?? record.since) };
  }
  if (claim.isReplacement) return decideReplacement(input, record);
  return decidePresent(input, record);
}

/** A younger Pod replaces this version: the base removes it with the install of that one, else the controller does. */
function decideReplaced(input: ModuleDecisionInput, replacer: NonNullable<Succession['replacer']>): ModuleDecision {
  const { spec, owner } = replacer.claim;
  const message = `version ${spec.version} of Pod ${owner.namespace}/${owner.name} replaces it on this base (${ANNOTATION.installStrategy})`;
  const { record } = input;
  const isEnded = record?.state === undefined;
  const view: ModuleView = { kind: 'Waiting', reason: 'ModuleReplaced', message, isEnded };
  if (record?.inFlight) return { ...decideInFlight(input, record), view };
  if (record?.missingSince !== undefined) return { view, keeps: true, lookAt: lookAfter(input, record.missingSince) };
  if (!replacer.isThere) return { view, keeps: true };
  return { ...decideRemoval(input), view, keeps: true };
}

function decideInFlight(input: ModuleDecisionInput, record: ModuleRecord): ModuleDecision {
  const { inFlight } = record;
  const sentAt = inFlight?.sentAt ?? input.now;
  const everyMs = inFlight?.uncertain ? LOOK_AT_WORK_MS : LOOK_AT_SILENT_COMMAND_MS;
  // A further try shows the failure before it until it has ended.
  const view: ModuleView = record.failure
    ? waitingFor(record, record.failure.reason, record.failure.message)
    : { kind: 'Installing', sinceMs: sentAt, isSwitch: inFlight?.command === 'switch' };
  const times = { lookAt: Math.max(input.askedAt, sentAt) + everyMs, wakeAt: inFlight?.deadlineAt ?? input.now };
  return { view, keeps: false, ...times, isTakeover: inFlight?.command === 'switch' };
}

/**
 * The active version of a name goes when another one that a living Pod asks for is active. Whether it is the active one
 * shows when its install or switch has ended and a list was read.
 */
function decideRemoval(input: ModuleDecisionInput): ModuleDecision {
  const { record, heir, now } = input;
  const view: ModuleView = { kind: 'Unknown' };
  if (record === undefined || record.state === undefined) return { view, keeps: false };
  const isOpen = record.unconfirmed !== undefined || (isInWork(record) && record.failure === undefined);
  if (heir !== 'none' && isOpen) return { view, keeps: false, lookAt: lookAfter(input, record.since) };
  if (heir === 'coming' && record.state === 'ACTIVATED') return { view, keeps: false };
  const isBlocked = record.failure === undefined || record.failure.reason === 'KillContainerError';
  if (isBlocked && now < record.retryAt) return { view, keeps: false, wakeAt: record.retryAt };
  return { view, keeps: false, command: 'uninstall' };
}

function decideInstall(input: ModuleDecisionInput, claim: Claim, record: ModuleRecord | undefined): ModuleDecision {
  const { now, fault, succession } = input;
  if (fault !== undefined) {
    return {
      view: { kind: 'Waiting', reason: 'CreateContainerConfigError', message: fault, isEnded: true },
      keeps: false,
    };
  }
  const isOther = record?.failedFingerprint !== undefined && record.failedFingerprint !== claim.fingerprint;
  const isBlocked = record !== undefined && now < record.retryAt && !isOther;
  const view: ModuleView =
    record?.failure === undefined || isOther
      ? { kind: 'Installing', sinceMs: now }
      : waitingFor(record, record.failure.reason, record.failure.message);
  if (isBlocked) return { view, keeps: false, wakeAt: record.retryAt };
  // The strategy would take a younger Pod's version off as well.
  const { strategy: _strategy, ...plain } = claim.spec;
  return { view, keeps: false, command: 'install', spec: succession.hasYounger ? plain : claim.spec };
}

const WHY_REPLACED = {
  changed: 'its URL, args or env changed',
  'wrong-jar': 'the jar of another module has brought this name and version to the base',
  unknown: 'something other than this controller has installed this name and version on the base',
} as const;

function decideReplacement({ now }: ModuleDecisionInput, record: ModuleRecord): ModuleDecision {
  const why = `the module is uninstalled first, since ${WHY_REPLACED[record.intruder ?? 'changed']}`;
  const message = record.failure === undefined ? why : `${why}: ${record.failure.message}`;
  const view: ModuleView = {
    kind: 'Waiting',
    reason: record.failure?.reason ?? 'ContainerCreating',
    message,
    isEnded: true,
  };
  if (now < record.retryAt) return { view, keeps: false, wakeAt: record.retryAt };
  return { view, keeps: false, command: 'uninstall' };
}

function decidePresent(input: ModuleDecisionInput, record: ModuleRecord): ModuleDecision {
  switch (record.state) {
    case 'ACTIVATED':
      return { view: { kind: input.isInDoubt ? 'Unknown' : 'Running' }, keeps: true };
    case 'DEACTIVATED':
      return decideDeactivated(input, record);
    case 'BROKEN':
    case 'STOPPED':
      return decideBroken(input, record);
    default:
      return decideForeignWork(input, record);
  }
}

/** Beside the active version, or alone: then nothing on the base would ever make it active again. */
function decideDeactivated(input: ModuleDecisionInput, record: ModuleRecord): ModuleDecision {
  const { canSwitch, succession } = input;
  if (!succession.isNewest && !succession.isNext) return { view: deactivated(succession), keeps: true };
  const isAlone = record.failure?.reason === 'BizDeactivated';
  // An uninstall that failed may have ended part of it.
  const hasEnded = isAlone || record.failure?.reason === 'KillContainerError';
  if ((isAlone && record.hasSwitchFailed) || (hasEnded && !canSwitch)) return decideBroken(input, record);
  // Meanwhile a version serves that a Pod asks for, or one that goes, which waits for this one because it has run.
  const isServed = succession.isServed ? !canSwitch : input.claim !== undefined && hasEverRun(input.claim, record);
  const needsInstall = !canSwitch || record.hasSwitchFailed;
  if (needsInstall && isServed && input.activatesNew !== false) return decideReinstall(input, record);
  return canSwitch ? decideSwitch(input, record) : { view: deactivated(succession), keeps: true };
}

function decideSwitch({ now }: ModuleDecisionInput, record: ModuleRecord): ModuleDecision {
  if (record.failure?.reason !== 'SwitchError') {
    const view: ModuleView = { kind: 'Installing', sinceMs: now, isSwitch: true };
    // The back-off of a crash is for a new install: being made active takes no time.
    const isEarly = record.failure?.reason !== 'BizDeactivated' && now < record.retryAt;
    return { view, keeps: true, isTakeover: true, ...(isEarly ? { wakeAt: record.retryAt } : { command: 'switch' }) };
  }
  const view = { ...waitingFor(record, 'SwitchError', record.failure.message), isEnded: false };
  return now < record.retryAt
    ? { view, keeps: true, wakeAt: record.retryAt }
    : { view, keeps: true, isTakeover: true, command: 'switch' };
}

/** Whether a version that is DEACTIVATED can be made active while one that goes still is. */
export function canTakeOver(
  claim: Claim,
  record: ModuleRecord,
  { canSwitch, activatesNew, now }: Pick<ModuleDecisionInput, 'canSwitch' | 'activatesNew' | 'now'>,
): boolean {
  const { hasSwitchFailed, failure, retryAt } = record;
  if (canSwitch && (!hasSwitchFailed || now >= retryAt)) return true;
  const isWell = failure === undefined || failure.reason === 'SwitchError';
  return isWell && activatesNew !== false && hasEverRun(claim, record);
}

/** Whether an install makes the version the active one. One that has run may have lost that to a newer install. */
export function mayActivate({
  claim,
  record,
  activatesNew,
}: Pick<ModuleDecisionInput, 'claim' | 'record' | 'activatesNew'>): boolean {
  return activatesNew ?? (claim !== undefined && hasEverRun(claim, record));
}

/** The base makes a version active only by its install: it is uninstalled, and installed when it is gone. */
function decideReinstall({ now }: ModuleDecisionInput, record: ModuleRecord): ModuleDecision {
  const message = 'the base activates a version only when it installs it: the module is installed again';
  const view: ModuleView =
    record.failure === undefined
      ? { kind: 'Waiting', reason: 'BizDeactivated', message, isEnded: true, isExpected: true }
      : waitingFor(record, record.failure.reason, record.failure.message);
  // The back-off of a switch that failed is for another switch.
  const isDue = now >= record.retryAt || record.failure?.reason === 'SwitchError';
  if (isDue) return { view, keeps: true, isTakeover: true, command: 'uninstall' };
  return { view, keeps: true, isTakeover: record.failure === undefined, wakeAt: record.retryAt };
}

/** arklet refuses to install over a broken module: it is uninstalled, and installed when it is gone. */
function decideBroken({ now }: ModuleDecisionInput, record: ModuleRecord): ModuleDecision {
  const view = waitingFor(
    record,
    record.failure?.reason ?? 'ModuleBroken',
    record.failure?.message ?? 'the module is broken',
  );
  return now < record.retryAt
    ? { view, keeps: true, wakeAt: record.retryAt }
    : { view, keeps: true, command: 'uninstall' };
}

/** In work by a command of an earlier controller, or by one whose deadline is over. */
function decideForeignWork(input: ModuleDecisionInput, record: ModuleRecord): ModuleDecision {
  const { failure } = record;
  const lookAt = lookAfter(input, record.since);
  if (failure === undefined) {
    return { view: { kind: 'Installing', sinceMs: record.since }, keeps: true, lookAt };
  }
  const view = waitingFor(record, failure.reason, failure.message);
  if (input.now < record.retryAt) return { view, keeps: true, lookAt, wakeAt: record.retryAt };
  return { view, keeps: true, command: 'uninstall', lookAt };
}

function waitingFor({ failures }: ModuleRecord, reason: WaitingReason, message: string): WaitingView {
  return { kind: 'Waiting', reason: repeatedReason(reason, failures), message, isEnded: true };
}

/** Two versions of a name are on the base and the other one is active. */
function deactivated({ successor, coming }: Succession): ModuleView {
  const taker = successor ?? coming;
  if (taker !== undefined) {
    const verb =
      successor === undefined ? 'takes over on this base when it is installed' : 'has taken over on this base';
    const message = `version ${taker.spec.version} of the module ${verb}`;
    return { kind: 'Waiting', reason: 'BizDeactivated', message, isEnded: false, isExpected: true };
  }
  const message =
    'the base keeps another version of the module active; start it with -Dactivate.new.module=true to have the newest one active';
  return { kind: 'Waiting', reason: 'BizDeactivated', message, isEnded: false };
}

/** When the base should be asked for its list, if it was last asked at `askedAt` and `suspectedAt` needs an answer. */
export function lookAfter({ askedAt }: { readonly askedAt: number }, suspectedAt: number): number {
  return askedAt < suspectedAt ? suspectedAt : askedAt + LOOK_AT_WORK_MS;
}
