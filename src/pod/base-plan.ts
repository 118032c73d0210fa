import type { ModuleRecord } from '../module/module-record.ts';
import { fingerprintOf, isGone } from '../module/module-record.ts';
import { type ModuleId, type ModuleKey, type ModuleSpec, moduleKeyOf } from '../tunnel/module.ts';
import { type Claim, claimsOf } from './claims.ts';
import { decideModule, type ModuleDecision } from './module-decision.ts';
import { type ContainerModule, containerModulesOf, moduleSpecsOf, VERSION_ENV } from './module-spec.ts';
import type { ContainerView } from './module-view.ts';
import { byCreation, isTerminal, type VPod } from './vpod.ts';

/** The part of a ModuleLedger that the plan reads. */
export interface LedgerView {
  readonly isKnown: boolean;
  readonly askedAt: number;
  get(key: ModuleKey): ModuleRecord | undefined;
}

export type PlannedCommand =
  | { readonly command: 'install'; readonly spec: ModuleSpec; readonly pod: VPod }
  | { readonly command: 'uninstall'; readonly id: ModuleId; readonly pod: VPod | undefined };

export interface BasePlanInput {
  /** All vPods bound to the base, in any order. */
  readonly pods: readonly VPod[];
  /** Modules of Pods that went without a wait: to be removed unless somebody claims them. */
  readonly debts: ReadonlyMap<ModuleKey, ModuleId>;
  readonly ledger: LedgerView;
  readonly now: number;
}

export interface BasePlan {
  /** Uninstalls first. */
  readonly commands: readonly PlannedCommand[];
  /** What each living Pod's containers should show, oldest Pod first. */
  readonly views: ReadonlyMap<VPod, readonly ContainerView[]>;
  /** Deleting Pods of which nothing is left on the base. */
  readonly finished: readonly VPod[];
  /** Deleting Pods whose uninstall failed, with the base's words. */
  readonly failedKills: ReadonlyMap<VPod, string>;
  readonly settledDebts: readonly (readonly [ModuleKey, ModuleId])[];
  readonly isWanted: (key: ModuleKey) => boolean;
  /** The base should be asked for its list now. */
  readonly askList: boolean;
  /** When the plan should be made again even if nothing happens. */
  readonly wakeAt: number | undefined;
}

/** While a list is awaited it is asked for again after this long. */
const ASK_AGAIN_MS = 5_000;

/**
 * Decides what a base should be told and what its Pods should show: pure, and the same from any starting point,
 * so that it does not matter what was missed. Nothing is commanded before the base's own list was read.
 */
export function planBase({ pods, debts, ledger, now }: BasePlanInput): BasePlan {
  const ordered = [...pods].sort(byCreation);
  const living = ordered.filter((pod) => !pod.isDeleting && !isTerminal(pod));
  const leaving = ordered.filter((pod) => pod.isDeleting || isTerminal(pod));
  const claims = claimsOf(living, leaving, (key) => ledger.get(key));
  const removals = removalsOf(leaving, debts);
  const decisions = new Map<ModuleKey, ModuleDecision>();
  if (ledger.isKnown) {
    for (const key of new Set([...claims.keys(), ...removals.keys()])) {
      const successor = successorOf(key, claims, ledger);
      decisions.set(
        key,
        decideModule({ record: ledger.get(key), claim: claims.get(key), successor, askedAt: ledger.askedAt, now }),
      );
    }
  }
  const isLeft = (key: ModuleKey): boolean =>
    !ledger.isKnown || (decisions.get(key)?.keeps !== true && !isGone(ledger.get(key)));
  const deleting = leaving.filter((pod) => pod.isDeleting);
  return {
    commands: commandsOf(decisions, claims, removals),
    views: new Map(living.map((pod) => [pod, viewsOf(pod, claims, decisions)])),
    finished: deleting.filter((pod) => !moduleSpecsOf(pod).some((spec) => isLeft(moduleKeyOf(spec)))),
    failedKills: failedKillsOf(deleting, (key) => (isLeft(key) ? ledger.get(key) : undefined)),
    settledDebts: [...debts].filter(([key]) => !isLeft(key)),
    isWanted: (key) => claims.has(key) || removals.has(key),
    ...attention(ledger, decisions, claims.size + removals.size > 0, now),
  };
}

/**
 * The active version of the same name that took over from this one, if there is one: this one has run, or the other
 * Pod is younger (creation times are whole seconds, so they alone cannot tell).
 */
