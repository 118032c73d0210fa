import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Fault } from './faults.ts';
import type { BaseOptions, FleetOptions } from './fleet.ts';
import type { MetaspaceOverride } from './health.ts';
import type { CommandCounts, CommandRecord, HistoryFilter, InstallCount } from './history.ts';
import type { BizState, ModuleKey, SimulatedModule } from './model.ts';
import type { MoveTarget } from './simulated-base.ts';
import type { TunnelName } from './transport.ts';

/** `clock` and `random` cannot cross into another process. */
export type ForkOptions = Omit<FleetOptions, 'clock' | 'random'>;

/** The calls that a fleet in another process takes, as `Fleet`, `SimulatedBase` and `CommandHistory` name them. */
export interface RemoteCalls {
  add(options: BaseOptions): string;
  announce(): void;
  identities(): string[];
  kill(identity: string): void;
  restart(identity: string, options?: { port?: 'same' | 'new' }): void;
  moveTo(identity: string, target: MoveTarget): void;
  beat(identity: string): void;
  silence(identity: string): void;
  speak(identity: string): void;
  disconnect(identity: string): void;
  reconnect(identity: string): void;
  modules(identity: string): SimulatedModule[];
  /** How it speaks, and where it says that it can be reached. */
  addressOf(identity: string): { tunnel: TunnelName; localIP: string; port: number };
  publishRaw(identity: string, kind: string, payload: string): void;
  announceModules(identity: string): void;
  crashModule(identity: string, bizName: string, bizVersion: string, to: BizState | 'gone'): void;
  placeModule(identity: string, module: ModuleKey, state: BizState): void;
  setMetaspace(identity: string, override: MetaspaceOverride): void;
  /** Of one base, or of the fleet when the identity is undefined. */
  setFault(identity: string | undefined, fault: Fault): void;
  /** Of one base, or of the fleet and all bases when the identity is undefined. */
  clearFaults(identity: string | undefined): void;
  mark(): number;
  historySummary(since: number): HistorySummary;
  records(filter: HistoryFilter): CommandRecord[];
  waitFor(filter: HistoryFilter, options: { count?: number; timeoutMs?: number }): CommandRecord[];
}

export interface HistorySummary {
  /** Commands received, by kind. */
  commands: CommandCounts;
  perBase: Record<string, CommandCounts>;
  installs: InstallCount[];
  /** Installs that came while that module was active or in work. */
  installsWhileActiveOrInWork: number;
}

export type RemoteFleet = {
  [Name in keyof RemoteCalls]: (
    ...args: Parameters<RemoteCalls[Name]>
  ) => Promise<Awaited<ReturnType<RemoteCalls[Name]>>>;
} & {
  /** Ends the process of the fleet. May be called again. */
  stop(): Promise<void>;
};

export type RemoteRequest =
  | { id: number; start: ForkOptions }
  | { id: number; call: keyof RemoteCalls; args: unknown[] };
export type RemoteReply = { id: number; result?: unknown; error?: string };

type RequestBody = { start: ForkOptions } | { call: keyof RemoteCalls; args: unknown[] };

/** Matches replies of the child process to requests. */
class RemoteChannel {
  readonly #child: ChildProcess;
  /** Emptied by replies, and when the process ends. */
  readonly #pending = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>();
  #lastId = 0;

  constructor(child: ChildProcess) {
    this.#child = child;
    child.on('message', (reply: RemoteReply) => this.#settle(reply));
    child.once('exit', (code, signal) => this.#failAll(new Error(`fleet process ended: ${signal ?? `exit ${code}`}`)));
  }

  request(body: RequestBody): Promise<unknown> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      if (!this.#child.connected) return reject(new Error('fleet process ended'));
      this.#pending.set(id, { resolve, reject });
      this.#child.send({ id, ...body });
    });
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }

  #settle({ id, result, error }: RemoteReply): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (error === undefined) pending?.resolve(result);
    else pending?.reject(new Error(error));
  }

  #failAll(error: Error): void {
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}

/** Starts a fleet in a process of its own; resolves as `startFleet` does. The child ends with this process. */
export async function forkFleet(options: ForkOptions): Promise<RemoteFleet> {
  const path = fileURLToPath(new URL('./fleet-child.ts', import.meta.url));
  // Flags of the parent, e.g. of a test runner, are not meant for the child.
  const channel = new RemoteChannel(fork(path, { execArgv: [] }));
  try {
    await channel.request({ start: options });
  } catch (error) {
    await channel.stop();
    throw error;
  }
  return new Proxy({} as RemoteFleet, {
    get: (_target, name) => {
      if (name === 'stop') return () => channel.stop();
      // Not a promise itself: `await` asks for `then`.
      if (typeof name !== 'string' || name === 'then') return undefined;
      return (...args: unknown[]) => channel.request({ call: name as keyof RemoteCalls, args });
    },
  });
}
