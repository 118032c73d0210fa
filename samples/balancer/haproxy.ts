import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Where Debian has it, which is not always on PATH. */
const DEBIAN = '/usr/sbin/haproxy';
const BINARY = existsSync(DEBIAN) ? DEBIAN : 'haproxy';

export interface HaproxyProcessOptions {
  /** Gets the configuration. */
  readonly directory: string;
  readonly say: (line: string) => void;
}

/**
 * An HAProxy in master-worker mode. A new configuration is checked, and taken by new workers that get the sockets of
 * the old ones: no connection is refused, and those that are open end by themselves.
 */
export class Haproxy {
  readonly #options: HaproxyProcessOptions;
  readonly #path: string;
  #text = '';
  #process: ChildProcess | undefined;
  #loaded = Promise.withResolvers<void>();

  constructor(options: HaproxyProcessOptions) {
    this.#options = options;
    this.#path = join(options.directory, 'haproxy.cfg');
  }

  /** Starts it, or loads the configuration if that has changed. Rejects, and changes nothing, when HAProxy refuses it. */
  async load(text: string): Promise<void> {
    if (text === this.#text) return;
    const next = `${this.#path}.next`;
    await writeFile(next, text);
    await promisify(execFile)(BINARY, ['-c', '-q', '-f', next]);
    await rename(next, this.#path);
    this.#text = text;
    this.#loaded = Promise.withResolvers();
    if (this.#process === undefined) this.#start();
    else this.#process.kill('SIGUSR2');
    await this.#loaded.promise;
  }

  async stop(): Promise<void> {
    const { exitCode } = this.#process ?? {};
    if (this.#process === undefined || exitCode !== null) return;
    const ended = once(this.#process, 'exit');
    this.#process.kill('SIGTERM');
    await ended;
  }

  #start(): void {
    const started = spawn(BINARY, ['-W', '-f', this.#path], { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#process = started;
    let rest = '';
    started.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        // The master says so when the new worker runs.
        if (line.includes('Loading success')) this.#loaded.resolve();
        else if (/ALERT|emerg/.test(line)) this.#options.say(line);
      }
    });
    started.once('error', (error) => this.#loaded.reject(error));
    started.once('exit', (code) => this.#loaded.reject(new Error(`haproxy ended with ${code}`)));
    // Also while nobody waits for it.
    this.#loaded.promise.catch(() => {});
  }
}
