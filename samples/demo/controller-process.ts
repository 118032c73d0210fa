import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream, type WriteStream } from 'node:fs';
import type { TunnelName } from '../../src/tunnel/tunnel.ts';
import { IMAGE_ENVIRONMENT, startArguments } from '../process/start-command.ts';

const EXIT_WITH_PARENT = new URL('./exit-with-parent.ts', import.meta.url).href;
const TAIL_LINES = 200;
/** Longer than the controller's own time to end. */
const STOP_WITHIN_MS = 12_000;

/** The controller as a process of its own, as `npm start` would run it; its log goes to a file. */
export class ControllerProcess {
  /** For messages. */
  readonly name: string;
  readonly logPath: string;
  readonly #child: ChildProcess;
  readonly #log: WriteStream;
  readonly #exited: Promise<void>;
  /** The newest TAIL_LINES. */
  #lines: string[] = [];
  #rest = '';
  readonly #listeners = new Set<() => void>();

  constructor({ name, env, logPath }: { name: string; env: Record<string, string>; logPath: string }) {
    this.name = name;
    this.logPath = logPath;
    this.#log = createWriteStream(logPath);
    this.#child = spawn(process.execPath, ['--import', EXIT_WITH_PARENT, ...startArguments()], {
      env: { PATH: process.env.PATH ?? '', ...IMAGE_ENVIRONMENT, ...env },
      // Ctrl-C in the terminal is for the demo, which stops the controller in its turn.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    this.#child.stdout?.on('data', (chunk: Buffer) => this.#take(chunk));
    this.#child.stderr?.on('data', (chunk: Buffer) => this.#take(chunk));
    this.#exited = new Promise((resolve) => this.#child.once('close', () => resolve()));
    void this.#exited.then(() => this.#changed());
  }

  /** Rejects when the controller ends, whatever its exit code. Never resolves. */
  async failWhenEnded(): Promise<never> {
    await this.#exited;
    throw new Error(`the ${this.name} has ended with ${this.#child.exitCode ?? this.#child.signalCode}`);
  }

  /** Resolves when its caches are whole and these tunnels are up. */
  async whenUp(tunnels: readonly TunnelName[]): Promise<void> {
    await Promise.all(tunnels.map((tunnel) => this.#line('tunnel is up', `"${tunnel}"`)));
  }

  /** Resolves when it leads the other processes of its kind, its CRDs installed. */
  async whenLeading(): Promise<void> {
    await this.#line('started leading', '"lease"');
  }

  /** The port that bases post their heartbeats to. */
  async heartbeatPort(): Promise<number> {
    const { port } = JSON.parse(await this.#line('listening', '"http_tunnel_provider"')) as { port: number };
    return port;
  }

  tail(count: number): string[] {
    return this.#lines.slice(-count);
  }

  /** Resolves when it has ended and its log is written. */
  async stop(): Promise<void> {
    this.#child.kill('SIGTERM');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_WITHIN_MS);
    await this.#exited;
    clearTimeout(timer);
    await new Promise<void>((resolve) => this.#log.end(() => resolve()));
  }

  /** The first line with this message that has these words. */
  #line(message: string, words: string): Promise<string> {
    const find = () => this.#lines.find((line) => line.includes(`"msg":"${message}"`) && line.includes(words));
    return new Promise((resolve) => {
      const look = (): void => {
        const found = find();
        if (found === undefined) return;
        this.#listeners.delete(look);
        resolve(found);
      };
      this.#listeners.add(look);
      look();
    });
  }

  #take(chunk: Buffer): void {
    this.#log.write(chunk);
    const parts = (this.#rest + chunk.toString()).split('\n');
    this.#rest = parts.pop() ?? '';
    this.#lines = [...this.#lines, ...parts].slice(-TAIL_LINES);
    this.#changed();
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}
