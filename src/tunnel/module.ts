import type { InstallStrategy } from '../labels.ts';

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

/** Everything that a base needs to install a module. */
export interface ModuleSpec extends ModuleId {
  readonly url: string;
  readonly args: readonly string[];
  readonly envs: Readonly<Record<string, string>>;
  /** Default: installOnly, which is not sent, as older agents do not know it. */
  readonly strategy?: InstallStrategy;
}

/** Whether its install uninstalls all other versions of the name first. */
export function isReplacing({ strategy }: { readonly strategy?: string | undefined }): boolean {
  return strategy === 'uninstallThenInstall';
}

/** One line of a base's module list. */
export interface ModuleStatus extends ModuleId {
  readonly state: ModuleState;
}

/** `switch`: make this version the active one of its name (arklet's switchBiz). */
export type ModuleCommand = 'install' | 'uninstall' | 'switch';

/**
 * How a base answered an install, uninstall or switch.
 * - `done`: executed.
 * - `already`: the wanted state was there before (REPEAT_BIZ, NOT_FOUND_BIZ): look at the list.
 * - `busy`: another command for the module is unfinished: wait and look.
 * - `failed`: see `message`.
 */
export type OperationOutcome = 'done' | 'already' | 'busy' | 'failed';

/**
 * The code of an install that found or left another module than the requested one; the controller's code, not arklet's.
 */
export const WRONG_MODULE = 'WRONG_MODULE';

export interface OperationResult {
  readonly command: ModuleCommand;
  /** undefined: the base could not parse the command and so does not say whose answer this is. */
  readonly module: ModuleId | undefined;
  readonly outcome: OperationOutcome;
  /** arklet's code: SUCCESS, FAILED, REPEAT_BIZ, NOT_FOUND_BIZ, …; or WRONG_MODULE. */
  readonly code: string;
  /** One line for people, at most 1 KiB. */
  readonly message: string;
  /** The module's state after an executed install, where the base says it. */
  readonly state: ModuleState | undefined;
  /** With `WRONG_MODULE`: the modules that the install has brought to the base instead of the requested one. */
  readonly brought?: readonly ModuleStatus[];
}
