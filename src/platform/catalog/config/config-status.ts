import { isDeepStrictEqual } from 'node:util';
import type { CachedModuleConfig } from './cached-module-config.ts';
import type { ConfigUser } from './config-uses.ts';
import type { ConfigState, History } from './history.ts';
import { MAX_USERS, type ModuleConfigCondition, type ModuleConfigStatus, targetText } from './module-config.ts';

export interface ConfigStatusInput {
  readonly generation: number;
  readonly spec: CachedModuleConfig['spec'];
  readonly before: ModuleConfigStatus | undefined;
  readonly history: Omit<History, 'state'> & {
    readonly state: Omit<ConfigState, 'reason'> & { readonly reason: string };
  };
  /** Id of the version of the present content. Undefined: it cannot be used. */
  readonly presentVersion: string | undefined;
  /** `{name}@{version}` of the parent, as far as there is one; empty: none. */
  readonly parent: string;
  readonly cause: ModuleConfigStatus['lastCause'];
  readonly users: readonly Pick<ConfigUser, 'kind' | 'name'>[];
  /** RFC 3339. */
  readonly now: string;
}

/** The status of a ModuleConfig; conditions that have not changed keep their times. */
export function configStatusOf(input: ConfigStatusInput): ModuleConfigStatus {
  const { generation, spec, history, presentVersion, parent, cause, users } = input;
  const { versions, inForce } = history;
  return {
    observedGeneration: generation,
    ...(parent !== '' && { observedParent: parent }),
    target: targetText(spec.target),
    ...(inForce !== undefined && { activeVersion: inForce }),
    ...(presentVersion !== undefined && { presentVersion }),
    versionCount: versions.length,
    ...(versions.length > 0 && { versions: [...versions] }),
    ...(cause !== undefined && { lastCause: cause }),
    userCount: users.length,
    ...(users.length > 0 && { usedBy: users.slice(0, MAX_USERS).map(({ kind, name }) => ({ kind, name })) }),
    conditions: conditionsOf(input),
  };
}

function conditionsOf({ spec, history, before, now }: ConfigStatusInput): ModuleConfigCondition[] {
  const { isReady, reason, message } = history.state;
  const { parentChanged } = history;
  const conditions: Omit<ModuleConfigCondition, 'lastTransitionTime'>[] = [
    { type: 'Ready', status: isReady ? 'True' : 'False', reason, message },
  ];
  if (spec.parent !== undefined) {
    conditions.push(
      parentChanged === undefined
        ? { type: 'ParentChanged', status: 'False', reason: 'Merged', message: '' }
        : {
            type: 'ParentChanged',
            status: 'True',
            reason: 'NewVersion',
            message: `version ${parentChanged} is made of the parent's new content: name it in spec.activeVersion, or change the content`,
          },
    );
  }
  return conditions.map((condition) => {
    const known = before?.conditions.find(({ type }) => type === condition.type);
    return { ...condition, lastTransitionTime: known?.status === condition.status ? known.lastTransitionTime : now };
  });
}

/** Whether two statuses differ in nothing but who uses the ModuleConfig. */
export function isOnlyOfUsers(a: ModuleConfigStatus | undefined, b: ModuleConfigStatus): boolean {
  if (a === undefined) return false;
  const { userCount: _a, usedBy: _b, ...rest } = a;
  const { userCount: _c, usedBy: _d, ...other } = b;
  return isDeepStrictEqual(rest, other);
}
