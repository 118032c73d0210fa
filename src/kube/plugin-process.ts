import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';

const MAX_OUTPUT_CHARS = 1024 * 1024;
/** The end of what a program said is enough to find the fault. */
const MAX_COMPLAINT_CHARS = 500;

/** One run of a credential plugin: without a terminal or input, with bounded output. */
export class PluginProcess {
  #child: ChildProcess | undefined;
  #output = '';
  #complaint = '';
  #fault: string | undefined = 'cannot be started: a variable or argument that no program can get';

  /** In the form of `child_process.spawn`, for the library that calls it. */
  readonly spawn = (command: string, args: readonly string[], options: SpawnOptions): ChildProcess => {
    // A group of its own, so that `kill` also reaches what a shell script has started.
    const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    this.#child = child;
    this.#fault = undefined;
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#output += text;
      if (this.#output.length > MAX_OUTPUT_CHARS) this.#refuse('printed more than 1 MiB');
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#complaint = (this.#complaint + text).slice(-MAX_COMPLAINT_CHARS);
    });
    child.once('error', (error) => {
      this.#fault ??= `cannot be started: ${error.message}`;
    });
    child.once('exit', (code, signal) => {
      if (code !== 0) this.#fault ??= code === null ? `was ended by ${signal}` : `ended with exit code ${code}`;
    });
    return child;
  };

  get output(): string {
    return this.#output;
  }

  /** Why the run has failed; undefined when it ended well. */
  get fault(): string | undefined {
    const complaint = this.#complaint.trim();
    return this.#fault === undefined || complaint === '' ? this.#fault : `${this.#fault}: ${complaint}`;
  }

  /** Ends it and all that it has started, if it still runs. */
  kill(): void {
    const { pid, stdout, stderr } = this.#child ?? {};
    if (pid === undefined) return;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // All of the group has ended.
    }
    stdout?.destroy();
    stderr?.destroy();
  }

  #refuse(fault: string): void {
    this.#fault ??= fault;
    this.kill();
  }
}
