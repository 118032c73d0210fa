import type { ModuleRecord } from '../module/module-record.ts';
import { isInWork } from '../module/module-record.ts';
import { isReplacing, type ModuleCommand, type ModuleKey, moduleKeyOf } from '../tunnel/module.ts';
import type { Claim } from './claims.ts';
import { lookAfter, type ModuleDecision } from './module-decision.ts';
import type { Removal } from './removals.ts';

/** A command that a base works on, or that the plan wants to send. */
interface Work {
  readonly key: ModuleKey;
  readonly name: string;
  /** It uninstalls all other versions of the name (`uninstallThenInstall`). */
  readonly isReplacing: boolean;
  /** When the plan has to be made again even if no answer comes. */
  readonly wakeAt?: number;
  /** When the base should be asked for its list: no answer will come for this one. */
  readonly lookAt?: number;
}

interface PlannedWork extends Work {
  readonly command: ModuleCommand;
  /** It waits for all other commands about the name. */
  readonly isPatient: boolean;
}

export interface ConflictInput {
  readonly ledger: {
    readonly askedAt: number;
    readonly installDeadlineMs: number;
    records(): Iterable<ModuleRecord>;
  };
  readonly claims: ReadonlyMap<ModuleKey, Claim>;
  readonly removals: ReadonlyMap<ModuleKey, Removal>;
  readonly now: number;
}

/**
 * The decisions without each command that conflicts with one that is running, or that is planned before it.
 *
 * arklet locks `name:version` for a command. An install with `uninstallThenInstall` locks its own version only, and
 * uninstalls the others without their locks: of two uninstalls of one version at a time, one fails. So while such an
 * install is in work, no other version of its name has a command. About one version, the decisions have no command
 * while one of this process is in work; arklet refuses a command beside one of an earlier process as busy.
 *
 * A version that is uninstalled and installed only to become the active one waits for all others, too: an install that
 * ends after it would take over.
 *
 * In a plan the install goes last. A command that failed before goes after it, so that the install waits for each
 * other version once at most; and a command in work ends with its deadline.
 */
export function withoutConflicts(
  decisions: ReadonlyMap<ModuleKey, ModuleDecision>,
  input: ConflictInput,
): ReadonlyMap<ModuleKey, ModuleDecision> {
  const planned = plannedWorks(decisions, input);
  if (planned.length === 0) return decisions;
  const running = worksOf(input);
  // Nothing else conflicts with anything.
  if (!running.some((work) => work.isReplacing) && !planned.some((work) => work.isPatient)) return decisions;
  const result = new Map(decisions);
  const all = new WorksByName();
  const replacing = new WorksByName();
  const add = (work: Work): void => {
    all.add(work);
    if (work.isReplacing) replacing.add(work);
  };
  for (const work of running) add(work);
  for (const work of inOrder(planned, input)) {
    const blocker = (work.isPatient ? all : replacing).othersOf(work);
    const decision = decisions.get(work.key);
    if (decision && blocker) result.set(work.key, waitingFor(decision, blocker));
    // Also one that waits: what comes after it in the order must not overtake it.
    add(work);
  }
  return result;
}

/** What the works of one name mean for one that has to wait for them. */
type Blocker = Pick<Work, 'wakeAt' | 'lookAt'>;

/** Works by name. To ask for all others of one costs no walk over them: a base may have 2,000 versions of a name. */
class WorksByName {
  /** Two times of different keys suffice: one of them remains when any key is left out. */
  readonly #byName = new Map<
    string,
    { readonly keys: Set<ModuleKey>; readonly wakes: First[]; readonly looks: First[] }
  >();

  add({ name, key, wakeAt, lookAt }: Work): void {
    const known = this.#byName.get(name) ?? { keys: new Set(), wakes: [], looks: [] };
    this.#byName.set(name, known);
    known.keys.add(key);
    if (wakeAt !== undefined) insert(known.wakes, { key, time: wakeAt });
    if (lookAt !== undefined) insert(known.looks, { key, time: lookAt });
  }

  /** The earliest times of all works of the name but those of the same key; undefined where there are none. */
  othersOf({ name, key }: Work): Blocker | undefined {
    const known = this.#byName.get(name);
    if (known === undefined || known.keys.size === (known.keys.has(key) ? 1 : 0)) return undefined;
    const wakeAt = known.wakes.find((first) => first.key !== key)?.time;
    const lookAt = known.looks.find((first) => first.key !== key)?.time;
    return { ...(wakeAt !== undefined && { wakeAt }), ...(lookAt !== undefined && { lookAt }) };
  }
}

