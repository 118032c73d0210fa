import { BaseProcess, type BaseProcessOptions } from './base-process.ts';
import type { Fault, FaultScript } from './faults.ts';
import type { MetaspaceOverride } from './health.ts';
import { type Link, type LinkTarget, linkOf, type Place } from './link.ts';
import type { BizState, ModuleKey, SimulatedModule } from './model.ts';
import type { TunnelName } from './transport.ts';

/** The other link of a base. Default place: the one that its options gave it. */
export type MoveTarget = LinkTarget & Place;

/** A base that outlives its processes: the same identity, one process after the other. */
export class SimulatedBase {
  readonly identity: string;
  readonly #options: BaseProcessOptions;
  readonly #faults: FaultScript;
  readonly #number: number;
  readonly #place: Place;
  #link: Link;
  #process: BaseProcess;
  #isAlive = true;

  /** `faults` is the base's own script, part of `options.faults` too; `number` that of the base in its fleet. */
  constructor(
    options: BaseProcessOptions,
    parts: { target: LinkTarget; place: Place; faults: FaultScript; number: number },
  ) {
    this.identity = options.identity;
    this.#options = options;
    this.#faults = parts.faults;
    this.#number = parts.number;
    this.#place = parts.place;
    this.#link = linkOf({ ...parts.place, ...parts.target }, parts.number);
    this.#process = new BaseProcess(options, this.#link);
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  get isConnected(): boolean {
    return this.#process.transport.isConnected;
  }

  get isSilent(): boolean {
    return this.#process.isSilent;
  }

  /** By what it speaks. */
  get tunnel(): TunnelName {
    return this.#link.tunnel;
  }

  /** As its heartbeats say. */
  get localIP(): string {
    return this.#link.localIP;
  }

  /** Where it takes commands over HTTP; 0 over MQTT, and before it was connected. */
  get port(): number {
    return this.#process.transport.port;
  }

  /** The modules of the running process; none when it is dead. */
  modules(): SimulatedModule[] {
    return this.#isAlive ? this.#process.arklet.modules() : [];
  }

  /** Connects and subscribes, or listens; without a word. */
  async connect(): Promise<void> {
    await this.#process.transport.connect();
  }

  /** Sends queryBaseline (over HTTP only when told to) and the first heartbeat. Only the first call of a process counts. */
  announce(): void {
    this.#process.announce();
  }

  /** Sends a heartbeat now, beside the regular ones. */
  beat(): void {
    this.#process.beat();
  }

  /** Sends a last heartbeat, which says that the base goes down; then the base is silent. */
  sayGoodbye(): void {
    this.#process.sayGoodbye();
  }

  /** From now on no heartbeat and no answer, commands are dropped; connections stay, installs in work go on. */
  silence(): void {
    this.#process.silence();
  }

  /** Ends the silence, with a heartbeat at once. */
  speak(): void {
    this.#process.speak();
  }

  /**
   * Leaves the broker, or loses the network: connections over HTTP are cut, old ones and new ones. The process goes on
   * and does not come back by itself.
   */
  async disconnect(): Promise<void> {
    await this.#process.transport.disconnect();
  }

  /** Returns as the same process: no baseline query, and no heartbeat before the next is due. */
  async reconnect(): Promise<void> {
    await this.#process.transport.connect();
  }

  /**
   * The process dies: modules lost, commands in work unanswered, the MQTT socket closed without a DISCONNECT, all
   * connections over HTTP cut and the port free.
   */
  async kill(): Promise<void> {
    this.#isAlive = false;
    await this.#process.kill();
  }

  /**
   * A new process of the same identity, announced; the old one is killed first if need be. Faults stay. Over HTTP it
   * takes the port of the old one, or a `new` one.
   */
  async restart({ port = 'same' }: { port?: 'same' | 'new' } = {}): Promise<void> {
    await this.kill();
    if (this.#link.tunnel === 'http') this.#link = { ...this.#link, port: port === 'same' ? this.port : 0 };
    this.#process = new BaseProcess(this.#options, this.#link);
    this.#isAlive = true;
    await this.connect();
    this.#process.announce();
  }

  /**
   * The same process leaves its tunnel and announces itself over another, or to another controller, to which it keeps
   * its port. A dead base is there from its restart on.
   */
  async moveTo(target: MoveTarget): Promise<void> {
    const link = linkOf({ ...this.#place, ...target }, this.#number);
    this.#link = link.tunnel === 'http' ? { ...link, port: this.port } : link;
    if (this.#isAlive) await this.#process.moveTo(this.#link);
  }

  /** Publishes the list of modules unasked. Throws over HTTP, where nobody would hear it. */
  announceModules(): void {
    this.#process.transport.announceModules();
  }

  /** Sends any bytes: below `…/base/{kind}`, or over HTTP as a POST to `/heartbeat` (`heart`) or `/{kind}`. */
  publishRaw(kind: string, payload: string): void {
    this.#process.transport.sendRaw(kind, payload);
  }

  /** Heartbeats and baseline queries of this process then name another identity than their topic does. */
  setPayloadIdentity(identity: string | undefined): void {
    this.#process.payloadIdentity = identity;
  }

  /** A module changes state or vanishes on its own. */
  crashModule(bizName: string, bizVersion: string, to: BizState | 'gone' = 'BROKEN'): void {
    if (this.#process.arklet.crashModule({ bizName, bizVersion }, to)) return;
    throw new Error(`bizName: base ${this.identity} has no module ${bizName}:${bizVersion}`);
  }

  /** Puts a module on the base without a command. */
  placeModule(module: ModuleKey, state: BizState = 'ACTIVATED'): void {
    this.#process.arklet.placeModule(module, state);
  }

  /** Holds for the running process. */
  setMetaspace(override: MetaspaceOverride): void {
    this.#process.arklet.setMetaspace(override);
  }

  /** Returns what removes the fault. A later fault goes before an earlier one, and before those of the fleet. */
  setFault(fault: Fault): () => void {
    return this.#faults.add(fault);
  }

  clearFaults(): void {
    this.#faults.clear();
  }
}
