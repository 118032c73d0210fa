import type { BaseHealth, BaseInfo } from '../../src/tunnel/base.ts';
import {
  type ModuleCommand,
  type ModuleId,
  type ModuleSpec,
  type ModuleState,
  type ModuleStatus,
  type OperationOutcome,
  type OperationResult,
  WRONG_MODULE,
} from '../../src/tunnel/module.ts';
import { cutToBytes, messageLineOf } from './message-line.ts';
import type {
  BatchInstall,
  BizInfo,
  BizOperation,
  ClientResponse,
  CommandResponse,
  Health,
  Heart,
  InstallBiz,
  SwitchBiz,
  UninstallBiz,
} from './messages.ts';

/** Messages ↔ the core's words. The last place that says biz. */

export function baseInfoOf(heart: Heart): BaseInfo {
  const { identity, name, version, clusterName } = heart.baseMetadata;
  return { identity, name, version, clusterName, ip: heart.localIP, hostName: heart.localHostName, port: heart.port };
}

/** The last words of a base: no sign of life, but its end. */
export function isGoingDown(heart: Heart): boolean {
  return heart.state === 'DEACTIVATED';
}

/** A base that could not find out its health answers FAILED and no figures: all is undefined then. */
export function baseHealthOf(health: Health): BaseHealth {
  return {
    metaspaceUsedBytes: amountOf(health.javaUsedMetaspace),
    metaspaceCommittedBytes: amountOf(health.javaCommittedMetaspace),
    metaspaceMaxBytes: amountOf(health.javaMaxMetaspace),
    runTimeSeconds: amountOf(health.runTimeSeconds),
    javaVersion: health.javaVersion,
    ...(health.masterBizName === undefined ? {} : { masterName: health.masterBizName }),
  };
}

/** The JVM's negative amounts mean "no limit" or "not known"; what nobody can count means nothing. */
function amountOf(value: number | undefined): number | undefined {
  return value !== undefined && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? value : undefined;
}

/**
 * The base itself ("master biz") is not looked for: both recordings leave it out of the list, whatever
 * `help` says, and its name is only known from another message, the health.
 */
export function moduleStatusesOf(list: readonly BizInfo[]): ModuleStatus[] {
  return list.map(({ name, version, state }) => ({ name, version, state }));
}

export function operationResultOf(operation: BizOperation): OperationResult {
  const { bizName, bizVersion, response } = operation;
  const command = operation.command === 'installBiz' ? 'install' : 'uninstall';
  const module = bizName === undefined ? undefined : { name: bizName, version: bizVersion };
  return { command, module, ...endOf(command, response, module) };
}

/** Result of a command, for a transport whose answers do not say what they answer. */
export function commandResultOf(command: ModuleCommand, module: ModuleId, response: CommandResponse): OperationResult {
  return { command, module, ...endOf(command, response, module) };
}

/**
 * One result for every module that the answer names. A url that failed names none, nor does an answer that
 * failed as a whole: one result of no module each.
 */
export function batchResultsOf(batch: BatchInstall): OperationResult[] {
  if (batch.responses.length === 0) {
    const end = endOf('install', batch.response, undefined);
    return end.outcome === 'done' ? [] : [{ command: 'install', module: undefined, ...end }];
  }
  return batch.responses.flatMap((response) => {
    const answer = { code: response.code ?? '', message: '', data: response, errorStackTrace: '' };
    const modules = response.bizInfos.map(({ name, version }) => ({ name, version }));
    const named: (ModuleId | undefined)[] = modules.length > 0 ? modules : [undefined];
    return named.map((module) => ({ command: 'install' as const, module, ...endOf('install', answer, module) }));
  });
}

type End = Pick<OperationResult, 'outcome' | 'code' | 'message' | 'state' | 'brought'>;

