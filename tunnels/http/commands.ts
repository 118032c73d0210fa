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
import { MAX_PAYLOAD_BYTES, MAX_UNPROVEN_BYTES, parse, type Read } from '../arklet/parse.ts';
import { readAnsweredBy, readBizList, readCommandResponse, readHealth } from '../arklet/read.ts';

/** Paths of arklet that the controller calls. */
export const COMMANDS = ['installBiz', 'uninstallBiz', 'switchBiz', 'queryAllBiz', 'health'] as const;
export type CommandName = (typeof COMMANDS)[number];

export interface Command {
  readonly name: CommandName;
  readonly payload: object;
  /** A question changes nothing: two of a kind have the same answer. */
  readonly isQuestion: boolean;
  /** Whether it leaves also where `isOurs` says no. */
  readonly isForAnybody?: boolean;
  /** Who answers may be anybody: the answer shares the memory of all that strangers send. */
  readonly isOfStranger?: boolean;
  readonly maxAnswerBytes: number;
  /** Hands the answer over, or says why it cannot. */
  readonly hear: (envelope: Envelope, answer: Uint8Array, handler: TunnelHandler) => InvalidMessage | undefined;
}

export const LIST_COMMAND: Command = {
  name: 'queryAllBiz',
  payload: {},
  isQuestion: true,
  maxAnswerBytes: MAX_PAYLOAD_BYTES,
  hear: hearing(readBizList, (handler, envelope, list) => handler.onModuleList(envelope, moduleStatusesOf(list))),
};

export const HEALTH_COMMAND: Command = healthCommand(MAX_PAYLOAD_BYTES);

/** The same of a base without a VNode. */
export const UNPROVEN_HEALTH_COMMAND: Command = { ...healthCommand(MAX_UNPROVEN_BYTES), isOfStranger: true };

/** Finds out who is at an address: perhaps a base with many modules. */
export const IDENTITY_COMMAND: Command = { ...HEALTH_COMMAND, isForAnybody: true, isOfStranger: true };

function healthCommand(maxAnswerBytes: number): Command {
  return {
    name: 'health',
    payload: {},
    isQuestion: true,
    maxAnswerBytes,
    hear: hearing(
      readHealth,
      (handler, envelope, health) => handler.onHealth(envelope, baseHealthOf(health)),
      maxAnswerBytes,
    ),
  };
}

const OPERATION = { isQuestion: false, maxAnswerBytes: MAX_PAYLOAD_BYTES } as const;

export function installCommand(spec: ModuleSpec): Command {
  return { name: 'installBiz', payload: installBizOf(spec), ...OPERATION, hear: hearingEnd('install', spec) };
}

export function uninstallCommand(id: ModuleId): Command {
  return { name: 'uninstallBiz', payload: uninstallBizOf(id), ...OPERATION, hear: hearingEnd('uninstall', id) };
}

export function switchCommand(id: ModuleId): Command {
  return { name: 'switchBiz', payload: switchBizOf(id), ...OPERATION, hear: hearingEnd('switch', id) };
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
  maxBytes = MAX_PAYLOAD_BYTES,
): Command['hear'] {
  const readAnswer: Read<{ message: T; answeredBy: string | undefined }> = (value) => ({
    message: read(value),
    answeredBy: readAnsweredBy(value),
  });
  return ({ tunnel, identity, ...times }, answer, handler) => {
    const parsed = parse({ tunnel, identity }, answer, readAnswer, maxBytes);
    if (parsed.invalid) return parsed.invalid;
    const { message, answeredBy } = parsed.message;
    handOver(handler, { tunnel, identity, ...times, ...(answeredBy === undefined ? {} : { answeredBy }) }, message);
    return undefined;
  };
}
