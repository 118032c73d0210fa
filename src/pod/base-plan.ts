import { VERSION_ENV } from '../labels.ts';
import type { ModuleRecord } from '../module/module-record.ts';
import { fingerprintOf, isGone } from '../module/module-record.ts';
import { isReplacing, type ModuleId, type ModuleKey, type ModuleSpec, moduleKeyOf } from '../tunnel/module.ts';
import { type Claim, claimsOf } from './claims.ts';
import { withoutConflicts } from './command-conflicts.ts';
import { Heirs, Takeovers } from './heirs.ts';
import { canTakeOver, decideModule, type Heir, type ModuleDecision } from './module-decision.ts';
import { type ContainerModule, containerModulesOf, installFaultOf } from './module-spec.ts';
import type { ContainerView, WaitingView } from './module-view.ts';
import { NameOwners, type OwnerOf } from './name-owners.ts';
import type { HeldPods } from './pod-memory.ts';
import { isRunning } from './pre-stop.ts';
import {
  failedKillsOf,
  isLiving,
  type PendingRemoval,
  podsByFate,
  type Removal,
  removalsOf,
  type SleepUntil,
} from './removals.ts';
import { Successions } from './succession.ts';
import { byCreation, type VPod } from './vpod.ts';
import { NAME_TAKEN } from './waiting-reason.ts';

/** The part of a ModuleLedger that the plan reads. */
export interface LedgerView {
  readonly isKnown: boolean;
  readonly askedAt: number;
  readonly installDeadlineMs: number;
  readonly activatesNew: boolean | undefined;
  get(key: ModuleKey): ModuleRecord | undefined;
  records(): Iterable<ModuleRecord>;
}

export type PlannedCommand =
  | { readonly command: 'install'; readonly spec: ModuleSpec; readonly pod: VPod }
  | {
      readonly command: 'uninstall' | 'switch';
      readonly id: ModuleId;
      readonly pod: VPod | undefined;
      /** It is uninstalled to be installed again, which makes it the active version. */
      readonly isReturning?: boolean;
    };

export interface BasePlanInput {
  /** All vPods bound to the base, in any order. */
  readonly pods: readonly VPod[];
  /** Those of them that are not admitted: they claim nothing, and nothing has to be removed for them. */
  readonly unadmitted: HeldPods;
  /** Modules of Pods that went without a wait: to be removed unless somebody claims them. */
  readonly pendingRemovals: ReadonlyMap<ModuleKey, PendingRemoval>;
  readonly ledger: LedgerView;
  readonly sleepUntil: SleepUntil;
  /** Names of the modules of Pods whose status could not be written: no install takes versions of these away. */
  readonly unwritten: ReadonlySet<string>;
  /** The base takes a command that sets the active version of a name. */
  readonly canSwitch: boolean;
  readonly ownerOf: OwnerOf;
  readonly now: number;
}

export interface BasePlan {
  /** Uninstalls first. The base may work on all of them at a time. */
  readonly commands: readonly PlannedCommand[];
  /** What each living Pod's containers should show, oldest Pod first. */
  readonly views: ReadonlyMap<VPod, readonly ContainerView[]>;
  /** Living Pods that are shown as running, and whose modules another Pod is about to replace. */
  readonly replaced: readonly VPod[];
  /** Deleting Pods of which nothing is left on the base. */
  readonly finished: readonly VPod[];
  /** Deleting Pods whose uninstall failed, with the base's words. */
  readonly failedKills: ReadonlyMap<VPod, string>;
  readonly settledRemovals: readonly (readonly [ModuleKey, PendingRemoval])[];
  /** Modules of the base that no Pod asks for, and that are not about to go; undefined: no list was read. */
  readonly unknown: readonly ModuleId[] | undefined;
  readonly isWanted: (key: ModuleKey) => boolean;
  /** Whether modules of the Pods share a name: then the statuses of Pods decide which of them goes before another. */
  readonly hasRivals: () => boolean;
  /** The module was installed for a Pod of a namespace that no longer owns the name. */
  readonly isOfFormerOwner: (key: ModuleKey) => boolean;
  /** The base should be asked for its list now. */
  readonly askList: boolean;
  /** When the plan should be made again even if nothing happens. */
  readonly wakeAt: number | undefined;
}

/** Interval at which an awaited list is asked for again. */
export const ASK_AGAIN_MS = 5_000;

/**
 * Decides the commands for a base and the statuses of its Pods: pure, and the same from any starting point,
 * so that it does not matter what was missed. Nothing is commanded before the base's own list was read.
 * Containers whose module name belongs to another namespace wait, and decide nothing. The other containers of that Pod
 * wait too, unless their modules were installed already.
 */
