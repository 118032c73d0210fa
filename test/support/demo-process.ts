import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const MAIN = fileURLToPath(new URL('../../samples/demo/main.ts', import.meta.url));

/** The demo as a user starts it, without a terminal. */
export class Demo {
  output = '';
  readonly exited: Promise<number | null>;
  readonly #child;

  constructor(...flags: string[]) {
    // A process group of its own: Ctrl-C is for all of it, as in a terminal.
    this.#child = spawn(process.execPath, [MAIN, ...flags], { detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        this.output += chunk.toString();
      });
    }
    this.exited = new Promise((resolve) => this.#child.once('close', resolve));
  }

  /** Resolves with the first group of `pattern` once the output has it. Rejects when the demo ends without it. */
  async printed(pattern: RegExp): Promise<string> {
    const find = () => pattern.exec(this.output)?.[1];
    await new Promise<void>((resolve) => {
      const look = () => {
        if (find() === undefined) return;
        this.#child.stdout.off('data', look);
        resolve();
      };
      this.#child.stdout.on('data', look);
      void this.exited.then(() => resolve());
      look();
    });
    const found = find();
    if (found === undefined) throw new Error(`the demo has ended without ${pattern}:\n${this.output}`);
    return found;
  }

  /** The directory that everything of this demo is in. */
  async directory(): Promise<string> {
    return dirname(await this.printed(/its log: (\S+)\n/));
  }

  /** The steps that were seen to succeed. */
  steps(): string[] {
    return this.output.match(/(?<=^✓ ).+(?= \(\d+\.\d s\)$)/gm) ?? [];
  }

  signal(signal: NodeJS.Signals): void {
    if (this.#child.exitCode === null && this.#child.signalCode === null) process.kill(-(this.#child.pid ?? 0), signal);
  }
}

/** The directory, and the processes that have it in their command line or environment, as far as they exist. */
export async function leftoversOf(directory: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)('ps', ['axeww', '-o', 'pid=,stat=,command='], { maxBuffer: 1 << 26 });
  const processes = stdout.split('\n').filter((line) => line.includes(directory) && !/^\s*\d+\s+Z/.test(line));
  return existsSync(directory) ? [...processes, directory] : processes;
}
