/** arklet's module states, upper case. */
export const MODULE_STATES = ['UNRESOLVED', 'RESOLVED', 'ACTIVATED', 'DEACTIVATED', 'BROKEN', 'STOPPED'] as const;
export type ModuleState = (typeof MODULE_STATES)[number];

export interface ModuleId {
  /** The biz name: the container's name. */
  readonly name: string;
  /** The biz version: env BIZ_VERSION. */
  readonly version: string;
}

/** `name:version`, at most once on a base. */
export type ModuleKey = string;

export function moduleKeyOf(id: ModuleId): ModuleKey {
  return `${id.name}:${id.version}`;
}

/** All that a base is told to install a module. */
export interface ModuleSpec extends ModuleId {
  readonly url: string;
  readonly args: readonly string[];
  readonly envs: Readonly<Record<string, string>>;
}

/** One line of a base's module list. */
export interface ModuleStatus extends ModuleId {
  readonly state: ModuleState;
}

export type ModuleCommand = 'install' | 'uninstall';

/**
 * How a base answered an install or uninstall.
 * - `done`: executed.
 * - `already`: the wanted state was there before (REPEAT_BIZ, NOT_FOUND_BIZ): look at the list.
 * - `busy`: another command for the module is unfinished: wait and look.
 * - `failed`: see `message`.
 */
export type OperationOutcome = 'done' | 'already' | 'busy' | 'failed';

export interface OperationResult {
  readonly command: ModuleCommand;
  /** undefined: the base could not parse the command and so does not say whose answer this is. */
  readonly module: ModuleId | undefined;
  readonly outcome: OperationOutcome;
  /** arklet's code: SUCCESS, FAILED, REPEAT_BIZ, NOT_FOUND_BIZ, … */
  readonly code: string;
  /** One line for people, at most 1 KiB. */
  readonly message: string;
  /** The module's state after an executed install, where the base says it. */
  readonly state: ModuleState | undefined;
}