export function planBase(input: BasePlanInput): BasePlan {
  const { pods, unadmitted, pendingRemovals, ledger, sleepUntil, unwritten, canSwitch, now } = input;
  const ordered = [...pods].sort(byCreation);
  const admitted = unadmitted.size === 0 ? ordered : ordered.filter(({ uid }) => !unadmitted.has(uid));
  const { living, sleeping, leaving } = podsByFate(admitted, sleepUntil, now);
  const recordOf = (key: ModuleKey): ModuleRecord | undefined => ledger.get(key);
  const owners = nameOwnersOf({ ...input, pods: admitted });
  const specsOf = (pod: VPod): readonly ModuleSpec[] => owners.specsOf(pod);
  const claims = claimsOf({ living, others: () => admitted.filter((pod) => !isLiving(pod)), recordOf, specsOf });
  const removals = removalsOf(leaving, pendingRemovals, specsOf);
  for (const [key, id] of wrongModulesIn(ledger)) if (!removals.has(key)) removals.set(key, { id, pod: undefined });
  const replaced = living.filter(({ uid }) => now < (sleepUntil.get(uid) ?? 0));
  const serving = new Map(
    [...sleeping, ...replaced].flatMap((pod) => specsOf(pod).map((spec) => [moduleKeyOf(spec), spec.name])),
  );
  // Few ask.
  let lost: ReadonlySet<ModuleKey> | undefined;
  const decisions = ledger.isKnown
    ? decide({
        claims,
        removals,
        serving,
        servingNames: new Set(serving.values()),
        unwritten,
        ledger,
        canSwitch,
        now,
      })
    : new Map<ModuleKey, ModuleDecision>();
  const isLeft = (key: ModuleKey): boolean =>
    !ledger.isKnown || (decisions.get(key)?.keeps !== true && !isGone(ledger.get(key)));
  const deleting = leaving.filter((pod) => pod.isDeleting);
  const views = viewsOfAll(ordered, unadmitted, { owners, ledger, claims, decisions });
  const isWanted = (key: ModuleKey): boolean => claims.has(key) || removals.has(key) || serving.has(key);
  return {
    commands: commandsOf(decisions, claims, removals),
    views,
    replaced: replacedIn(views),
    finished: [
      ...deleting.filter((pod) => !specsOf(pod).some((spec) => isLeft(moduleKeyOf(spec)))),
      ...ordered.filter((pod) => pod.isDeleting && unadmitted.has(pod.uid)),
    ],
    failedKills: failedKillsOf(deleting, (key) => (isLeft(key) ? ledger.get(key) : undefined), specsOf),
    settledRemovals: [...pendingRemovals].filter(([key]) => !isLeft(key)),
    unknown: ledger.isKnown ? unknownIn(ledger, isWanted) : undefined,
    isWanted,
    hasRivals: () => {
      const names = admitted.flatMap(specsOf).map(({ name }) => name);
      return new Set(names).size < names.length;
    },
    isOfFormerOwner: (key) => {
      lost ??= new Set(admitted.flatMap((pod) => owners.lostSpecsOf(pod)).map(moduleKeyOf));
      return lost.has(key);
    },
    ...attention(ledger, {
      decisions,
      hasWork: claims.size + removals.size > 0,
      ends: [...sleeping, ...replaced].map(({ uid }) => sleepUntil.get(uid) ?? now).filter(Number.isFinite),
      now,
    }),
  };
}

/** Owners of module names, as the plan of the same input sees them. */
export function nameOwnersOf({ pods, pendingRemovals, ledger, ownerOf }: NameOwnersSources): NameOwners {
  const isLeft = (key: ModuleKey): boolean => !ledger.isKnown || !isGone(ledger.get(key));
  return new NameOwners({ pods, pendingRemovals, isLeft, ownerOf });
}

export type NameOwnersSources = Pick<BasePlanInput, 'pods' | 'pendingRemovals' | 'ownerOf'> & {
  readonly ledger: Pick<LedgerView, 'isKnown' | 'get'>;
};

interface Decided {
  readonly claims: ReadonlyMap<ModuleKey, Claim>;
  readonly removals: ReadonlyMap<ModuleKey, Removal>;
  /** Modules of Pods in their `preStop.sleep`, deleted or replaced, with the module's name: nothing takes these away. */
  readonly serving: ReadonlyMap<ModuleKey, string>;
  readonly servingNames: ReadonlySet<string>;
  readonly unwritten: ReadonlySet<string>;
  readonly ledger: LedgerView;
  readonly canSwitch: boolean;
  readonly now: number;
}

