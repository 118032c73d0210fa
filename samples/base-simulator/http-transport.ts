import type { CommandRunner, Received, Result } from './command-runner.ts';
import { HeartbeatClient } from './heartbeat-client.ts';
import { httpAnswerOf, NOT_FOUND } from './http-answer.ts';
import { type Exchange, HttpCommandServer } from './http-command-server.ts';
import { isObject, parseJson } from './json.ts';
import { readBizRequest } from './model.ts';
import { invalidCommand } from './responses.ts';
import type { Transport, TransportProcess } from './transport.ts';

export interface HttpTransportOptions {
  /** `http://host:7777`. */
  controllerUrl: string;
  token?: string;
  /** Where commands are taken. */
  listenAddress: string;
  /** 0 = a free one. */
  port: number;
  /** Threads that take commands; see `BaseOptions`. */
  eventLoops: number;
  /** How long heartbeats name the port before it is bound. */
  listenDelayMs: number;
  /** Whether the base asks for its baseline; the public agent does not. */
  queriesBaseline: boolean;
}

/** A base that speaks HTTP: it posts heartbeats, and serves commands on a port of its own. */
export class HttpTransport implements Transport {
  readonly tunnel = 'http';
  readonly #options: HttpTransportOptions;
  readonly #process: TransportProcess;
  readonly #runner: CommandRunner;
  readonly #server: HttpCommandServer;
  #client: HeartbeatClient;
  #hasListened = false;
  #isBinding = false;

  constructor(options: HttpTransportOptions, process: TransportProcess) {
    this.#options = options;
    this.#process = process;
    this.#runner = process.runner;
    this.#client = this.#createClient();
    this.#server = new HttpCommandServer({
      host: options.listenAddress,
      port: options.port,
      eventLoops: options.eventLoops,
      isSilent: () => process.isSilent(),
      onCommand: (exchange) => this.#take(exchange),
    });
  }

  get isConnected(): boolean {
    return this.#server.isReachable || this.#isBinding;
  }

  get port(): number {
    return this.#server.port;
  }

  /**
   * Resolves when commands are taken, or when the port is chosen and `listenDelayMs` begins; whether the controller is
   * there is not asked.
   */
  async connect(): Promise<void> {
    await this.#open();
    if (this.#options.listenDelayMs === 0 || this.#hasListened) return;
    this.#hasListened = true;
    this.#isBinding = true;
    await this.#server.close();
    void this.#bind();
  }

  /** Connections are refused until then, and for good where somebody else took the port meanwhile. */
  async #bind(): Promise<void> {
    if (await this.#process.wait(this.#options.listenDelayMs)) await this.#open().catch(() => {});
    this.#isBinding = false;
    // The process may have died meanwhile.
    if (!(await this.#process.wait(0))) await this.#server.close();
  }

  async #open(): Promise<void> {
    try {
      await this.#server.open();
    } catch (error) {
      const { listenAddress, port } = this.#options;
      throw new Error(`listenAddress: ${this.#process.identity} cannot listen on ${listenAddress}:${port}`, {
        cause: error,
      });
    }
  }

  async disconnect(): Promise<void> {
    this.#server.loseNetwork();
    this.#client.abort();
    this.#client = this.#createClient();
  }

  leave(): Promise<void> {
    return this.cut();
  }

  async cut(): Promise<void> {
    this.#client.abort();
    await this.#server.close();
  }

  heartbeat(beat: object): void {
    void this.#post('heartbeat', JSON.stringify(beat));
  }

  queryBaseline(metadata: object): void {
    if (this.#options.queriesBaseline) void this.#queryBaseline(JSON.stringify(metadata));
  }

  announceModules(): void {
    throw new Error(`announceModules: over HTTP a base tells its modules only when asked (${this.#process.identity})`);
  }

  /** `heart` goes to `/heartbeat`, any other kind to the path of that name. */
  sendRaw(kind: string, payload: string): void {
    void this.#post(kind === 'heart' ? 'heartbeat' : kind, payload);
  }

  #createClient(): HeartbeatClient {
    const { controllerUrl, token } = this.#options;
    return new HeartbeatClient({
      controllerUrl,
      ...(token === undefined ? {} : { token }),
      clock: this.#process.clock,
    });
  }

  async #post(path: string, body: string): Promise<string | undefined> {
    if (this.#process.isSilent() || !this.isConnected) return undefined;
    return this.#client.post(path, body);
  }

  /** A baseline that is not empty is installed, as one that comes over MQTT. */
  async #queryBaseline(metadata: string): Promise<void> {
    const content = parseJson((await this.#post('queryBaseline', metadata)) ?? '');
    if (!Array.isArray(content) || content.length === 0 || this.#process.isSilent()) return;
    await this.#runner.batchInstall(content, { command: 'queryBaseline', tunnel: 'http', content });
  }

  /** Never rejects. */
  async #take(exchange: Exchange): Promise<void> {
    const { command, body, userAgent } = exchange;
    const content = body === '' ? {} : parseJson(body);
    const received: Received = { command, tunnel: 'http', content, userAgent };
    if (this.#process.isSilent()) return this.#runner.ignore(received, 'ignored:silent');
    // The agent fails before it can answer, and forgets the connection.
    if (!isObject(content)) return this.#runner.ignore(received, 'ignored:unparsable');
    const result = await this.#run(received, content);
    if (result) return this.#answer(exchange, result);
    this.#runner.ignore(received, 'ignored:unsupported');
    exchange.answer(NOT_FOUND);
  }

  /** Undefined for a command that the agent does not know. */
  async #run(received: Received, content: Record<string, unknown>): Promise<Result | undefined> {
    const { command } = received;
    switch (command) {
      case 'installBiz':
      case 'uninstallBiz':
      case 'switchBiz': {
        const request = readBizRequest(content);
        return this.#runner.operate(command, { received, request, isAsync: request.async === true });
      }
      case 'batchInstallBiz': {
        const result = await this.#runner.batchInstall(content.bizList, received);
        return result ?? { reply: invalidCommand('bizList is null'), effect: {} };
      }
      case 'health':
      case 'queryAllBiz':
      case 'queryBizOps':
      case 'help':
        return this.#runner.query(command, received);
      default:
        return undefined;
    }
  }

  async #answer(exchange: Exchange, { reply, effect }: Result): Promise<void> {
    const body = httpAnswerOf(this.#process.identity, reply);
    if (body === undefined || !(await this.#process.wait(effect.answerDelayMs ?? 0))) return;
    if (this.#process.isSilent() || effect.answers === 'never') return;
    if (effect.answers === 'cut') exchange.cut();
    else exchange.answer(effect.garbage ?? body);
  }
}
