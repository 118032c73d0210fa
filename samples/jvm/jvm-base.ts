import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { firstExternalAddress } from '../base-simulator/external-address.ts';
import { releasePort, reservePort } from '../control-plane/ports.ts';
import { JvmProcess } from './jvm-process.ts';
import { ask } from './polling-client.ts';

/** One that lands on a busy event loop of arklet gets no answer for long. */
const COMMAND_TIMEOUT_MS = 2_000;

export interface JvmBaseOptions {
  /** Path of the base's jar. */
  readonly jar: string;
  readonly identity: string;
  /** Gets a directory of its own for its log and what it unpacks. */
  readonly directory: string;
  /** How it finds the controller. */
  readonly link:
    | { readonly controllerUrl: string; readonly token: string }
    | { readonly brokerUrl: string; readonly env: string };
  /** Of the JVM. Default: none; a metaspace without a limit. */
  readonly jvmFlags?: readonly string[];
  /** Default true: without it a base keeps the old one of two versions active. */
  readonly activateNewModule?: boolean;
}

/** The sample base of samples/java as a process: a real JVM with a real arklet. */
export class JvmBase {
  readonly identity: string;
  readonly tunnel: 'mqtt' | 'http';
  /** As the base finds it out for itself. */
  readonly ip = firstExternalAddress();
  readonly #options: JvmBaseOptions;
  readonly #webPort: number;
  readonly #arkletPort: number;
  #process: JvmProcess | undefined;

  private constructor(options: JvmBaseOptions, ports: { web: number; arklet: number }) {
    this.identity = options.identity;
    this.tunnel = 'brokerUrl' in options.link ? 'mqtt' : 'http';
    this.#options = options;
    this.#webPort = ports.web;
    this.#arkletPort = ports.arklet;
  }

  /** Resolves when it serves. */
  static async start(options: JvmBaseOptions): Promise<JvmBase> {
    const base = new JvmBase(options, { web: await reservePort(), arklet: await reservePort() });
    await base.run();
    return base;
  }

  /** Of a page that the base or one of its web modules serves. */
  urlOf(path: string): string {
    return `http://127.0.0.1:${this.#webPort}${path}`;
  }

  get(path: string): Promise<{ status: number; text: string }> {
    return ask(this.urlOf(path));
  }

  /** Starts the process (anew), with the same identity and ports; resolves when it serves. */
  async run(): Promise<void> {
    if (this.#process && !this.#process.isEnded) throw new Error(`${this.identity} runs already`);
    const home = join(this.#options.directory, this.identity);
    await mkdir(join(home, 'tmp'), { recursive: true });
    this.#process = new JvmProcess(this.#arguments(home), { logPath: join(home, 'base.log') });
    await this.#process.line((line) => line.includes('Started BaseApplication'));
  }

  /** At once, without a word to anybody. */
  async kill(): Promise<void> {
    await this.#process?.kill();
  }

  /** Lets it say goodbye. */
  async stop(): Promise<void> {
    this.#process?.signal('TERM');
    await this.#process?.ended;
  }

  /** Ends it for good. */
  async close(): Promise<void> {
    await this.kill();
    releasePort(this.#webPort);
    releasePort(this.#arkletPort);
  }

  /** The end of what it printed. */
  tail(): string {
    return this.#process?.tail() ?? '';
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
    const { jar, jvmFlags = [], activateNewModule = true } = this.#options;
    const properties = {
      ...this.#linkProperties(),
      'server.port': this.#webPort,
      'koupleless.arklet.http.port': this.#arkletPort,
      'base.identity': this.identity,
      'base.name': 'base',
      'activate.new.module': activateNewModule,
      'java.io.tmpdir': join(home, 'tmp'),
    };
    const settings = Object.entries(properties).map(([key, value]) => `-D${key}=${value}`);
    return [...jvmFlags, ...settings, '-jar', jar];
  }

  #linkProperties(): Record<string, string> {
    const { link } = this.#options;
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