function endOf(command: ModuleCommand, response: CommandResponse, module: ModuleId | undefined): End {
  const inner = response.data;
  const outcome = outcomeOf(command, response, inner);
  const found = command === 'install' && module && outcome !== 'failed' ? otherModuleIn(inner, module) : undefined;
  if (found !== undefined) {
    const brought = outcome === 'done' ? moduleStatusesOf(inner?.bizInfos ?? []).slice(0, MAX_BROUGHT) : [];
    return { outcome: 'failed', code: WRONG_MODULE, message: wrongJar(found), state: undefined, brought };
  }
  return {
    outcome,
    code: (response.code !== 'SUCCESS' && inner?.code === 'SUCCESS' ? undefined : inner?.code) ?? response.code,
    message: messageLineOf(response.message, inner?.message ?? '', response.errorStackTrace),
    state: command === 'install' && outcome === 'done' ? stateIn(inner?.bizInfos ?? [], module) : undefined,
  };
}

/** A jar contains one module. */
const MAX_BROUGHT = 10;

/** The inner code that says that the wanted state was there before. */
const ALREADY_CODES: Readonly<Record<ModuleCommand, string | undefined>> = {
  install: 'REPEAT_BIZ',
  uninstall: 'NOT_FOUND_BIZ',
  switch: undefined,
};

/** arklet refuses a command for a module whose last command still runs with these words and no code of its own. */
const BUSY_WORDS = 'conflict, exist unfinished command';

function outcomeOf(
  command: ModuleCommand,
  response: CommandResponse,
  inner: ClientResponse | undefined,
): OperationOutcome {
  // A switch may be answered by the outer code alone. The other two have no inner code when they have only begun.
  const innerCode = inner?.code ?? (command === 'switch' ? 'SUCCESS' : undefined);
  if (response.code === 'SUCCESS' && innerCode === 'SUCCESS') return 'done';
  if (innerCode !== undefined && innerCode === ALREADY_CODES[command]) return 'already';
  if (response.message.includes(BUSY_WORDS) || inner?.message.includes(BUSY_WORDS)) return 'busy';
  return 'failed';
}

/** The agent's words beside REPEAT_BIZ. */
const REPEATED = /^Biz: (.{1,300}) has been installed or registered/;

/**
 * The agent fetches the jar of the command and installs it under the name and version that stand in its manifest.
 * Undefined where the answer names the module that was asked for, or none.
 */
function otherModuleIn(inner: ClientResponse | undefined, module: ModuleId): string | undefined {
  if (inner === undefined) return undefined;
  const wanted = `${module.name}:${module.version}`;
  const named = inner.bizInfos.map(({ name, version }) => `${name}:${version}`);
  const repeated = inner.code === ALREADY_CODES.install ? REPEATED.exec(inner.message)?.[1] : undefined;
  if (repeated !== undefined) named.push(repeated);
  return named.includes(wanted) ? undefined : named[0];
}

function wrongJar(found: string): string {
  return cutToBytes(`the jar contains module ${found}: the container name and BIZ_VERSION must match it`, 1024);
}

function stateIn(infos: readonly BizInfo[], module: ModuleId | undefined): ModuleState | undefined {
  return infos.find(({ name, version }) => name === module?.name && version === module.version)?.state;
}

/**
 * An install as arklet takes it, without fields that say nothing (no args, no envs, the default strategy), as older
 * agents do not know them.
 */
export function installBizOf(spec: ModuleSpec): InstallBiz {
  const { name, version, url, args, envs, strategy } = spec;
  return {
    bizName: name,
    bizVersion: version,
    bizUrl: url,
    ...(args.length > 0 && { args }),
    ...(Object.keys(envs).length > 0 && { envs }),
    ...(strategy !== undefined && strategy !== 'installOnly' && { installStrategy: strategy }),
  };
}

export function uninstallBizOf({ name, version }: ModuleId): UninstallBiz {
  return { bizName: name, bizVersion: version };
}

export function switchBizOf({ name, version }: ModuleId): SwitchBiz {
  return { bizName: name, bizVersion: version };
}
