import { isInWork, type ModuleRecord } from '../module/module-record.ts';
import type { ModuleKey } from '../tunnel/module.ts';
import type { Claim } from './claims.ts';
import { byCreation, statusIn, type VPod } from './vpod.ts';

/** What the other versions of a module's name on the base mean for it. */
export interface Succession {
  /** The active version that took over. */
  readonly successor: Claim | undefined;
  /** The version that is to take over when it is installed; undefined where this one is the newest. */
  readonly coming: Claim | undefined;
  /** The version whose Pod asks that all others go (`uninstallThenInstall`), and whether it is on the base for sure. */
  readonly replacer: { readonly claim: Claim; readonly isThere: boolean } | undefined;
  /** No younger Pod brought a version that is here or comes: of what the base has, this one is to be active. */
  readonly isNewest: boolean;
  /** Another version that a living Pod asks for is active. */
  readonly isServed: boolean;
  /** No such version is active, and of those that can take over now this one is the newest. */
  readonly isNext: boolean;
  /** Some Pod that was created later asks for another version. */
  readonly hasYounger: boolean;
}

const ALONE: Succession = {
  successor: undefined,
  coming: undefined,
  replacer: undefined,
  isNewest: true,
  isServed: false,
  isNext: false,
  hasYounger: false,
};

interface Version {
  readonly key: ModuleKey;
  readonly claim: Claim;
  readonly record: ModuleRecord | undefined;
  readonly hasRun: boolean;
}

/** The versions of one name, sorted once: what one version asks about all others must not cost a walk over them. */
interface Versions {
  /** The version that is to be active, of those that are here or coming. */
  readonly newest: Version | undefined;
  /** The version that is to be active, of those that can take over now. */
  readonly next: Version | undefined;
  /** The last one created. */
  readonly youngest: Version | undefined;
  /** Active ones, the youngest first. */
  readonly active: readonly Version[];
  /** With `uninstallThenInstall`, the last created first. */
  readonly replacing: readonly Version[];
}

/** The versions of one base that living Pods ask for, against each other. */
export class Successions {
  /** Versions by module, where a name has several. */
  readonly #versions = new Map<ModuleKey, Version>();
  readonly #byName = new Map<string, Versions>();

  /** `canTakeOver`: whether a version that is DEACTIVATED can be made active now. */
  constructor(
    claims: ReadonlyMap<ModuleKey, Claim>,
    recordOf: (key: ModuleKey) => ModuleRecord | undefined,
    canTakeOver: (claim: Claim, record: ModuleRecord) => boolean,
  ) {
    const names = new Set<string>();
    for (const { spec } of claims.values()) names.add(spec.name);
    if (names.size === claims.size) return;
    for (const [name, entries] of Map.groupBy(claims, ([, { spec }]) => spec.name)) {
      if (entries.length === 1) continue;
      const versions = entries.map(([key, claim]) => ({ key, claim, record: recordOf(key), hasRun: hasRun(claim) }));
      for (const version of versions) this.#versions.set(version.key, version);
      this.#byName.set(name, versionsOf(versions, canTakeOver));
    }
  }

  /** Some name has several versions. */
  get hasRivals(): boolean {
    return this.#byName.size > 0;
  }

  of(key: ModuleKey): Succession {
    const own = this.#versions.get(key);
    const all = own && this.#byName.get(own.claim.spec.name);
    if (own === undefined || all === undefined) return ALONE;
    const replacer = replacerOf(own, all);
    const active = all.active[0] === own ? all.active[1] : all.active[0];
    const isNewest = all.newest === undefined || all.newest === own || !precedes(all.newest, own);
    const hasSuccessor = active !== undefined && (own.hasRun || ageOf(active, own) === 'younger');
    return {
      successor: hasSuccessor ? active.claim : undefined,
      coming: isNewest ? undefined : all.newest?.claim,
      replacer: replacer && {
        claim: replacer.claim,
        isThere: isInstalled(replacer.record) && replacer.record?.unconfirmed === undefined,
      },
      hasYounger: all.youngest !== undefined && ageOf(all.youngest, own) === 'younger',
      isNewest,
      isServed: active !== undefined,
      isNext: all.active.length === 0 && all.next === own,
    };
  }
}

