import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { firstExternalAddress } from '../base-simulator/external-address.ts';
import { releasePort, reservePort } from '../control-plane/ports.ts';
import { JvmProcess } from './jvm-process.ts';
import { ask } from './polling-client.ts';

/** One that lands on a busy event loop of arklet gets no answer for long. */
const COMMAND_TIMEOUT_MS = 2_000;

const START_WITHIN_MS = 90_000;
const STOP_WITHIN_MS = 20_000;
/**
 * A heap far larger than the samples need, so that several JVMs fit on a machine. The first compiler and the simplest
 * collector alone: a base of minutes never earns back what the second compiler costs at its start.
 */
const FLAGS = ['-Xmx256m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];

export interface JvmBaseOptions {
  /** The arguments of `java` that name the program: `Jars.baseProgram`. */
  readonly program: readonly string[];
  readonly identity: string;
  /** Gets a directory of its own for its log and what it unpacks. */
  readonly directory: string;
  /** How it finds the controller. Default: not at all. */
  readonly link?:
    | { readonly controllerUrl: string; readonly token: string }
    | { readonly brokerUrl: string; readonly env: string };
  /** Of the JVM. Default: none; a metaspace without a limit. */
  readonly jvmFlags?: readonly string[];
  /** Environment variables, which its modules can refer to. Default: those of this process alone. */
  readonly env?: Readonly<Record<string, string>>;
}

/** The sample base of samples/java as a process: a real JVM with a real arklet. */
export class JvmBase {
  readonly identity: string;
  readonly tunnel: 'mqtt' | 'http';
  readonly ip = firstExternalAddress();
  readonly #options: JvmBaseOptions;
  readonly #webPort: number;
  readonly #arkletPort: number;
  #process: JvmProcess | undefined;

  private constructor(options: JvmBaseOptions, ports: { web: number; arklet: number }) {
    this.identity = options.identity;
    this.tunnel = 'brokerUrl' in (options.link ?? {}) ? 'mqtt' : 'http';
    this.#options = options;
    this.#webPort = ports.web;
    this.#arkletPort = ports.arklet;
  }

  /** With ports of its own; `run` starts it. */
  static async prepare(options: JvmBaseOptions): Promise<JvmBase> {
    return new JvmBase(options, { web: await reservePort(), arklet: await reservePort() });
  }

  /** Of a page that the base or one of its web modules serves. */
  urlOf(path: string): string {
    return `http://127.0.0.1:${this.#webPort}${path}`;
  }

  get(path: string): Promise<{ status: number; text: string }> {
    return ask(this.urlOf(path));
  }

  /** Starts the process (anew), with the same identity and ports; resolves when it serves, rejects after a minute and a half. */
  async run(): Promise<void> {
    if (this.#process && !this.#process.isEnded) throw new Error(`${this.identity} runs already`);
    const home = join(this.#options.directory, this.identity);
    await mkdir(join(home, 'tmp'), { recursive: true });
    this.#process = new JvmProcess(this.#arguments(home), {
      logPath: join(home, 'base.log'),
      ...(this.#options.env && { env: this.#options.env }),
    });
    const { promise, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new Error(`${this.identity} did not start:\n${this.#process?.tail()}`)),
      START_WITHIN_MS,
    );
    const started = this.#process.line((line) => line.includes('Started BaseApplication'));
    await Promise.race([started, promise]).finally(() => clearTimeout(timer));
  }

  /** At once, without a word to anybody. */
  async kill(): Promise<void> {
    await this.#process?.kill();
  }

  /** Lets it say goodbye, and kills it when that takes too long. */
  async stop(): Promise<void> {
    const timer = setTimeout(() => void this.kill(), STOP_WITHIN_MS);
    this.#process?.terminate();
    await this.#process?.ended;
    clearTimeout(timer);
  }

  /** Ends it for good. */
  async close(): Promise<void> {
    await this.kill();
    releasePort(this.#webPort);
    releasePort(this.#arkletPort);
  }

  /** Its modules as its arklet lists them, each as `name:version STATE`; rejects when there is no answer. */
  async modules(): Promise<string[]> {
    const { data } = (await this.command('queryAllBiz')) as { data: Biz[] };
    return data.map(({ bizName, bizVersion, bizState }) => `${bizName}:${bizVersion} ${bizState.toUpperCase()}`);
  }

  /** What its arklet answers to a command. */
  async command(name: string, payload: object = {}): Promise<unknown> {
    const url = `http://127.0.0.1:${this.#arkletPort}/${name}`;
    const signal = AbortSignal.timeout(COMMAND_TIMEOUT_MS);
    const response = await fetch(url, { method: 'POST', body: JSON.stringify(payload), signal });
    return JSON.parse(await response.text());
  }

  #arguments(home: string): string[] {
    const { program, jvmFlags = [] } = this.#options;
    const properties = {
      ...this.#linkProperties(),
      'server.port': this.#webPort,
      'koupleless.arklet.http.port': this.#arkletPort,
      'base.identity': this.identity,
      'base.name': 'base',
      'base.local-ip': this.ip,
      // Else a base keeps the old one of two versions active.
      'activate.new.module': true,
      'java.io.tmpdir': join(home, 'tmp'),
    };
    const settings = Object.entries(properties).map(([key, value]) => `-D${key}=${value}`);
    return [...FLAGS, ...jvmFlags, ...settings, ...program];
  }

  #linkProperties(): Record<string, string> {
    const { link } = this.#options;
    if (link === undefined) return {};
    if (!('brokerUrl' in link))
      return { 'base.controller.url': link.controllerUrl, 'base.controller.token': link.token };
    // Paho's word for the same.
    return { 'base.mqtt.broker': link.brokerUrl.replace('mqtt://', 'tcp://'), 'base.env': link.env };
  }
}

interface Biz {
  readonly bizName: string;
  readonly bizVersion: string;
  readonly bizState: string;
}
