import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:fs';
import { access, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { spawnGuarded } from '../control-plane/guard.ts';
import { PortTakenError, releasePort, reservePort, withFreshPort } from '../control-plane/ports.ts';
import {
  filesOfConf,
  type ListenerPorts,
  type MosquittoAccess,
  type MosquittoConf,
  mosquittoFiles,
} from './mosquitto-config.ts';
import type { MqttBroker } from './mqtt-broker.ts';

export type MosquittoOptions = MosquittoAccess | MosquittoConf;

const KEPT_LINES = 20;

/** A Mosquitto process on loopback, with a directory of its own. It keeps this process alive until it is stopped. */
export class Mosquitto implements MqttBroker {
  /** Where controllers connect. */
  readonly port: number;
  readonly #basesPort: number;
  readonly #program: string;
  readonly #options: MosquittoOptions;
  #guard: ChildProcessWithoutNullStreams | undefined;

  constructor(program: string, { controllers, bases }: ListenerPorts, options: MosquittoOptions) {
    this.#program = program;
    this.port = controllers;
    this.#basesPort = bases;
    this.#options = options;
  }

  /** Where bases connect. */
  get url(): string {
    return `mqtt://127.0.0.1:${this.#basesPort}`;
  }

  /** Of the shell that stands between this process and Mosquitto; undefined while it is down. */
  get guardPid(): number | undefined {
    return this.#guard?.pid;
  }

  /** Kills the process: no client gets a DISCONNECT. */
  async pause(): Promise<void> {
    const guard = this.#guard;
    this.#guard = undefined;
    if (!guard) return;
    const ended = once(guard, 'exit');
    guard.stdin.end();
    await ended;
  }

  async resume(): Promise<void> {
    if (this.#guard) return;
    const directory = await mkdtemp(join(tmpdir(), 'mosquitto-'));
    const ports = { bases: this.#basesPort, controllers: this.port };
    const files =
      'conf' in this.#options
        ? filesOfConf(directory, ports, this.#options)
        : mosquittoFiles(directory, this.port, this.#options);
    for (const [name, content] of Object.entries(files)) {
      await writeFile(join(directory, name), content, { mode: 0o600 });
    }
    this.#guard = spawnGuarded(this.#program, ['-c', join(directory, 'mosquitto.conf')], { removing: directory });
    await this.#running(this.#guard);
  }

  async stop(): Promise<void> {
    await this.pause();
    releasePort(this.port);
    if (this.#basesPort !== this.port) releasePort(this.#basesPort);
  }

  async #running(guard: ChildProcessWithoutNullStreams): Promise<void> {
    const last: string[] = [];
    const lines = createInterface(guard.stdout);
    const isRunning = await new Promise<boolean>((resolve) => {
      lines.on('line', (line) => {
        last.push(line);
        if (last.length > KEPT_LINES) last.shift();
        if (/mosquitto version \S+ running/.test(line)) resolve(true);
      });
      lines.once('close', () => resolve(false));
    });
    if (isRunning) return;
    await this.pause();
    const text = last.join('\n');
    throw /address already in use/i.test(text)
      ? new PortTakenError(text)
      : new Error(`${this.#program} ended: ${text}`);
  }
}

/** Resolves when it listens, on a free port. Rejects with what is missing where Mosquitto is not installed. */
export async function startMosquitto(options: MosquittoOptions = {}): Promise<Mosquitto> {
  const program = await findMosquitto();
  return withFreshPort(async (port) => {
    const bases = 'conf' in options ? await reservePort() : port;
    const broker = new Mosquitto(program, { controllers: port, bases }, options);
    await broker.resume();
    return broker;
  });
}

/** `MOSQUITTO_BIN`, else the first on PATH or in /usr/sbin, where Debian puts it and few users look. */
export async function findMosquitto(env: NodeJS.ProcessEnv = process.env): Promise<string> {
  if (env.MOSQUITTO_BIN) {
    if (await isExecutable(env.MOSQUITTO_BIN)) return env.MOSQUITTO_BIN;
    throw new Error(`MOSQUITTO_BIN=${env.MOSQUITTO_BIN} is no program`);
  }
  const directories = [...(env.PATH ?? '').split(delimiter).filter(Boolean), '/usr/sbin', '/usr/local/sbin'];
  for (const directory of directories) {
    const program = join(directory, 'mosquitto');
    if (await isExecutable(program)) return program;
  }
  throw new Error(
    'Mosquitto is not installed: install version 2 (Debian, Ubuntu: apt-get install mosquitto), or set MOSQUITTO_BIN',
  );
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
