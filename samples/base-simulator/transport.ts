import type { Clock } from '../../src/clock.ts';
import type { CommandRunner } from './command-runner.ts';

export type TunnelName = 'mqtt' | 'http';

/** What a transport knows of the process that it serves. */
export interface TransportProcess {
  readonly identity: string;
  readonly runner: CommandRunner;
  readonly clock: Clock;
  /** The wall clock of the base, ms: the machine's, skewed. */
  wallTimeMs(): number;
  /** While silent, nobody acts on commands and answers are dropped. */
  isSilent(): boolean;
  /** Resolves with false when the process ended meanwhile. */
  wait(delayMs: number): Promise<boolean>;
}

/** How one process of a base and its controller speak. Nothing is kept: what cannot be sent now is lost. */
export interface Transport {
  readonly tunnel: TunnelName;
  /** Whether heartbeats go out and commands come in. */
  readonly isConnected: boolean;
  /** Where commands are taken, as heartbeats tell; 0 when the base does not listen. */
  readonly port: number;
  /** From now on commands come in. Rejects when it cannot be; after `disconnect` it returns. */
  connect(): Promise<void>;
  /** The network is gone until `connect`. */
  disconnect(): Promise<void>;
  /** The process goes elsewhere. Never used again. */
  leave(): Promise<void>;
  /** The process has died. Never used again. */
  cut(): Promise<void>;
  heartbeat(beat: object): void;
  queryBaseline(metadata: object): void;
  /** Sends the list of modules unasked; throws where a base cannot. */
  announceModules(): void;
  /** Sends any bytes in place of a message of this kind. */
  sendRaw(kind: string, payload: string): void;
}
