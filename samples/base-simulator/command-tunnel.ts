import type { Arklet } from './arklet.ts';
import type { Effect, FaultScript } from './faults.ts';
import type { CommandHistory, CommandRecord } from './history.ts';
import { type BizRequest, type CommandName, type InstallPlan, type Reply, readBizRequest } from './model.ts';
import { fullBizOf, simpleBizOf } from './responses.ts';

export interface CommandTunnelOptions {
  base: string;
  arklet: Arklet;
  /** Asked in this order; what an earlier one says wins. */
  faults: readonly FaultScript[];
  history: CommandHistory;
  legacyBizTopic: boolean;
  /** Publishes below `…/base/`; `data` gets the envelope, a string is sent as it is. */
  publish: (kind: string, message: { data: unknown } | string) => void;
  /** Resolves with false when the process ended meanwhile. */
  wait: (delayMs: number) => Promise<boolean>;
}

interface Received {
  command: string;
  content: unknown;
  messageId: number | undefined;
}

/** The MQTT part of the agent: command in, arklet, answer out. */
export class CommandTunnel {
  readonly #options: CommandTunnelOptions;

  constructor(options: CommandTunnelOptions) {
    this.#options = options;
  }

  /** Records a command that nobody acts on. */
  ignore(command: string, payload: string, messageId: number | undefined): void {
    const content = parse(payload);
    const record = this.#receive({ command, content, messageId }, isObject(content) ? readBizRequest(content) : {});
    this.#options.history.finish(record, 'ignored:silent');
  }

  /** `command` is the last level of the topic. Never rejects. */
  async handle(command: string, payload: string, messageId: number | undefined): Promise<void> {
    const received: Received = { command, content: parse(payload), messageId };
    if (command === 'baseline') return this.#playBaseline(received);
    // The agent fails before it answers when the payload is no JSON object, and when the command is unknown to it.
    if (!isObject(received.content)) return this.#reject(received, 'ignored:unparsable');
    const request = readBizRequest(received.content);
    switch (command) {
      case 'installBiz':
      case 'uninstallBiz':
        return this.#operate(command, received, request);
      case 'health':
      case 'queryAllBiz':
        return this.#query(command, received);
      default:
        return this.#reject(received, 'ignored:unsupported');
    }
  }

  /** Publishes the list of modules, asked or not. */
  publishModules(): void {
    this.#options.publish(...this.#moduleList());
  }

  async #operate(command: 'installBiz' | 'uninstallBiz', received: Received, request: BizRequest): Promise<void> {
    const { arklet, history } = this.#options;
    const record = this.#receive(received, request);
    const effect = this.#takeFaults(command, request);
    const reply = await (command === 'installBiz'
      ? arklet.installBiz(request, planOf(effect))
      : arklet.uninstallBiz(request, effect.failure));
    history.finish(record, reply.outcome);
    if (!reply.response) return;
    const { bizName, bizVersion } = request;
    // The agent leaves out what the command did not say.
    const names = {
      ...(bizName === undefined ? {} : { bizName }),
      ...(bizVersion === undefined ? {} : { bizVersion }),
    };
    await this.#answer(effect, 'bizOperation', { command, ...names, response: reply.response });
  }

  async #query(command: 'health' | 'queryAllBiz', received: Received): Promise<void> {
    const record = this.#receive(received, {});
    const effect = this.#takeFaults(command, {});
    this.#options.history.finish(record, 'executed');
    if (command === 'health') return this.#answer(effect, 'health', this.#options.arklet.health().response);
    const [kind, { data }] = this.#moduleList();
    return this.#answer(effect, kind, data);
  }

  async #playBaseline(received: Received): Promise<void> {
    const { content, messageId } = received;
    if (!Array.isArray(content) || !content.every(isObject)) return this.#reject(received, 'ignored:unparsable');
    const requests = content.map(readBizRequest);
    const batch = { command: 'batchInstallBiz', content, messageId };
    // An empty baseline is one command without a module.
    const records = (requests.length > 0 ? requests : [{}]).map((request) => this.#receive(batch, request));
    const effect = this.#takeFaults('batchInstallBiz', {});
    const reply = await this.#options.arklet.batchInstallBiz(
      requests,
      (request) => planOf({ ...this.#takeFaults('batchInstallBiz', request), ...effect }),
      (index, { outcome }) => this.#finish(records[index], { outcome }),
    );
    for (const record of records) this.#finish(record, reply);
    if (reply.response) {
      const data = { command: 'batchInstallBiz', response: reply.response };
      await this.#answer(effect, 'batchInstallBizResponse', data);
    }
  }

  #moduleList(): [kind: string, message: { data: unknown }] {
    const modules = this.#options.arklet.modules();
    if (!this.#options.legacyBizTopic) return ['simpleBiz', { data: modules.map(simpleBizOf) }];
    return ['biz', { data: { code: 'SUCCESS', data: modules.map(fullBizOf) } }];
  }

  async #answer(effect: Effect, kind: string, data: unknown): Promise<void> {
    if (!(await this.#options.wait(effect.answerDelayMs ?? 0))) return;
    if (effect.answers === 'never') return;
    const message = effect.garbage ?? { data };
    this.#options.publish(kind, message);
    if (effect.answers === 'twice') this.#options.publish(kind, message);
  }

  #takeFaults(command: CommandName, request: BizRequest): Effect {
    const effects = this.#options.faults.map((script) => script.take(command, request));
    return Object.assign({}, ...effects.reverse());
  }

  #receive(received: Received, request: BizRequest): CommandRecord {
    const { base, arklet, history } = this.#options;
    const { bizName, bizVersion } = request;
    const state = bizName && bizVersion ? arklet.stateOf({ bizName, bizVersion }) : undefined;
    return history.receive({
      base,
      command: received.command,
      ...request,
      ...(state === undefined ? {} : { stateAtReceipt: state }),
      ...(received.messageId === undefined ? {} : { requestMessageId: received.messageId }),
    });
  }

  #reject(received: Received, outcome: 'ignored:unparsable' | 'ignored:unsupported'): void {
    this.#options.history.finish(this.#receive(received, {}), outcome);
  }

  /** Keeps the first outcome of a record. */
  #finish(record: CommandRecord | undefined, reply: Reply): void {
    if (record?.outcome === 'in work') this.#options.history.finish(record, reply.outcome);
  }
}

function planOf({ installMs, failure, isBroken }: Effect): InstallPlan {
  return {
    ...(installMs === undefined ? {} : { installMs }),
    ...(failure === undefined ? {} : { failure }),
    ...(isBroken === undefined ? {} : { isBroken }),
  };
}

function parse(payload: string): unknown {
  try {
    return JSON.parse(payload);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