interface First {
  readonly key: ModuleKey;
  time: number;
}

/** Keeps the two earliest of different keys, the earliest first. */
function insert(firsts: First[], entry: First): void {
  const known = firsts.find(({ key }) => key === entry.key);
  if (known) known.time = Math.min(known.time, entry.time);
  else firsts.push(entry);
  firsts.sort((one, other) => one.time - other.time).splice(2);
}

/** What the base works on, by commands of this process or of an earlier one. */
function worksOf(input: ConflictInput): Work[] {
  const works: Work[] = [];
  for (const record of input.ledger.records()) {
    const { name } = record.id;
    const key = moduleKeyOf(record.id);
    const { inFlight } = record;
    if (inFlight) works.push({ key, name, isReplacing: inFlight.isReplacing, wakeAt: inFlight.deadlineAt });
    if (record.state === 'DEACTIVATED' && input.now < record.doubtedUntil) {
      works.push({ key, name, isReplacing: false, wakeAt: record.doubtedUntil });
    }
    if (isForeignWork(record, input)) {
      // Nobody knows with which strategy an earlier process sent an install.
      const mayReplace = record.state === 'RESOLVED';
      works.push({ key, name, isReplacing: mayReplace, lookAt: lookAfter(input.ledger, record.since) });
    }
  }
  return works;
}

/** In work by a command of an earlier process, for no longer than an install may take. */
function isForeignWork(record: ModuleRecord, { ledger, now }: ConflictInput): boolean {
  const { state, failure, inFlight } = record;
  if (!isInWork(record) || now - record.since >= ledger.installDeadlineMs) return false;
  if (inFlight === undefined && failure === undefined) return true;
  // The base refuses an uninstall as busy while the install goes on, and that may outlast the uninstall's deadline.
  const isOnlyUninstall = inFlight === undefined || inFlight.command === 'uninstall';
  const hasOnlyUninstallFailed = failure === undefined || failure.reason === 'KillContainerError';
  return state === 'RESOLVED' && isOnlyUninstall && hasOnlyUninstallFailed;
}

function plannedWorks(
  decisions: ReadonlyMap<ModuleKey, ModuleDecision>,
  { claims, removals }: ConflictInput,
): PlannedWork[] {
  const works: PlannedWork[] = [];
  for (const [key, { command, spec, isTakeover }] of decisions) {
    const claimed = claims.get(key)?.spec;
    const name = claimed?.name ?? removals.get(key)?.id.name;
    if (command === undefined || name === undefined) continue;
    const doesReplace = command === 'install' && isReplacing(spec ?? claimed ?? {});
    const isPatient = doesReplace || (command === 'uninstall' && isTakeover === true);
    works.push({ key, name, command, isReplacing: doesReplace, isPatient });
  }
  return works;
}

/** First tries, then those that wait for all others, then what failed before. */
function inOrder(works: readonly PlannedWork[], { ledger }: ConflictInput): PlannedWork[] {
  if (!works.some((work) => work.isPatient)) return [...works];
  const failures = new Map([...ledger.records()].map(({ id, failure }) => [moduleKeyOf(id), failure?.reason]));
  // A module that has ended by itself is no uninstall that failed.
  const hasFailed = ({ key, command }: PlannedWork): boolean =>
    command === 'uninstall' ? failures.get(key) === 'KillContainerError' : failures.get(key) !== undefined;
  const isLast = (work: PlannedWork): boolean => !work.isPatient && hasFailed(work);
  return works.toSorted(
    (one, other) => Number(isLast(one)) - Number(isLast(other)) || Number(one.isPatient) - Number(other.isPatient),
  );
}

function waitingFor({ command: _command, ...decision }: ModuleDecision, blocker: Blocker): ModuleDecision {
  const wakeAt = earliest([decision.wakeAt, blocker.wakeAt]);
  const lookAt = earliest([decision.lookAt, blocker.lookAt]);
  return { ...decision, ...(wakeAt !== undefined && { wakeAt }), ...(lookAt !== undefined && { lookAt }) };
}

function earliest(times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}
