import { isInWork, type ModuleRecord } from '../module/module-record.ts';
import type { ModuleKey } from '../tunnel/module.ts';
import type { Claim } from './claims.ts';
import { byCreation } from './vpod.ts';

/** What the other versions of a module's name on the base mean for it (V34, V35). */
export interface Succession {
  /** The active version that took over. */
  readonly successor: Claim | undefined;
  /** The version whose Pod asks that all others go (`uninstallThenInstall`), and whether it is active. */
  readonly replacer: { readonly claim: Claim; readonly isActive: boolean } | undefined;
  /** No younger Pod brought a version that is here or comes: of what the base has, this one is to be active. */
  readonly isNewest: boolean;
}

const ALONE: Succession = { successor: undefined, replacer: undefined, isNewest: true };

interface Other {
  readonly claim: Claim;
  readonly record: ModuleRecord | undefined;
  readonly isYounger: boolean;
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
    const others = claim ? this.#othersOf(key, claim) : [];
    if (claim === undefined || others.length === 0) return ALONE;
    const younger = others.filter(({ isYounger }) => isYounger);
    const isActive = ({ record }: Other): boolean => record?.state === 'ACTIVATED';
    const replacer = younger
      .filter((other) => other.claim.spec.strategy === 'uninstallThenInstall')
      .reduce<Other | undefined>(
        (best, other) => (best && isSenior(other.claim, best.claim) ? best : other),
        undefined,
      );
    return {
      successor: others.find((other) => isActive(other) && (other.isYounger || hasRun(claim)))?.claim,
      replacer: replacer && {
        claim: replacer.claim,
        isActive: isActive(replacer) && replacer.record?.unconfirmed === false,
      },
      isNewest: !younger.some(({ record }) => isHereOrComing(record)),
    };
  }

  /** Whether a version of the name waits to be made active in place of one that is to go. */
  awaitsSwitch(name: string): boolean {
    return (this.#keysByName.get(name) ?? []).some((key) => {
      const record = this.#recordOf(key);
      return record?.state === 'DEACTIVATED' && record.failure?.reason !== 'SwitchError' && this.of(key).isNewest;
    });
  }

  #othersOf(key: ModuleKey, claim: Claim): Other[] {
    const keys = this.#keysByName.get(claim.spec.name) ?? [];
    return keys.flatMap((otherKey) => {
      const other = this.#claims.get(otherKey);
      if (other === undefined || otherKey === key) return [];
      return [{ claim: other, record: this.#recordOf(otherKey), isYounger: isSenior(claim, other) }];
    });
  }
}

function isHereOrComing(record: ModuleRecord | undefined): boolean {
  if (record === undefined) return false;
  return isInWork(record) || record.state === 'ACTIVATED' || record.state === 'DEACTIVATED';
}

/** Creation times are whole seconds, so of two Pods of one second the one whose module has run is the older. */
function isSenior(a: Claim, b: Claim): boolean {
  if (a.owner.createdAt === b.owner.createdAt && hasRun(a) !== hasRun(b)) return hasRun(a);
  return byCreation(a.owner, b.owner) < 0;
}

function hasRun({ owner, spec }: Claim): boolean {
  return owner.status.containerStatuses.some(({ name, started }) => name === spec.name && started === true);
}