/** What stays first: a version that has to go may have to wait until another one of its name is active. */
function decide(decided: Decided): ReadonlyMap<ModuleKey, ModuleDecision> {
  const { claims, removals, ledger, canSwitch, now } = decided;
  const { activatesNew, askedAt } = ledger;
  const recordOf = (key: ModuleKey): ModuleRecord | undefined => ledger.get(key);
  const activation = { canSwitch, activatesNew };
  const successions = new Successions(claims, recordOf, (claim, record) =>
    canTakeOver(claim, record, { ...activation, now }),
  );
  const decisions = new Map<ModuleKey, ModuleDecision>();
  const decideOf = (key: ModuleKey, claim: Claim | undefined, heir: Heir): ModuleDecision => {
    const fault = claim && installFaultOf(claim.owner);
    const succession = successions.of(key);
    const isInDoubt = claim !== undefined && takeovers.hasOther(claim.spec.name, key);
    const base = { ...activation, askedAt, now };
    const decision = decideModule({ record: recordOf(key), claim, fault, succession, isInDoubt, heir, ...base });
    const held = isHeldBack(decision, key, decided) ? withoutCommand(decision) : decision;
    decisions.set(key, held);
    return held;
  };
  const takeovers = new Takeovers(ledger.records());
  const heirs = new Heirs(activation);
  const isReplaced = (key: ModuleKey): boolean => successions.of(key).replacer !== undefined;
  for (const [key, claim] of claims) {
    if (isReplaced(key)) continue;
    const decision = decideOf(key, claim, 'none');
    if (removals.size > 0 || successions.hasRivals) heirs.add(claim, recordOf(key), decision);
  }
  for (const [key, claim] of claims) if (isReplaced(key)) decideOf(key, claim, heirs.of(claim.spec.name, undefined));
  for (const [key, removal] of removals) {
    if (!claims.has(key)) decideOf(key, undefined, heirs.of(removal.id.name, removal));
  }
  return withoutConflicts(decisions, { ledger, claims, removals, now });
}

/**
 * Whether the command would remove a module that serves until the `preStop.sleep` of its Pod is over, or a module
 * whose Pod may still be Ready in the API. Such an install is not in the plan: no other command waits for it.
 */
function isHeldBack(
  { command, spec }: ModuleDecision,
  key: ModuleKey,
  { serving, servingNames, unwritten }: Pick<Decided, 'serving' | 'servingNames' | 'unwritten'>,
): boolean {
  if (command === 'uninstall') return serving.has(key);
  if (command !== 'install' || spec === undefined || !isReplacing(spec)) return false;
  return unwritten.has(spec.name) || servingNames.has(spec.name);
}

function replacedIn(views: BasePlan['views']): VPod[] {
  const replaced: VPod[] = [];
  for (const [pod, shown] of views) {
    const isReplaced = shown.some(
      ({ container, view }) => view.kind === 'Waiting' && view.reason === 'ModuleReplaced' && isRunning(pod, container),
    );
    if (isReplaced) replaced.push(pod);
  }
  return replaced;
}

/** Modules that jars of other modules have brought: they are removed, whatever the policy for unknown modules is. */
function wrongModulesIn(ledger: LedgerView): [ModuleKey, ModuleId][] {
  const found: [ModuleKey, ModuleId][] = [];
  for (const { id, intruder } of ledger.records()) if (intruder === 'wrong-jar') found.push([moduleKeyOf(id), id]);
  return found;
}

/** Modules installed by others, or for a Pod that was gone before the controller saw it. */
function unknownIn(ledger: LedgerView, isWanted: (key: ModuleKey) => boolean): ModuleId[] {
  const isThere = ({ state, inFlight, missingSince }: ModuleRecord): boolean =>
    state !== undefined && inFlight === undefined && missingSince === undefined;
  const unknown: ModuleId[] = [];
  for (const record of ledger.records()) {
    if (isThere(record) && !isWanted(moduleKeyOf(record.id))) unknown.push(record.id);
  }
  return unknown;
}

function withoutCommand({ command: _command, ...decision }: ModuleDecision): ModuleDecision {
  return decision;
}

function commandsOf(
  decisions: ReadonlyMap<ModuleKey, ModuleDecision>,
  claims: ReadonlyMap<ModuleKey, Claim>,
  removals: ReadonlyMap<ModuleKey, Removal>,
): PlannedCommand[] {
  const commands: PlannedCommand[] = [];
  for (const [key, decision] of decisions) {
    const claim = claims.get(key);
    const removal = removals.get(key);
    if (decision.command === 'install' && claim)
      commands.push({ command: 'install', spec: decision.spec ?? claim.spec, pod: claim.owner });
    const id = claim?.spec ?? removal?.id;
    if (decision.command === 'uninstall' && id) {
      const pod = removal?.pod ?? claim?.owner;
      commands.unshift({ command: 'uninstall', id, pod, ...(decision.isTakeover && { isReturning: true }) });
    }
    if (decision.command === 'switch' && claim) commands.push({ command: 'switch', id: claim.spec, pod: claim.owner });
  }
  return commands;
}

