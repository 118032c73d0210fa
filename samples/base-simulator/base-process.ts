import type { Clock, Timer } from '../../src/clock.ts';
import { Arklet } from './arklet.ts';
import { CommandTunnel } from './command-tunnel.ts';
import type { FaultScript } from './faults.ts';
import type { CommandHistory } from './history.ts';
import type { ArkletOptions } from './model.ts';
import { MqttTransport } from './mqtt-transport.ts';
import { ProcessTimers } from './process-timers.ts';

export interface BaseProcessOptions extends ArkletOptions {
  identity: string;
  clusterName: string;
  localIP: string;
  localHostName: string;
  /** The state in the heartbeat. */
  state: string;
  env: string;
  brokerUrl: string;
  username?: string;
  password?: string;
  clientIdPrefix: string;
  legacyBizTopic: boolean;
  clockSkewMs: number;
  reconnectMs: number;
  heartbeatMs: number;
  /** From the first heartbeat to the second; later ones follow every `heartbeatMs`. */
  secondBeatMs: number;
  clock: Clock;
  faults: readonly FaultScript[];
  history: CommandHistory;
}

/** One run of a base's JVM: it ends with `kill` and is never started again. */
export class BaseProcess {
  readonly arklet: Arklet;
  /** Replaces the identity inside of heartbeats and baseline queries, not in topics. */
  payloadIdentity: string | undefined;
  readonly #options: BaseProcessOptions;
  readonly #topicRoot: string;
  readonly #transport: MqttTransport;
  readonly #tunnel: CommandTunnel;
  readonly #timers: ProcessTimers;
  #nextBeat: Timer | undefined;
  #isSilent = false;
  #hasAnnounced = false;

  constructor(options: BaseProcessOptions) {
    this.#options = options;
    this.#topicRoot = `koupleless_${options.env.toLowerCase()}/${options.identity}`;
    this.#timers = new ProcessTimers(options.clock);
    this.arklet = new Arklet(options);
    this.#tunnel = new CommandTunnel({
      base: options.identity,
      arklet: this.arklet,
      faults: options.faults,
      history: options.history,
      legacyBizTopic: options.legacyBizTopic,
      publish: (kind, message) => this.publish(kind, message),
      wait: (delayMs) => this.#timers.wait(delayMs),
    });
    this.#transport = this.#createTransport();
  }

  get isConnected(): boolean {
    return this.#transport.isConnected;
  }

  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** Resolves when connected and subscribed. */
  async connect(): Promise<void> {
    await this.#transport.connect();
  }

  async disconnect(): Promise<void> {
    await this.#transport.disconnect();
  }

  /** Asks for the baseline and starts the heartbeat. Only the first call counts. */
  announce(): void {
    if (this.#hasAnnounced || this.#timers.isTerminated) return;
    this.#hasAnnounced = true;
    this.publish('queryBaseline', { data: this.#metadata() });
    this.beat();
    this.#planBeat(this.#options.clock.now() + this.#options.secondBeatMs);
  }

  /** Sends a heartbeat now, beside the regular ones. */
  beat(): void {
    const { localIP, localHostName, state } = this.#options;
    this.publish('heart', { data: { baseMetadata: this.#metadata(), localHostName, localIP, port: 0, state } });
  }

  publishModules(): void {
    this.#tunnel.publishModules();
  }

  /** Publishes below `…/base/`, in the envelope unless it is a string. Lost while silent or disconnected. */
  publish(kind: string, message: { data: unknown } | string): void {
    if (this.#isSilent || this.#timers.isTerminated) return;
    const publishTimestamp = this.#options.clock.wallTime().getTime() + this.#options.clockSkewMs;
    const payload = typeof message === 'string' ? message : JSON.stringify({ ...message, publishTimestamp });
    this.#transport.publish(`${this.#topicRoot}/base/${kind}`, payload);
  }

  silence(): void {
    this.#isSilent = true;
  }

  /** Ends the silence, with a heartbeat at once. */
  speak(): void {
    if (!this.#isSilent) return;
    this.#isSilent = false;
    if (this.#hasAnnounced) this.beat();
  }

  /** Ends the process: no more answers, modules lost, the socket closed without a DISCONNECT. */
  async kill(): Promise<void> {
    this.#nextBeat?.cancel();
    this.#timers.terminate();
    this.arklet.terminate();
    await this.#transport.cut();
  }

  #metadata(): Record<string, unknown> {
    const { identity, name, version, clusterName } = this.#options;
    return { clusterName, identity: this.payloadIdentity ?? identity, name, version };
  }

  #planBeat(dueAt: number): void {
    const { clock, heartbeatMs } = this.#options;
    const beat = (): void => {
      this.beat();
      this.#planBeat(dueAt + heartbeatMs);
    };
    this.#nextBeat = clock.setTimer(beat, Math.max(0, dueAt - clock.now()));
  }

  #createTransport(): MqttTransport {
    const { brokerUrl, username, password, clientIdPrefix, identity, reconnectMs, clock } = this.#options;
    return new MqttTransport({
      brokerUrl,
      clientId: `${clientIdPrefix}@@@${identity}`,
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password }),
      topics: [`${this.#topicRoot}/+`, `${this.#topicRoot}/base/baseline`],
      reconnectMs,
      clock,
      onMessage: (topic, payload, messageId) => this.#onMessage(topic, payload, messageId),
    });
  }

  #onMessage(topic: string, payload: string, messageId: number | undefined): void {
    if (this.#timers.isTerminated) return;
    const command = topic.slice(topic.lastIndexOf('/') + 1);
    if (this.#isSilent) this.#tunnel.ignore(command, payload, messageId);
    else void this.#tunnel.handle(command, payload, messageId);
  }
}
