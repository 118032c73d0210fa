import { isInWork, type ModuleRecord } from '../module/module-record.ts';
import type { ModuleKey } from '../tunnel/module.ts';
import type { Claim } from './claims.ts';
import { byCreation } from './vpod.ts';

/** What the other versions of a module's name on the base mean for it (V34, V35). */
export interface Succession {
  /** The active version that took over. */
  readonly successor: Claim | undefined;
  /** The version whose Pod asks that all others go (`uninstallThenInstall`), and whether it is on the base for sure. */
  readonly replacer: { readonly claim: Claim; readonly isThere: boolean } | undefined;
  /** No younger Pod brought a version that is here or comes: of what the base has, this one is to be active. */
  readonly isNewest: boolean;
  /** Some Pod that was created later asks for another version. */
  readonly hasYounger: boolean;
}

const ALONE: Succession = { successor: undefined, replacer: undefined, isNewest: true, hasYounger: false };

interface Version {
  readonly claim: Claim;
  readonly record: ModuleRecord | undefined;
}

interface Other extends Version {
  readonly age: Age;
}

/** The versions of one base that living Pods ask for, against each other. */
export class Successions {
  readonly #claims: ReadonlyMap<ModuleKey, Claim>;
  readonly #recordOf: (key: ModuleKey) => ModuleRecord | undefined;
  readonly #keysByName: ReadonlyMap<string, readonly ModuleKey[]>;

  constructor(claims: ReadonlyMap<ModuleKey, Claim>, recordOf: (key: ModuleKey) => ModuleRecord | undefined) {
    this.#claims = claims;
    this.#recordOf = recordOf;
    this.#keysByName = Map.groupBy(claims.keys(), (key) => claims.get(key)?.spec.name ?? '');
  }

  of(key: ModuleKey): Succession {
    const claim = this.#claims.get(key);
    const own = claim && { claim, record: this.#recordOf(key) };
    const others = own ? this.#othersOf(key, own.claim) : [];
    if (own === undefined || others.length === 0) return ALONE;
    const replacer = others
      .filter((other) => replaces(other, own))
      .sort((a, b) => byCreation(a.claim.youngest, b.claim.youngest))
      .at(-1);
    return {
      successor: others.find((other) => isActive(other) && (other.age === 'younger' || hasRun(own.claim)))?.claim,
      replacer: replacer && {
        claim: replacer.claim,
        isThere: isInstalled(replacer.record) && replacer.record?.unconfirmed === undefined,
      },
      hasYounger: others.some(({ age }) => age === 'younger'),
      isNewest: !others.some((other) => isHereOrComing(other.record) && precedes(other, own)),
    };
  }

  #othersOf(key: ModuleKey, claim: Claim): Other[] {
    const keys = this.#keysByName.get(claim.spec.name) ?? [];
    return keys.flatMap((otherKey) => {
      const other = this.#claims.get(otherKey);
      if (other === undefined || otherKey === key) return [];
      return [{ claim: other, record: this.#recordOf(otherKey), age: ageOf(other, claim) }];
    });
  }
}

function isInstalled(record: ModuleRecord | undefined): boolean {
  return record?.state === 'ACTIVATED' || record?.state === 'DEACTIVATED';
}

function isHereOrComing(record: ModuleRecord | undefined): boolean {
  return record !== undefined && (isInWork(record) || isInstalled(record));
}

function isActive({ record }: Version): boolean {
  return record?.state === 'ACTIVATED';
}

type Age = 'older' | 'younger' | 'tied';

/** Creation times are whole seconds, so of two Pods of one second the one whose module has run is the older. */
function ageOf(other: Claim, claim: Claim): Age {
  const [its, mine] = [other.youngest.createdAt, claim.youngest.createdAt];
  if (its !== mine) return its < mine ? 'older' : 'younger';
  if (hasRun(other) === hasRun(claim)) return 'tied';
  return hasRun(other) ? 'older' : 'younger';
}

/** Whether the other one is to be active rather than this one; where nobody can tell, the one that is stays so. */
function precedes(other: Other, own: Version): boolean {
  if (other.age !== 'tied') return other.age === 'younger';
  if (isActive(other) !== isActive(own)) return isActive(other);
  return byCreation(own.claim.youngest, other.claim.youngest) < 0;
}

function replaces(other: Other, own: Version): boolean {
  if (other.claim.spec.strategy !== 'uninstallThenInstall' || other.age === 'older') return false;
  const isContested = other.age === 'tied' && own.claim.spec.strategy === 'uninstallThenInstall';
  return !isContested || precedes(other, own);
}

function hasRun({ youngest, spec }: Claim): boolean {
  const status = youngest.status.containerStatuses.find(({ name }) => name === spec.name);
  return status?.started === true || status?.lastState?.terminated !== undefined;
}
