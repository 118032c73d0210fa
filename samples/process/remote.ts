import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** What a process offers to the one that has forked it: arguments and results cross as JSON. */
// biome-ignore lint/suspicious/noExplicitAny: calls of every shape
export type Calls<C> = { [Name in keyof C]: (...args: any[]) => unknown };

/** The same calls from outside. */
export type Remote<C extends Calls<C>> = {
  [Name in keyof C]: (...args: Parameters<C[Name]>) => Promise<Awaited<ReturnType<C[Name]>>>;
} & {
  readonly pid: number;
  /** Kills the process; resolves when it has ended. May be called again. */
  stop(): Promise<void>;
};

export interface Request {
  readonly id: number;
  readonly call: string;
  readonly args: readonly unknown[];
}

export interface Reply {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: string;
}

export interface ForkOptions {
  /** Flags of Node. Default none: those of the parent, e.g. of a test runner, are not meant for the child. */
  readonly execArgv?: string[];
}

/**
 * A process of its own that runs `module`, which has to end in `serveCalls`; it ends with this one.
 * @param name for errors: `fleet`
 */
export function forkRemote<C extends Calls<C>>(name: string, module: URL, { execArgv = [] }: ForkOptions = {}) {
  return remoteOf<C>(name, fork(fileURLToPath(module), { execArgv }));
}

/** The same; resolves when its call `start` has, and leaves no process where that fails. */
export async function startRemote<C extends Calls<C> & Record<'start', Calls<C>[keyof C]>>(
  name: string,
  module: URL,
  ...options: Parameters<C['start']>
): Promise<Remote<C>> {
  const remote = forkRemote<C>(name, module);
  try {
    await remote.start(...options);
    return remote;
  } catch (error) {
    await remote.stop();
    throw error;
  }
}

/** The calls of a process that is there already, and has an IPC channel. */
export function remoteOf<C extends Calls<C>>(name: string, child: ChildProcess): Remote<C> {
  const channel = new RemoteChannel(name, child);
  return new Proxy({} as Remote<C>, {
    get: (_target, call) => {
      if (call === 'stop') return () => channel.stop();
      if (call === 'pid') return channel.pid;
      // Not a promise itself: `await` asks for `then`.
      if (typeof call !== 'string' || call === 'then') return undefined;
      return (...args: unknown[]) => channel.request(call, args);
    },
  });
}

/** Matches replies of the child process to requests. */
class RemoteChannel {
  readonly #name: string;
  readonly #child: ChildProcess;
  /** Emptied by replies, and when the process ends. */
  readonly #pending = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>();
  #lastId = 0;

  constructor(name: string, child: ChildProcess) {
    this.#name = name;
    this.#child = child;
    child.on('message', (reply: Reply) => this.#settle(reply));
    child.once('exit', (code, signal) => this.#failAll(`ended: ${signal ?? `exit ${code}`}`));
  }

  get pid(): number {
    return this.#child.pid ?? Number.NaN;
  }

  request(call: string, args: readonly unknown[]): Promise<unknown> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      if (!this.#child.connected) return reject(new Error(`${this.#name} process ended`));
      this.#pending.set(id, { resolve, reject });
      this.#child.send({ id, call, args } satisfies Request);
    });
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }

  #settle({ id, result, error }: Reply): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (error === undefined) pending?.resolve(result);
    else pending?.reject(new Error(error));
  }

  #failAll(words: string): void {
    const error = new Error(`${this.#name} process ${words}`);
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}
