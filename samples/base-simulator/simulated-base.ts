import { BaseProcess, type BaseProcessOptions } from './base-process.ts';
import type { Fault, FaultScript } from './faults.ts';
import type { MetaspaceOverride } from './health.ts';
import type { BizState, ModuleKey, SimulatedModule } from './model.ts';

/** A base that outlives its processes: the same identity, one process after the other. */
export class SimulatedBase {
  readonly identity: string;
  readonly #options: BaseProcessOptions;
  readonly #faults: FaultScript;
  #process: BaseProcess;
  #isAlive = true;

  /** `faults` is the base's own script, part of `options.faults` too. */
  constructor(options: BaseProcessOptions, faults: FaultScript) {
    this.identity = options.identity;
    this.#options = options;
    this.#faults = faults;
    this.#process = new BaseProcess(options);
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  get isConnected(): boolean {
    return this.#process.isConnected;
  }

  get isSilent(): boolean {
    return this.#process.isSilent;
  }

  get localIP(): string {
    return this.#options.localIP;
  }

  /** The modules of the running process; none when it is dead. */
  modules(): SimulatedModule[] {
    return this.#isAlive ? this.#process.arklet.modules() : [];
  }

  /** Connects and subscribes, without a word. */
  async connect(): Promise<void> {
    await this.#process.connect();
  }

  /** Sends queryBaseline and the first heartbeat. Only the first call of a process counts. */
  announce(): void {
    this.#process.announce();
  }

  /** Sends a heartbeat now, beside the regular ones. */
  beat(): void {
    this.#process.beat();
  }

  /** From now on no heartbeat and no answer, commands are dropped; the connection stays, installs in work go on. */
  silence(): void {
    this.#process.silence();
  }

  /** Ends the silence, with a heartbeat at once. */
  speak(): void {
    this.#process.speak();
  }

  /** Leaves the broker; the process goes on and does not come back by itself. */
  async disconnect(): Promise<void> {
    await this.#process.disconnect();
  }

  /** Returns to the broker as the same process: no baseline query. */
  async reconnect(): Promise<void> {
    await this.#process.connect();
  }

  /** The process dies: modules lost, commands in work unanswered, the socket closed without a DISCONNECT. */
  async kill(): Promise<void> {
    this.#isAlive = false;
    await this.#process.kill();
  }

  /** A new process of the same identity, announced; the old one is killed first if need be. Faults stay. */
  async restart(): Promise<void> {
    await this.kill();
    this.#process = new BaseProcess(this.#options);
    this.#isAlive = true;
    await this.#process.connect();
    this.#process.announce();
  }

  /** Publishes the list of modules unasked. */
  announceModules(): void {
    this.#process.publishModules();
  }

  /** Publishes any bytes below `…/base/{kind}`. */
  publishRaw(kind: string, payload: string): void {
    this.#process.publish(kind, payload);
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