function successorOf(key: ModuleKey, claims: ReadonlyMap<ModuleKey, Claim>, ledger: LedgerView): ModuleId | undefined {
  const claim = claims.get(key);
  if (claim === undefined || ledger.get(key)?.state !== 'DEACTIVATED') return undefined;
  for (const [otherKey, other] of claims) {
    const isSibling = other.spec.name === claim.spec.name && otherKey !== key;
    if (!isSibling || ledger.get(otherKey)?.state !== 'ACTIVATED') continue;
    if (hasRun(claim) || claim.owner.createdAt < other.owner.createdAt) return other.spec;
  }
  return undefined;
}

function hasRun({ owner, spec }: Claim): boolean {
  return owner.status.containerStatuses.some(({ name, started }) => name === spec.name && started === true);
}

interface Removal {
  readonly id: ModuleId;
  readonly pod: VPod | undefined;
}

function removalsOf(leaving: readonly VPod[], debts: ReadonlyMap<ModuleKey, ModuleId>): Map<ModuleKey, Removal> {
  const removals = new Map<ModuleKey, Removal>();
  for (const [key, id] of debts) removals.set(key, { id, pod: undefined });
  for (const pod of leaving) for (const spec of moduleSpecsOf(pod)) removals.set(moduleKeyOf(spec), { id: spec, pod });
  return removals;
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
      commands.push({ command: 'install', spec: claim.spec, pod: claim.owner });
    const id = claim?.spec ?? removal?.id;
    if (decision.command === 'uninstall' && id) {
      commands.unshift({ command: 'uninstall', id, pod: removal?.pod ?? claim?.owner });
    }
  }
  return commands;
}

function viewsOf(
  pod: VPod,
  claims: ReadonlyMap<ModuleKey, Claim>,
  decisions: ReadonlyMap<ModuleKey, ModuleDecision>,
): ContainerView[] {
  return containerModulesOf(pod).map((entry) => ({
    container: entry.container,
    view: viewOf(pod, entry, claims, decisions),
  }));
}

function viewOf(
  pod: VPod,
  entry: ContainerModule,
  claims: ReadonlyMap<ModuleKey, Claim>,
  decisions: ReadonlyMap<ModuleKey, ModuleDecision>,
): ContainerView['view'] {
  if (entry.kind === 'unsupported') return { kind: 'Unsupported' };
  if (entry.kind === 'invalid') {
    return { kind: 'Waiting', reason: 'CreateContainerConfigError', message: entry.message, isEnded: false };
  }
  const key = moduleKeyOf(entry.spec);
  const claim = claims.get(key);
  if (claim !== undefined && fingerprintOf(entry.spec) !== claim.fingerprint) {
    const holder = `${claim.owner.namespace}/${claim.owner.name}`;
    const message = `module ${key} is on the base with another URL, args or env, for Pod ${holder}: change ${VERSION_ENV}`;
    return { kind: 'Waiting', reason: 'VersionInUse', message, isEnded: true };
  }
  const view = decisions.get(key)?.view ?? { kind: 'Unknown' as const };
  if (view.kind !== 'Running' || claim === undefined || claim.owner === pod) return view;
  return { ...view, sharedWith: `${claim.owner.namespace}/${claim.owner.name}` };
}

function failedKillsOf(
  deleting: readonly VPod[],
  leftRecord: (key: ModuleKey) => ModuleRecord | undefined,
): Map<VPod, string> {
  const failed = new Map<VPod, string>();
  for (const pod of deleting) {
    for (const spec of moduleSpecsOf(pod)) {
      const failure = leftRecord(moduleKeyOf(spec))?.failure;
      if (failure?.reason === 'KillContainerError') failed.set(pod, `module ${moduleKeyOf(spec)}: ${failure.message}`);
    }
  }
  return failed;
}

function attention(
  ledger: LedgerView,
  decisions: ReadonlyMap<ModuleKey, ModuleDecision>,
  hasWork: boolean,
  now: number,
): Pick<BasePlan, 'askList' | 'wakeAt'> {
  const times: number[] = [];
  if (!ledger.isKnown && hasWork) times.push(ledger.askedAt + ASK_AGAIN_MS);
  for (const decision of decisions.values()) if (decision.lookAt !== undefined) times.push(decision.lookAt);
  const askList = times.some((time) => time <= now);
  for (const decision of decisions.values()) if (decision.wakeAt !== undefined) times.push(decision.wakeAt);
  const later = times.map((time) => (time <= now ? now + ASK_AGAIN_MS : time));
  return { askList, wakeAt: later.length === 0 ? undefined : Math.min(...later) };
}