function unadmittedViewsOf(pod: VPod, unadmitted: HeldPods): ContainerView[] {
  const rejection = unadmitted.get(pod.uid);
  const view: ContainerView['view'] = rejection
    ? { kind: 'Waiting', ...rejection, isEnded: false }
    : { kind: 'Unknown' };
  return pod.containers.map(({ name }) => ({ container: name, view }));
}

interface Shown {
  readonly owners: NameOwners;
  readonly ledger: LedgerView;
  readonly claims: ReadonlyMap<ModuleKey, Claim>;
  readonly decisions: ReadonlyMap<ModuleKey, ModuleDecision>;
}

/** Views of the containers of all living Pods, in the order of the Pods. */
function viewsOfAll(
  ordered: readonly VPod[],
  unadmitted: HeldPods,
  shown: Shown,
): ReadonlyMap<VPod, readonly ContainerView[]> {
  const views = new Map<VPod, readonly ContainerView[]>();
  for (const pod of ordered) {
    if (!isLiving(pod)) continue;
    views.set(pod, unadmitted.has(pod.uid) ? unadmittedViewsOf(pod, unadmitted) : viewsOf(pod, shown));
  }
  return views;
}

function viewsOf(pod: VPod, shown: Shown): ContainerView[] {
  return containerModulesOf(pod).map((entry) => ({ container: entry.container, view: viewOf(pod, entry, shown) }));
}

/** Names nobody: who owns the name is not for every tenant to know. */
const TAKEN: WaitingView = {
  kind: 'Waiting',
  reason: NAME_TAKEN,
  message:
    'the module name belongs to another namespace on this base: the container waits until that namespace has no Pod and no module of this name here',
  isEnded: true,
};

const OTHER_TAKEN: WaitingView = {
  ...TAKEN,
  message:
    'another module name of this Pod belongs to another namespace on this base: the Pod waits for all of its names',
};

function viewOf(
  pod: VPod,
  entry: ContainerModule,
  { owners, ledger, claims, decisions }: Shown,
): ContainerView['view'] {
  if (entry.kind === 'unsupported') return { kind: 'Unsupported' };
  if (entry.kind === 'invalid') return configError(entry.message, false);
  if (owners.isWithheld(pod, entry.spec.name)) {
    if (!ledger.isKnown) return { kind: 'Unknown' };
    return owners.isForeign(pod, entry.spec.name) ? TAKEN : OTHER_TAKEN;
  }
  const key = moduleKeyOf(entry.spec);
  const claim = claims.get(key);
  if (claim !== undefined && fingerprintOf(entry.spec) !== claim.fingerprint) {
    if (pod.sizeFault !== undefined) return configError(pod.sizeFault, true);
    const holder = `${claim.owner.namespace}/${claim.owner.name}`;
    const message = `module ${key} is on the base with another URL, args or env, for Pod ${holder}: change ${VERSION_ENV}`;
    return { kind: 'Waiting', reason: 'VersionInUse', message, isEnded: true };
  }
  const view = decisions.get(key)?.view ?? { kind: 'Unknown' as const };
  if (view.kind !== 'Running' || claim === undefined || claim.owner === pod) return view;
  return { ...view, sharedWith: `${claim.owner.namespace}/${claim.owner.name}` };
}

function configError(message: string, isEnded: boolean): WaitingView {
  return { kind: 'Waiting', reason: 'CreateContainerConfigError', message, isEnded };
}

interface Attention {
  readonly decisions: ReadonlyMap<ModuleKey, ModuleDecision>;
  readonly hasWork: boolean;
  /** When the sleeps of Pods end. */
  readonly ends: readonly number[];
  readonly now: number;
}

function attention(
  ledger: LedgerView,
  { decisions, hasWork, ends, now }: Attention,
): Pick<BasePlan, 'askList' | 'wakeAt'> {
  const times: number[] = [];
  if (!ledger.isKnown && hasWork) times.push(ledger.askedAt + ASK_AGAIN_MS);
  for (const decision of decisions.values()) if (decision.lookAt !== undefined) times.push(decision.lookAt);
  const askList = times.some((time) => time <= now);
  for (const decision of decisions.values()) if (decision.wakeAt !== undefined) times.push(decision.wakeAt);
  const later = [...times, ...ends].map((time) => (time <= now ? now + ASK_AGAIN_MS : time));
  return { askList, wakeAt: later.length === 0 ? undefined : Math.min(...later) };
}
