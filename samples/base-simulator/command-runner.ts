import type { Arklet } from './arklet.ts';
import type { Effect, FaultScript } from './faults.ts';
import { HELP_DATA } from './help.ts';
import type { CommandHistory, CommandRecord } from './history.ts';
import { isObject } from './json.ts';
import {
  type BizRequest,
  type CommandName,
  type InstallPlan,
  type OperationName,
  type Outcome,
  type Reply,
  readBizRequest,
} from './model.ts';
import { OperationRecords } from './operation-records.ts';
import { fullBizOf, invalidCommand } from './responses.ts';
import type { TunnelName } from './transport.ts';
import { faultOfAsync } from './validation.ts';

export interface CommandRunnerOptions {
  base: string;
  arklet: Arklet;
  /** Asked in this order; what an earlier one says wins. */
  faults: readonly FaultScript[];
  history: CommandHistory;
  /** The wall clock of the base. */
  wallTimeMs: () => number;
  /** A command that ends while the base is silent gets no answer later either. */
  isSilent: () => boolean;
}

/** A command as it came in. */
export interface Received {
  command: string;
  tunnel: TunnelName;
  /** The parsed payload. */
  content: unknown;
  messageId?: number | undefined;
  userAgent?: string | undefined;
}

export interface Result {
  reply: Reply;
  /** What the faults do to the answer. */
  effect: Effect;
}

/** Runs commands in one process of a base, under its faults, and keeps the history. Knows no transport. */
export class CommandRunner {
  readonly arklet: Arklet;
  readonly #options: CommandRunnerOptions;
  readonly #operations: OperationRecords;

  constructor(options: CommandRunnerOptions) {
    this.arklet = options.arklet;
    this.#options = options;
    this.#operations = new OperationRecords(options.wallTimeMs);
  }

  /** Records a command that nobody acts on. */
  ignore(received: Received, outcome: Outcome): void {
    // What a command says is of interest only where the base would have acted on it.
    const request = outcome === 'ignored:silent' && isObject(received.content) ? readBizRequest(received.content) : {};
    this.#options.history.finish(this.#receive(received, request), outcome);
  }

  /** Installs, uninstalls or activates one module. `isAsync`: with a request id the answer comes at once. */
  async operate(
    command: OperationName,
    { received, request, isAsync }: { received: Received; request: BizRequest; isAsync: boolean },
  ): Promise<Result> {
    const record = this.#receive(received, request);
    const effect = this.#takeFaults(command, request);
    const work = (): Promise<Reply> => this.#perform(command, request, effect);
    if (isAsync) return { reply: this.#operateLater(command, { request, record, work }), effect };
    const reply = await work();
    const result = this.#resultOf(reply, effect);
    this.#options.history.finish(record, reply.outcome);
    return result;
  }

  /** Answers a question. */
  query(command: 'health' | 'queryAllBiz' | 'queryBizOps' | 'help', received: Received): Result {
    const request = isObject(received.content) && command === 'queryBizOps' ? readBizRequest(received.content) : {};
    const record = this.#receive(received, request);
    const effect = this.#takeFaults(command, request);
    const reply = this.#answerOf(command, request.requestId);
    this.#options.history.finish(record, reply.outcome);
    return { reply, effect };
  }

  /** Installs a list of modules; undefined when `items` is no such list. */
  async batchInstall(items: unknown, received: Received): Promise<Result | undefined> {
    if (!Array.isArray(items) || !items.every(isObject)) {
      this.ignore(received, 'ignored:unparsable');
      return undefined;
    }
    const requests = items.map(readBizRequest);
    const batch = { ...received, command: 'batchInstallBiz' };
    // An empty baseline is one command without a module.
    const records = (requests.length > 0 ? requests : [{}]).map((request) => this.#receive(batch, request));
    const effect = this.#takeFaults('batchInstallBiz', {});
    const reply = await this.arklet.batchInstallBiz(
      requests,
      (request) => planOf({ ...this.#takeFaults('batchInstallBiz', request), ...effect }),
      (index, { outcome }) => this.#finish(records[index], outcome),
    );
    const result = this.#resultOf(reply, effect);
    for (const record of records) this.#finish(record, reply.outcome);
    return result;
  }

  #resultOf(reply: Reply, effect: Effect): Result {
    return { reply, effect: this.#options.isSilent() ? { ...effect, answers: 'never' } : effect };
  }

  #perform(command: OperationName, request: BizRequest, effect: Effect): Promise<Reply> {
    if (command === 'installBiz') return this.arklet.installBiz(request, planOf(effect));
    if (command === 'uninstallBiz') return this.arklet.uninstallBiz(request, effect.failure);
    return this.arklet.switchBiz(request, effect.failure);
  }

  #operateLater(
    command: OperationName,
    { request, record, work }: { request: BizRequest; record: CommandRecord; work: () => Promise<Reply> },
  ): Reply {
    const end = (outcome: Outcome): void => this.#options.history.finish(record, outcome);
    const fault = faultOfAsync(command, request);
    if (fault === undefined) return this.#operations.start(request, { work, onEnd: end });
    const reply = invalidCommand(fault);
    end(reply.outcome);
    return reply;
  }

  #answerOf(command: 'health' | 'queryAllBiz' | 'queryBizOps' | 'help', requestId: string | undefined): Reply {
    if (command === 'health') return this.arklet.health();
    if (command === 'queryBizOps') return this.#operations.query(requestId);
    const data = command === 'help' ? HELP_DATA : this.arklet.modules().map(fullBizOf);
    return { outcome: 'executed', response: { code: 'SUCCESS', data } };
  }

  #takeFaults(command: CommandName, request: BizRequest): Effect {
    const effects = this.#options.faults.map((script) => script.take(command, request));
    return Object.assign({}, ...effects.reverse());
  }

  #receive({ command, tunnel, messageId, userAgent }: Received, request: BizRequest): CommandRecord {
    const { bizName, bizVersion } = request;
    const state = bizName && bizVersion ? this.arklet.stateOf({ bizName, bizVersion }) : undefined;
    return this.#options.history.receive({
      base: this.#options.base,
      command,
      tunnel,
      ...request,
      ...(state === undefined ? {} : { stateAtReceipt: state }),
      ...(messageId === undefined ? {} : { requestMessageId: messageId }),
      ...(userAgent === undefined ? {} : { userAgent }),
    });
  }

  /** Keeps the first outcome of a record. */
  #finish(record: CommandRecord | undefined, outcome: Outcome): void {
    if (record?.outcome === 'in work') this.#options.history.finish(record, outcome);
  }
}

function planOf({ installMs, failure, isBroken, manifest }: Effect): InstallPlan {
  return {
    ...(installMs === undefined ? {} : { installMs }),
    ...(failure === undefined ? {} : { failure }),
    ...(isBroken === undefined ? {} : { isBroken }),
    ...(manifest === undefined ? {} : { manifest }),
  };
}
