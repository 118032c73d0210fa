import type { CommandRunner, Received, Result } from './command-runner.ts';
import { isObject, parseJson } from './json.ts';
import { readBizRequest } from './model.ts';
import { MqttConnection, type MqttConnectionOptions } from './mqtt-connection.ts';
import { fullBizOf, simpleBizOf } from './responses.ts';
import type { BaseConnection, SharedConnection } from './shared-connection.ts';
import type { Transport, TransportProcess } from './transport.ts';

export interface MqttTransportOptions
  extends Pick<MqttConnectionOptions, 'brokerUrl' | 'username' | 'password' | 'reconnectMs'> {
  env: string;
  clientIdPrefix: string;
  legacyBizTopic: boolean;
  /** The base takes a seat there instead of a connection of its own. */
  shared?: SharedConnection;
}

/** A message below `…/base/`: `data` gets the envelope, a string is sent as it is. */
type Message = { data: unknown } | string;

/** Topics and envelopes of a base that speaks MQTT. */
export class MqttTransport implements Transport {
  readonly tunnel = 'mqtt';
  readonly port = 0;
  readonly #process: TransportProcess;
  readonly #runner: CommandRunner;
  readonly #legacyBizTopic: boolean;
  readonly #topicRoot: string;
  readonly #connection: BaseConnection;

  constructor(options: MqttTransportOptions, process: TransportProcess) {
    const { env, clientIdPrefix, legacyBizTopic, shared, ...connection } = options;
    this.#process = process;
    this.#runner = process.runner;
    this.#legacyBizTopic = legacyBizTopic;
    this.#topicRoot = `koupleless_${env.toLowerCase()}/${process.identity}`;
    const topics = [`${this.#topicRoot}/+`, `${this.#topicRoot}/base/baseline`];
    const onMessage: MqttConnectionOptions['onMessage'] = (...message) => void this.#onMessage(...message);
    const clientId = `${clientIdPrefix}@@@${process.identity}`;
    this.#connection = shared
      ? shared.seat({ topicRoot: this.#topicRoot, topics, onMessage })
      : new MqttConnection({ ...connection, clientId, topics, clock: process.clock, onMessage });
  }

  get isConnected(): boolean {
    return this.#connection.isConnected;
  }

  /** Resolves when connected and subscribed. */
  connect(): Promise<void> {
    return this.#connection.connect();
  }

  disconnect(): Promise<void> {
    return this.#connection.disconnect();
  }

  leave(): Promise<void> {
    return this.#connection.disconnect();
  }

  /** The socket is closed without a DISCONNECT. */
  cut(): Promise<void> {
    return this.#connection.cut();
  }

  heartbeat(beat: object): void {
    this.#publish('heart', { data: beat });
  }

  queryBaseline(metadata: object): void {
    this.#publish('queryBaseline', { data: metadata });
  }

  announceModules(): void {
    this.#publish(...this.#moduleList());
  }

  sendRaw(kind: string, payload: string): void {
    this.#publish(kind, payload);
  }

  #publish(kind: string, message: Message): void {
    if (this.#process.isSilent()) return;
    const publishTimestamp = this.#process.wallTimeMs();
    const payload = typeof message === 'string' ? message : JSON.stringify({ ...message, publishTimestamp });
    this.#connection.publish(`${this.#topicRoot}/base/${kind}`, payload);
  }

  /** The last level of the topic is the command. Never rejects. */
  async #onMessage(topic: string, payload: string, messageId: number | undefined): Promise<void> {
    const command = topic.slice(topic.lastIndexOf('/') + 1);
    const received: Received = { command, tunnel: 'mqtt', content: parseJson(payload), messageId };
    if (this.#process.isSilent()) return this.#runner.ignore(received, 'ignored:silent');
    if (command === 'baseline') return this.#playBaseline(received);
    // The agent fails before it answers when the payload is no JSON object, and when the command is unknown to it.
    if (!isObject(received.content)) return this.#runner.ignore(received, 'ignored:unparsable');
    if (command === 'installBiz' || command === 'uninstallBiz') {
      return this.#operate(command, received, received.content);
    }
    if (command === 'health' || command === 'queryAllBiz') return this.#query(command, received);
    this.#runner.ignore(received, 'ignored:unsupported');
  }

  async #operate(
    command: 'installBiz' | 'uninstallBiz',
    received: Received,
    content: Record<string, unknown>,
  ): Promise<void> {
    const request = readBizRequest(content);
    const result = await this.#runner.operate(command, { received, request, isAsync: false });
    const { bizName, bizVersion } = request;
    // The agent leaves out what the command did not say.
    const names = {
      ...(bizName === undefined ? {} : { bizName }),
      ...(bizVersion === undefined ? {} : { bizVersion }),
    };
    await this.#answer(result, 'bizOperation', { command, ...names, response: result.reply.response });
  }

  #query(command: 'health' | 'queryAllBiz', received: Received): Promise<void> {
    const result = this.#runner.query(command, received);
    if (command === 'health') return this.#answer(result, 'health', result.reply.response);
    const [kind, { data }] = this.#moduleList();
    return this.#answer(result, kind, data);
  }

  async #playBaseline(received: Received): Promise<void> {
    const result = await this.#runner.batchInstall(received.content, received);
    if (!result) return;
    const data = { command: 'batchInstallBiz', response: result.reply.response };
    await this.#answer(result, 'batchInstallBizResponse', data);
  }

  #moduleList(): [kind: string, message: { data: unknown }] {
    const modules = this.#runner.arklet.modules();
    if (!this.#legacyBizTopic) return ['simpleBiz', { data: modules.map(simpleBizOf) }];
    return ['biz', { data: { code: 'SUCCESS', data: modules.map(fullBizOf) } }];
  }

  async #answer({ reply, effect }: Result, kind: string, data: unknown): Promise<void> {
    if (!reply.response || !(await this.#process.wait(effect.answerDelayMs ?? 0))) return;
    if (effect.answers === 'never' || effect.answers === 'cut') return;
    const message = effect.garbage ?? { data };
    this.#publish(kind, message);
    if (effect.answers === 'twice') this.#publish(kind, message);
  }
}
