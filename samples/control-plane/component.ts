import { readFile, stat } from 'node:fs/promises';
import { poll } from './poll.ts';
import { PortTakenError } from './ports.ts';
import type { Supervisor } from './supervisor-client.ts';
import type { ComponentName } from './versions.ts';

export interface ComponentOptions {
  name: ComponentName;
  command: string;
  args: string[];
  logPath: string;
  /** True when the component serves; an error means "not yet". */
  isHealthy: () => Promise<boolean>;
  supervisor: Supervisor;
}

const HEALTHY_WITHIN_MS = 90_000;
const EXIT_WITHIN_MS = 30_000;
const LOG_TAIL_LINES = 25;

/** One process of the control plane. The same arguments, and so the same port, serve every start. */
export class Component {
  readonly #options: ComponentOptions;
  readonly #exitListeners = new Set<(reason: string) => void>();
  #pid: number | undefined;
  #exitReason: string | undefined;
  /** Where the output of the latest start begins in the log. */
  #logOffset = 0;

  constructor(options: ComponentOptions) {
    this.#options = options;
    options.supervisor.on('started', (name, pid) => {
      if (name === options.name) this.#pid = pid;
    });
    options.supervisor.on('exited', (name, reason) => {
      if (name === options.name) this.#onExit(reason);
    });
  }

  get name(): ComponentName {
    return this.#options.name;
  }

  /** Undefined while no process runs. */
  get pid(): number | undefined {
    return this.#pid;
  }

  /** Resolves when the component serves; throws, with the end of its log, when it exits first. */
  async start(): Promise<void> {
    if (this.#pid !== undefined) throw new Error(`${this.name} runs already`);
    const { supervisor, command, args, logPath, name } = this.#options;
    this.#exitReason = undefined;
    this.#logOffset = (await stat(logPath).catch(() => undefined))?.size ?? 0;
    supervisor.request({ type: 'start', component: name, command, args, logPath });
    await poll(() => this.#checkStart(), { what: `${name} to be healthy`, timeoutMs: HEALTHY_WITHIN_MS }).catch(
      async (error: Error) => {
        throw error instanceof PortTakenError ? error : await this.#describe(error.message);
      },
    );
  }

  /** Sends a signal and does not wait: SIGKILL, SIGTERM, or SIGSTOP and SIGCONT to freeze and thaw. */
  kill(signal: NodeJS.Signals): void {
    if (this.#pid === undefined) throw new Error(`${this.name} does not run`);
    this.#options.supervisor.request({ type: 'signal', component: this.name, signal });
  }

  /**
   * Ends the process and resolves with the way it went. SIGKILL is the default because a gentle stop of the API
   * server waits for the watches that others hold; after SIGTERM a process that stays is killed.
   */
  async stopProcess(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<string> {
    const exited = this.waitForExit();
    this.kill(signal);
    const killer = setTimeout(() => this.#pid !== undefined && this.kill('SIGKILL'), EXIT_WITHIN_MS);
    try {
      return await exited;
    } finally {
      clearTimeout(killer);
    }
  }

  /** Resolves when no process runs, with the way that the last one went. */
  waitForExit(): Promise<string> {
    if (this.#pid === undefined) return Promise.resolve(this.#exitReason ?? 'never started');
    return new Promise((resolve) => this.#exitListeners.add(resolve));
  }

  /** The last lines of everything that the component has printed since the control plane began. */
  async logTail(lines = LOG_TAIL_LINES): Promise<string> {
    const text = (await this.#readLog()).toString('utf8');
    return text.trimEnd().split('\n').slice(-lines).join('\n');
  }

  /** Empty before the first start. */
  #readLog(): Promise<Buffer> {
    return readFile(this.#options.logPath).catch(() => Buffer.alloc(0));
  }

  async #checkStart(): Promise<true | undefined> {
    if (this.#exitReason !== undefined) {
      const output = (await this.#readLog()).subarray(this.#logOffset);
      if (output.includes('address already in use'))
        throw new PortTakenError(`another process has ${this.name}'s port`);
      throw new Error(`${this.name} ended before it was healthy (${this.#exitReason})`);
    }
    return (await this.#options.isHealthy().catch(() => false)) ? true : undefined;
  }

  #onExit(reason: string): void {
    this.#pid = undefined;
    this.#exitReason = reason;
    for (const listener of this.#exitListeners) listener(reason);
    this.#exitListeners.clear();
  }

  async #describe(message: string): Promise<Error> {
    return new Error(`${message}; end of its log:\n${await this.logTail()}`);
  }
}
