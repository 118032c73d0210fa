import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, type WriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { spawnGuarded } from '../control-plane/guard.ts';

/** Of the JDK that Maven takes, too. */
export function jdkProgram(name: 'java' | 'jar' | 'keytool'): string {
  return process.env.JAVA_HOME ? `${process.env.JAVA_HOME}/bin/${name}` : name;
}

const KEPT_LINES = 200;

/** One run of a JVM. It keeps this process alive until it has ended. */
export class JvmProcess {
  readonly #guard: ChildProcessWithoutNullStreams;
  readonly #log: WriteStream;
  readonly #listeners = new Set<(line: string) => void>();
  /** Resolves when the JVM is gone. */
  readonly ended: Promise<void>;
  #lines: string[] = [];
  #isEnded = false;

  /** `env`: besides that of this process. */
  constructor(
    args: readonly string[],
    { logPath, env = {} }: { logPath: string; env?: Readonly<Record<string, string>> },
  ) {
    this.#log = createWriteStream(logPath, { flags: 'a' });
    this.#guard = spawnGuarded(jdkProgram('java'), args, { env: { ...process.env, ...env } });
    this.#log.on('error', () => {}); // nor does anybody miss a log whose directory is gone
    this.#guard.once('exit', () => this.#killGroup());
    const output = createInterface(this.#guard.stdout);
    output.on('line', (line) => this.#take(line));
    this.ended = once(output, 'close').then(() => this.#end());
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** The newest lines of what it printed. */
  tail(count = 25): string {
    return this.#lines.slice(-count).join('\n');
  }

  /** Resolves when a line fits; rejects, with the end of its output, when the JVM ends before. */
  async line(fits: (line: string) => boolean): Promise<void> {
    if (this.#lines.some(fits)) return;
    const seen = new Promise<'seen'>((resolve) => {
      const listener = (line: string): void => {
        if (!fits(line)) return;
        this.#listeners.delete(listener);
        resolve('seen');
      };
      this.#listeners.add(listener);
    });
    if ((await Promise.race([seen, this.ended])) === 'seen') return;
    throw new Error(`the JVM has ended:\n${this.tail()}`);
  }

  /** Lets it say goodbye. */
  terminate(): void {
    this.#guard.stdin.write('TERM\n');
  }

  async kill(): Promise<void> {
    this.#guard.stdin.end();
    await this.ended;
  }

  #take(line: string): void {
    this.#log.write(`${line}\n`);
    this.#lines = [...this.#lines, line].slice(-KEPT_LINES);
    for (const listener of this.#listeners) listener(line);
  }

  /** What a guard that was itself killed leaves. */
  #killGroup(): void {
    try {
      if (this.#guard.pid !== undefined) process.kill(-this.#guard.pid, 'SIGKILL');
    } catch {
      // There is nothing of it any more, as usual.
    }
  }

  async #end(): Promise<void> {
    this.#isEnded = true;
    this.#guard.stdin.end();
    await new Promise<void>((resolve) => this.#log.end(() => resolve()));
  }
}
