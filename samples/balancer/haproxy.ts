import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Where Debian has it, which is not always on PATH. */
const DEBIAN = '/usr/sbin/haproxy';
const BINARY = existsSync(DEBIAN) ? DEBIAN : 'haproxy';
/** Workers of a large configuration start within this time. */
const LOAD_TIMEOUT_MS = 10_000;
/** What ends at once does not take a whole core. */
const RESTART_AFTER_MS = 1_000;

export interface HaproxyProcessOptions {
  /** Gets the configuration. */
  readonly directory: string;
  readonly say: (line: string) => void;
  /** Default: the HAProxy of this machine. */
  readonly binary?: string;
  readonly loadTimeoutMs?: number;
  readonly restartAfterMs?: number;
}

/**
 * An HAProxy in master-worker mode. A new configuration is checked, and taken by new workers that get the sockets of
 * the old ones: no connection is refused, and those that are open end by themselves. An HAProxy that has ended is
 * started again.
 */
export class Haproxy {
  readonly #options: Required<HaproxyProcessOptions>;
  readonly #path: string;
  /** What the workers of now have; '' when that is not known. */
  #text = '';
  /** The newest that was loaded. */
  #former: string | undefined;
  #process: ChildProcess | undefined;
  #restart: NodeJS.Timeout | undefined;
  #isStopped = false;
  #loaded = Promise.withResolvers<void>();

  constructor(options: HaproxyProcessOptions) {
    const defaults = { binary: BINARY, loadTimeoutMs: LOAD_TIMEOUT_MS, restartAfterMs: RESTART_AFTER_MS };
    this.#options = { ...defaults, ...options };
    this.#path = join(options.directory, 'haproxy.cfg');
  }

  /**
   * Starts it, or loads the configuration if that has changed. Rejects when HAProxy refuses it, or has not taken it in
   * time: workers that run go on as they did, and the same configuration may be loaded again.
   */
  async load(text: string): Promise<void> {
    if (text === this.#text) return;
    const next = `${this.#path}.next`;
    await writeFile(next, text);
    await promisify(execFile)(this.#options.binary, ['-c', '-q', '-f', next]);
    await rename(next, this.#path);
    this.#text = '';
    this.#loaded = Promise.withResolvers();
    if (this.#process === undefined) this.#start();
    else this.#process.kill('SIGUSR2');
    try {
      await this.#untilLoaded();
      this.#text = text;
      this.#former = text;
    } catch (error) {
      // For an HAProxy that is started again.
      if (this.#former !== undefined) await writeFile(this.#path, this.#former);
      throw error;
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#restart);
    if (this.#process === undefined) return;
    const ended = once(this.#process, 'exit');
    this.#process.kill('SIGTERM');
    await ended;
  }

  async #untilLoaded(): Promise<void> {
    const { loadTimeoutMs } = this.#options;
    const { promise, reject } = this.#loaded;
    const late = new Error(`HAProxy has not loaded it within ${loadTimeoutMs / 1000} s`);
    const timer = setTimeout(() => reject(late), loadTimeoutMs);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  #start(): void {
    clearTimeout(this.#restart);
    const { binary, say } = this.#options;
    const started = spawn(binary, ['-W', '-f', this.#path], { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#process = started;
    let rest = '';
    started.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.#take(line);
    });
    started.once('error', (error) => {
      this.#loaded.reject(error);
      say(`HAProxy cannot be started: ${error.message}`);
      this.#ended();
    });
    started.once('exit', (code, signal) => {
      const words = `HAProxy ended with ${code ?? signal}`;
      this.#loaded.reject(new Error(words));
      if (!this.#isStopped) say(`${words}: it is started again`);
      this.#ended();
    });
    // Also while nobody waits for it.
    this.#loaded.promise.catch(() => {});
  }

  #take(line: string): void {
    // The master says so when the new worker runs, or when there is none and the old ones go on.
    if (line.includes('Loading success')) this.#loaded.resolve();
    else if (/waitpid mode|Loading failure/.test(line)) this.#loaded.reject(new Error('HAProxy could not load it'));
    else if (/ALERT|emerg/.test(line)) this.#options.say(line);
  }

  #ended(): void {
    this.#process = undefined;
    clearTimeout(this.#restart);
    if (!this.#isStopped) this.#restart = setTimeout(() => this.#start(), this.#options.restartAfterMs);
  }
}
