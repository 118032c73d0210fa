import type { Clock, Timer } from '../../src/clock.ts';
import { Arklet } from './arklet.ts';
import { CommandRunner } from './command-runner.ts';
import type { FaultScript } from './faults.ts';
import type { CommandHistory } from './history.ts';
import { createTransport, HEARTBEAT_MS, type Link, type LinkOptions } from './link.ts';
import type { ArkletOptions } from './model.ts';
import { ProcessTimers } from './process-timers.ts';
import type { Transport, TransportProcess, TunnelName } from './transport.ts';

export interface BaseProcessOptions extends ArkletOptions, LinkOptions {
  identity: string;
  clusterName: string;
  localHostName: string;
  /** The state in the heartbeat. */
  state: string;
  clockSkewMs: number;
  /** Default: that of the agent, by tunnel. */
  heartbeatMs?: number;
  /** From the first heartbeat to the second, in periods; later ones follow every period. */
  secondBeatAfter: number;
  clock: Clock;
  faults: readonly FaultScript[];
  history: CommandHistory;
}

/** One run of a base's JVM: it ends with `kill` and is never started again. */
export class BaseProcess {
  readonly arklet: Arklet;
  /** Replaces the identity inside of heartbeats and baseline queries, not in topics and answers. */
  payloadIdentity: string | undefined;
  readonly #options: BaseProcessOptions;
  readonly #timers: ProcessTimers;
  readonly #surroundings: TransportProcess;
  /** Over which tunnels the baseline was asked for: once each, as by the agent. */
  readonly #baselineQueries = new Set<TunnelName>();
  #link: Link;
  #transport: Transport;
  #nextBeat: Timer | undefined;
  #isSilent = false;
  #hasAnnounced = false;

  constructor(options: BaseProcessOptions, link: Link) {
    this.#options = options;
    this.#timers = new ProcessTimers(options.clock);
    this.arklet = new Arklet(options);
    const { identity, clock, faults, history } = options;
    const wallTimeMs = (): number => clock.wallTime().getTime() + options.clockSkewMs;
    const isSilent = (): boolean => this.#isSilent;
    this.#surroundings = {
      identity,
      clock,
      runner: new CommandRunner({ base: identity, arklet: this.arklet, faults, history, wallTimeMs, isSilent }),
      wallTimeMs,
      isSilent,
      wait: (delayMs) => this.#timers.wait(delayMs),
    };
    this.#link = link;
    this.#transport = createTransport(link, options, this.#surroundings);
  }

  get transport(): Transport {
    return this.#transport;
  }

  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** Asks for the baseline and starts the heartbeat. Only the first call counts. */
  announce(): void {
    if (this.#hasAnnounced || this.#timers.isTerminated) return;
    this.#hasAnnounced = true;
    const { tunnel } = this.#transport;
    if (!this.#baselineQueries.has(tunnel)) this.#transport.queryBaseline(this.#metadata());
    this.#baselineQueries.add(tunnel);
    this.beat();
    const { clock, secondBeatAfter } = this.#options;
    this.#planBeat(clock.now() + Math.round(this.#periodMs() * secondBeatAfter));
  }

  /** Sends a heartbeat now, beside the regular ones. Lost while silent or disconnected. */
  beat(state = this.#options.state): void {
    const { localHostName } = this.#options;
    const { port } = this.#transport;
    const { localIP } = this.#link;
    this.#transport.heartbeat({ baseMetadata: this.#metadata(), localHostName, localIP, port, state });
  }

  /** Sends a last heartbeat, which says that the base goes down. A later one would bring the base back. */
  sayGoodbye(): void {
    this.beat('deactivated');
    this.silence();
  }

  silence(): void {
    this.#isSilent = true;
  }

  /** Ends the silence, with a heartbeat at once. */
  speak(): void {
    if (!this.#isSilent) return;
    this.#isSilent = false;
    if (this.#hasAnnounced) this.beat();
  }

  /** Leaves its tunnel and connects over another; announced again when it was. */
  async moveTo(link: Link): Promise<void> {
    this.#nextBeat?.cancel();
    await this.#transport.leave();
    this.#link = link;
    this.#transport = createTransport(link, this.#options, this.#surroundings);
    await this.#transport.connect();
    if (!this.#hasAnnounced) return;
    this.#hasAnnounced = false;
    this.announce();
  }

  /** Ends the process: no more answers, modules lost, connections cut. */
  async kill(): Promise<void> {
    this.#nextBeat?.cancel();
    this.#timers.terminate();
    this.arklet.terminate();
    await this.#transport.cut();
  }

  #metadata(): Record<string, unknown> {
    const { identity, name, version, clusterName } = this.#options;
    return { clusterName, identity: this.payloadIdentity ?? identity, name, version };
  }

  #periodMs(): number {
    return this.#options.heartbeatMs ?? HEARTBEAT_MS[this.#transport.tunnel];
  }

  #planBeat(dueAt: number): void {
    const { clock } = this.#options;
    const beat = (): void => {
      this.beat();
      this.#planBeat(dueAt + this.#periodMs());
    };
    this.#nextBeat = clock.setTimer(beat, Math.max(0, dueAt - clock.now()));
  }
}
