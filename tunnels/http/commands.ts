import type { ModuleCommand, ModuleId, ModuleSpec } from '../../src/tunnel/module.ts';
import type { Envelope, InvalidMessage, TunnelHandler } from '../../src/tunnel/tunnel.ts';
import {
  baseHealthOf,
  commandResultOf,
  installBizOf,
  moduleStatusesOf,
  switchBizOf,
  uninstallBizOf,
} from '../arklet/convert.ts';
import { parse, type Read } from '../arklet/parse.ts';
import { readAnsweredBy, readBizList, readCommandResponse, readHealth } from '../arklet/read.ts';

/** Paths of arklet that the controller calls. */
export const COMMANDS = ['installBiz', 'uninstallBiz', 'switchBiz', 'queryAllBiz', 'health'] as const;
export type CommandName = (typeof COMMANDS)[number];

export interface Command {
  readonly name: CommandName;
  readonly payload: object;
  /** A question changes nothing: two of a kind have the same answer. */
  readonly isQuestion: boolean;
  /** Whether it leaves also where `mayCommand` says no. */
  readonly isForAnybody?: boolean;
  /** Hands the answer over, or says why it cannot. */
  readonly hear: (envelope: Envelope, answer: Uint8Array, handler: TunnelHandler) => InvalidMessage | undefined;
}

export const LIST_COMMAND: Command = {
  name: 'queryAllBiz',
  payload: {},
  isQuestion: true,
  hear: hearing(readBizList, (handler, envelope, list) => handler.onModuleList(envelope, moduleStatusesOf(list))),
};

export const HEALTH_COMMAND: Command = {
  name: 'health',
  payload: {},
  isQuestion: true,
  hear: hearing(readHealth, (handler, envelope, health) => handler.onHealth(envelope, baseHealthOf(health))),
};

/** Finds out who is at an address. */
export const IDENTITY_COMMAND: Command = { ...HEALTH_COMMAND, isForAnybody: true };

export function installCommand(spec: ModuleSpec): Command {
  return { name: 'installBiz', payload: installBizOf(spec), isQuestion: false, hear: hearingEnd('install', spec) };
}

export function uninstallCommand(id: ModuleId): Command {
  return { name: 'uninstallBiz', payload: uninstallBizOf(id), isQuestion: false, hear: hearingEnd('uninstall', id) };
}

export function switchCommand(id: ModuleId): Command {
  return { name: 'switchBiz', payload: switchBizOf(id), isQuestion: false, hear: hearingEnd('switch', id) };
}

/** An answer over HTTP does not say what it answers; the connection does. */
function hearingEnd(command: ModuleCommand, { name, version }: ModuleId): Command['hear'] {
  return hearing(readCommandResponse, (handler, envelope, response) =>
    handler.onOperationResult(envelope, commandResultOf(command, { name, version }, response)),
  );
}

function hearing<T>(
  read: Read<T>,
  handOver: (handler: TunnelHandler, envelope: Envelope, message: T) => void,
): Command['hear'] {
  return ({ tunnel, identity, ...times }, answer, handler) => {
    const parsed = parse({ tunnel, identity }, answer, (value) => ({
      message: read(value),
      answeredBy: readAnsweredBy(value),
    }));
    if (parsed.invalid) return parsed.invalid;
    const { message, answeredBy } = parsed.message;
    handOver(handler, { tunnel, identity, ...times, ...(answeredBy === undefined ? {} : { answeredBy }) }, message);
    return undefined;
  };
}
