import { isInWork, type ModuleRecord } from '../module/module-record.ts';
import { isReplacing, type ModuleKey, moduleKeyOf } from '../tunnel/module.ts';
import type { Claim } from './claims.ts';
import { type Heir, type ModuleDecision, type ModuleDecisionInput, mayActivate } from './module-decision.ts';
import type { Removal } from './removals.ts';
import { hasEverRun } from './succession.ts';

/** How the base makes a version the active one of its name. */
export type Activation = Pick<ModuleDecisionInput, 'canSwitch' | 'activatesNew'>;

/** `returning`: it has run here, is gone, and is about to be installed again. */
type Standing = Heir | 'returning';

/** The versions that living Pods ask for, as heirs of versions of their name that have to go. */
export class Heirs {
  readonly #activation: Activation;
  readonly #standings = new Map<string, Set<Standing>>();

  constructor(activation: Activation) {
    this.#activation = activation;
  }

  add(claim: Claim, record: ModuleRecord | undefined, decision: ModuleDecision): void {
    const { name } = claim.spec;
    const standings = this.#standings.get(name) ?? new Set();
    this.#standings.set(name, standings.add(standingOf(claim, record, decision, this.#activation)));
  }

  /** `removal`: undefined for a version that a younger Pod replaces. */
  of(name: string, removal: Removal | undefined): Heir {
    const standings = this.#standings.get(name);
    if (standings === undefined) return 'none';
    // Pods that replace each other's versions say that the base cannot have two of them.
    const mayReturn = !isReplacing(removal?.id ?? {});
    if (standings.has('coming') || (mayReturn && standings.has('returning'))) return 'coming';
    return standings.has('here') ? 'here' : 'none';
  }
}

/** Commands that may have made a version the active one, or removed the others, since the newest list. */
export class Takeovers {
  readonly #keysByName = new Map<string, ModuleKey[]>();

  constructor(records: Iterable<ModuleRecord>) {
    for (const { id, unconfirmed, inFlight } of records) {
      if (unconfirmed === undefined && inFlight?.isReplacing !== true) continue;
      const keys = this.#keysByName.get(id.name) ?? [];
      this.#keysByName.set(id.name, keys);
      // Of two different keys one is another one's.
      if (keys.length < 2) keys.push(moduleKeyOf(id));
    }
  }

  /** Whether there is one about another version of the name. */
  hasOther(name: string, key: ModuleKey): boolean {
    return this.#keysByName.get(name)?.some((other) => other !== key) === true;
  }
}

function standingOf(
  claim: Claim,
  record: ModuleRecord | undefined,
  decision: ModuleDecision,
  { canSwitch, activatesNew }: Activation,
): Standing {
  const isBack = hasEverRun(claim, record);
  const mayServe = canSwitch || mayActivate({ claim, record, activatesNew });
  if (record !== undefined && isInWork(record)) return standingInWork(record, { isBack, mayServe });
  if (record?.missingSince !== undefined || record?.unconfirmed !== undefined) return 'coming';
  if (record?.state === 'ACTIVATED') return 'here';
  if (record?.state === 'DEACTIVATED') return decision.isTakeover ? 'coming' : 'here';
  return isBack && mayServe && isReturning(record, decision) ? 'returning' : 'none';
}

function standingInWork(
  { inFlight, failure }: ModuleRecord,
  { isBack, mayServe }: { readonly isBack: boolean; readonly mayServe: boolean },
): Heir {
  if (inFlight?.command === 'switch') return 'coming';
  if (inFlight?.command === 'uninstall') return isBack && mayServe ? 'coming' : 'none';
  const mayEndWell = inFlight !== undefined || failure === undefined;
  return mayEndWell && mayServe ? 'coming' : 'here';
}

/** It is installed next; one whose last install failed is not waited for while it backs off. */
function isReturning(record: ModuleRecord | undefined, { command, spec, wakeAt }: ModuleDecision): boolean {
  if (command === 'install') return !isReplacing(spec ?? {});
  return command === 'uninstall' || (record?.failure === undefined && wakeAt !== undefined);
}
