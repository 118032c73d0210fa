import type { Clock } from '../../src/clock.ts';

export type BizState = 'UNRESOLVED' | 'RESOLVED' | 'ACTIVATED' | 'DEACTIVATED' | 'BROKEN' | 'STOPPED';

/** `batchInstallBiz` is what a baseline runs, and a command over HTTP; the last three exist over HTTP only. */
export type CommandName =
  | 'installBiz'
  | 'uninstallBiz'
  | 'queryAllBiz'
  | 'health'
  | 'batchInstallBiz'
  | 'switchBiz'
  | 'queryBizOps'
  | 'help';

/** Commands that change one module; one at a time for each module. */
export type OperationName = 'installBiz' | 'uninstallBiz' | 'switchBiz';

export type Outcome =
  | 'in work'
  | 'executed'
  | 'failed'
  | 'refused:REPEAT_BIZ'
  | 'refused:NOT_FOUND_BIZ'
  | 'refused:conflict'
  | 'refused:invalid'
  | 'ignored:silent'
  | 'ignored:unparsable'
  | 'ignored:unsupported'
  /** The process died before the command was done. */
  | 'died';

/** What a command says about a module; any part may be missing on the wire. */
export interface BizRequest {
  bizName?: string;
  bizVersion?: string;
  bizUrl?: string;
  installStrategy?: string;
  /** Answered at once over HTTP, with a record that `queryBizOps` follows. */
  async?: boolean;
  requestId?: string;
}

export interface ModuleKey {
  bizName: string;
  bizVersion: string;
}

export interface SimulatedModule extends ModuleKey {
  state: BizState;
  bizUrl: string;
  /** Where the real agent unpacks the jar. */
  tempWorkDir: string;
  /** An uninstall of it is in work, by whichever command. */
  isStopping?: boolean;
}

export interface ArkletResponse {
  code: 'SUCCESS' | 'FAILED';
  message?: string;
  data?: unknown;
}

/** What a command threw inside the agent. */
export interface Thrown {
  /** Class name first. */
  exception: string;
  message: string;
}

export interface Reply {
  outcome: Outcome;
  /** Present when the command threw; `response` is then what MQTT makes of it. */
  thrown?: Thrown;
  /** Absent when the process died before it could answer. */
  response?: ArkletResponse;
}

/** How one install goes; the script decides it. */
export interface InstallPlan {
  /** Default: the base's `installMs`. */
  installMs?: number;
  /** The Java exception that ends the command, e.g. `java.lang.OutOfMemoryError: Metaspace`; of an uninstall, too. */
  failure?: string;
  /** The install fails and leaves the module behind in state BROKEN. */
  isBroken?: boolean;
  /** The module that the manifest of the jar names. Default: the one that the command names. */
  manifest?: ModuleKey;
}

export interface ArkletOptions {
  /** Name and version of the base, as its health shows them. */
  name: string;
  version: string;
  installMs: number;
  uninstallMs: number;
  /** The JVM property `activate.new.module`. */
  activateNewModule: boolean;
  /** Bytes, -1 = unlimited. */
  maxMetaspace: number;
  clock: Clock;
  /** Gives [0, 1). */
  random: () => number;
}

export function identityOf(module: ModuleKey): string {
  return `${module.bizName}:${module.bizVersion}`;
}

/** Reads the fields of a command, as lenient as the agent's own parser: a number counts as text. */
export function readBizRequest(content: Record<string, unknown>): BizRequest {
  const request: BizRequest = {};
  for (const field of ['bizName', 'bizVersion', 'bizUrl', 'installStrategy', 'requestId'] as const) {
    const value = content[field];
    if (typeof value === 'string') request[field] = value;
    if (typeof value === 'number') request[field] = String(value);
  }
  if (content.async === true || content.async === 'true') request.async = true;
  return request;
}
