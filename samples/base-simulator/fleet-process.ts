import { type Remote, startRemote } from '../process/remote.ts';
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
  /** Once, before all others; as `startFleet`. */
  start(options: ForkOptions): void;
  add(options: BaseOptions): string;
  announce(): void;
  announceOver(overMs: number): void;
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

export type RemoteFleet = Omit<Remote<RemoteCalls>, 'start'>;

/** Starts a fleet in a process of its own; resolves as `startFleet` does. The child ends with this process. */
export function forkFleet(options: ForkOptions): Promise<RemoteFleet> {
  return startRemote<RemoteCalls>('fleet', new URL('./fleet-child.ts', import.meta.url), options);
}