function versionsOf(
  versions: readonly Version[],
  canTakeOver: (claim: Claim, record: ModuleRecord) => boolean,
): Versions {
  const lastIn = (found: readonly Version[], isAfter: (one: Version, other: Version) => boolean): Version | undefined =>
    found.reduce<Version | undefined>(
      (last, one) => (last === undefined || isAfter(one, last) ? one : last),
      undefined,
    );
  const isReadyToServe = ({ claim, record }: Version): boolean =>
    record?.state === 'DEACTIVATED' && record.inFlight?.command !== 'uninstall' && canTakeOver(claim, record);
  const isYounger = (one: Version, other: Version): boolean => ageOf(one, other) === 'younger';
  const present = versions.filter(({ record, claim }) => {
    // The module of a Pod that stays is installed again; that of one that goes is not there for the next Pod.
    return isHereOrComing(record) && (record?.inFlight?.command !== 'uninstall' || hasEverRun(claim, record));
  });
  return {
    newest: lastIn(present, precedes),
    next: lastIn(present.filter(isReadyToServe), precedes),
    youngest: lastIn(versions, isYounger),
    active: versions.filter(isActive).sort((one, other) => (precedes(one, other) ? -1 : 1)),
    replacing: versions.filter(isReplacing).sort((one, other) => byCreation(youngestOf(other), youngestOf(one))),
  };
}

/** The last created of those that replace it. An older one replaces nothing, nor does any that was created before. */
function replacerOf(own: Version, { replacing }: Versions): Version | undefined {
  const { createdAt } = youngestOf(own);
  for (const other of replacing) {
    if (youngestOf(other).createdAt < createdAt) return undefined;
    if (other !== own && replaces(other, own)) return other;
  }
  return undefined;
}

function youngestOf({ claim }: Version): VPod {
  return claim.youngest;
}

/** A Pod that is too large replaces nothing: it is never installed. */
function isReplacing({ claim, record }: Version): boolean {
  const isInstallable = claim.owner.sizeFault === undefined || isHereOrComing(record);
  return claim.spec.strategy === 'uninstallThenInstall' && isInstallable;
}

function isInstalled(record: ModuleRecord | undefined): boolean {
  return record?.state === 'ACTIVATED' || record?.state === 'DEACTIVATED';
}

function isHereOrComing(record: ModuleRecord | undefined): boolean {
  return record !== undefined && (isInWork(record) || isInstalled(record));
}

function isActive({ record }: Pick<Version, 'record'>): boolean {
  return record?.state === 'ACTIVATED';
}

type Age = 'older' | 'younger' | 'tied';

/** Creation times are whole seconds, so of two Pods of one second the one whose module has run is the older. */
function ageOf(other: Version, own: Version): Age {
  const [its, mine] = [youngestOf(other).createdAt, youngestOf(own).createdAt];
  if (its !== mine) return its < mine ? 'older' : 'younger';
  if (other.hasRun === own.hasRun) return 'tied';
  return other.hasRun ? 'older' : 'younger';
}

/**
 * Whether the other version should be active rather than this one; where that is undecidable, the active one stays
 * active.
 */
function precedes(other: Version, own: Version): boolean {
  const age = ageOf(other, own);
  if (age !== 'tied') return age === 'younger';
  if (isActive(other) !== isActive(own)) return isActive(other);
  return byCreation(youngestOf(own), youngestOf(other)) < 0;
}

/** `other` is one that replaces. */
function replaces(other: Version, own: Version): boolean {
  const age = ageOf(other, own);
  if (age === 'older') return false;
  return age !== 'tied' || !isReplacing(own) || precedes(other, own);
}

function hasRun({ youngest, spec }: Claim): boolean {
  return hasRunFor(youngest, spec.name);
}

/**
 * The version has run on this base: the status of a Pod shows it, or it is gone only to be installed again, though the
 * Pod that ran it was deleted meanwhile.
 */
export function hasEverRun({ youngest, owner, spec }: Claim, record: ModuleRecord | undefined): boolean {
  return record?.isReturning === true || hasRunFor(owner, spec.name) || hasRunFor(youngest, spec.name);
}

function hasRunFor(pod: VPod, name: string): boolean {
  const status = statusIn(pod.status.containerStatuses, name);
  return status?.started === true || status?.lastState?.terminated !== undefined;
}
