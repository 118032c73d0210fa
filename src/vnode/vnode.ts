import { nodeNameOf } from '../labels.ts';
import { type LedgerOptions, ModuleLedger } from '../module/module-ledger.ts';
import { type Contact, type LedBase, newContact, type UnknownModule } from '../pod/led-base.ts';
import type { BaseFacts } from '../pod/pod-status.ts';
import type { PendingRemoval } from '../pod/removals.ts';
import type { VPod } from '../pod/vpod.ts';
import { ReportLimit } from '../report-limit.ts';
import type { BaseInfo } from '../tunnel/base.ts';
import type { ModuleKey } from '../tunnel/module.ts';
import type { BaseAddress, TunnelName } from '../tunnel/tunnel.ts';
import { isRoutable, NO_ADDRESS } from './address.ts';
import { BaseProcess } from './base-process.ts';
import { BaseQuestions } from './base-questions.ts';
import { BaseLife, BasePlace, BaseProof, type FormerLead } from './base-state.ts';
import type { Liveness } from './liveness.ts';
import { unreachableMessage } from './node-object.ts';
import { addressOf, type HeldClaim } from './tunnel-claim.ts';
import { UnprovenBases } from './unproven-bases.ts';

export interface VNodeOptions {
  readonly base: BaseInfo;
  readonly tunnel: TunnelName;
  readonly now: number;
  readonly ledger: LedgerOptions;
  /** The last heartbeat of a base that had to answer before it became a VNode. */
  readonly lastBeatAt?: number | undefined;
  /** A base that is known only from its Node. */
  readonly adopted?: { readonly wasUnreachable: boolean } | undefined;
}

/**
 * One base as this process knows it: plain state, no I/O, no timer, no subscription. The state is in groups, and the
 * comment of each group names the controller that changes it. The methods of the VNode change several groups.
 */
export class VNode implements LedBase, HeldClaim {
  readonly identity: string;
  readonly nodeName: string;
  readonly place: BasePlace;
  readonly life: BaseLife;
  readonly proof: BaseProof;
  readonly process = new BaseProcess();
  readonly questions = new BaseQuestions();
  /** Bounds what is logged and reported of it. */
  readonly reports: ReportLimit;
  readonly #work: ModuleWork;
  /** Its address as it was last checked: each plan asks, and it seldom changes. */
  #checked: { readonly ip: string; readonly isRoutable: boolean } | undefined;

  constructor({ base, tunnel, now, ledger, lastBeatAt, adopted }: VNodeOptions) {
    this.identity = base.identity;
    this.nodeName = nodeNameOf(base.identity);
    this.place = new BasePlace({ base, tunnel, now });
    this.life = new BaseLife({ now, lastBeatAt, liveness: adopted?.wasUnreachable ? 'Unreachable' : 'Reachable' });
    this.proof = new BaseProof(adopted ? now : Number.NEGATIVE_INFINITY);
    this.reports = new ReportLimit(now);
    this.#work = new ModuleWork(ledger);
  }

  get tunnel(): TunnelName {
    return this.place.tunnel;
  }

  get address(): BaseAddress {
    return this.place.base;
  }

  get isReachable(): boolean {
    return !this.life.isSilent && !this.place.isDisplaced;
  }

  get masterName(): string | undefined {
    return this.process.masterName;
  }

  get ledger(): ModuleLedger {
    return this.#work.ledger;
  }

  get contact(): Contact {
    return this.#work.contact;
  }

  get vanishedPods(): Set<VPod> {
    return this.#work.vanishedPods;
  }

  get pendingRemovals(): Map<ModuleKey, PendingRemoval> {
    return this.#work.pendingRemovals;
  }

  get unknown(): Map<ModuleKey, UnknownModule> {
    return this.#work.unknown;
  }

  facts(): BaseFacts {
    const { base } = this.place;
    const { identity, ip } = base;
    const unreachable = this.life.liveness === 'Reachable' ? undefined : { message: unreachableMessage(base) };
    if (this.#checked?.ip !== ip) this.#checked = { ip, isRoutable: isRoutable(ip) };
    const { isRoutable: isUsable } = this.#checked;
    return { identity, ip: ip === NO_ADDRESS ? undefined : ip, isRoutable: isUsable, unreachable };
  }

  operationEnded(now: number): void {
    this.questions.refreshAfterOperation(now);
  }

  /** It comes to another place. Whatever is there has to report what it has. Called by the VNodeAdmission. */
  move(now: number): void {
    this.place.move(now);
    this.process.replace();
    this.life.refuse();
    if (this.life.wasHeard) this.#doubtModules();
  }

  /** Whoever answers at its address may be another base. Called by the VNodeAdmission. */
  displace(): void {
    this.place.displace();
  }

  /** Another base was heard at its address. Called by the VNodeAdmission. */
  loseAddress(): void {
    this.displace();
    this.life.refuse();
    this.#doubtModules();
  }

  /** It has its address again. Answers that came meanwhile were not taken. Called by the VNodeAdmission. */
  regainAddress(): void {
    this.place.regain();
    this.ledger.doubtCommands();
  }

  #doubtModules(): void {
    this.ledger.doubtCommands();
    this.ledger.baseRestarted(undefined);
  }

  /** Nobody listens at its address: its process has ended. Called by the VNodeController. */
  refuse(): void {
    this.life.refuse();
    this.restart(undefined);
  }

  /** Another process runs there. `saidAt`: when it said so, by its own clock. Called by the VNodeController. */
  restart(saidAt: number | undefined): void {
    this.process.end();
    this.ledger.baseRestarted(saidAt);
  }

  /** Its silence means that it cannot be reached. Called by the LivenessController. */
  fallSilent(liveness: Exclude<Liveness, 'Reachable'>): void {
    if (this.life.liveness === 'Reachable') this.ledger.linkLost();
    this.life.judge(liveness);
  }

  /** It says that it is going down. Called by the VNodeController. */
  goDown(): void {
    this.life.judge('Dead');
  }

  /** It is heard after it was silent. Called by the VNodeController. */
  recover(): void {
    if (this.life.liveness === 'Unreachable') this.ledger.linkLost();
    this.life.judge('Reachable');
  }

  /**
   * Another replica leads it from now on, or has led it: the known modules are old, and answers to earlier questions do
   * not count. Called by the VNodeController.
   */
  changeLeader(now: number, former: FormerLead): void {
    this.#work.changeLeader();
    this.questions.changeLeader();
    this.process.end();
    this.place.changeLeader(now);
    this.life.changeLeader(now, former);
  }
}

/** The modules of a base, as the leader of the base knows them. Controllers of src/pod change it, as each field says. */
class ModuleWork {
  readonly #options: LedgerOptions;
  /** Pods that were deleted without a wait. The PodController adds them, and its next plan removes them. */
  readonly vanishedPods = new Set<VPod>();
  /** Modules of such Pods, and those that UnknownModules adds. The PodController deletes one that is settled. */
  readonly pendingRemovals = new Map<ModuleKey, PendingRemoval>();
  /** Modules that no Pod asks for. UnknownModules changes it with each list. */
  readonly unknown = new Map<ModuleKey, UnknownModule>();
  #ledger: ModuleLedger;
  #contact = newContact();

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.#ledger = new ModuleLedger(options);
  }

  /** What is on the base and what was commanded; another one after others led it. */
  get ledger(): ModuleLedger {
    return this.#ledger;
  }

  /** What the record of first contacts says of the base. FirstContacts changes it. */
  get contact(): Contact {
    return this.#contact;
  }

  /** Another replica led the base: nothing of this counts any more. */
  changeLeader(): void {
    this.#ledger = new ModuleLedger(this.#options);
    this.vanishedPods.clear();
    this.pendingRemovals.clear();
    this.unknown.clear();
    this.#contact = newContact(this.#contact);
  }
}

/** The VNodes of this process, by node name. A VNode leaves when its base is dead and its Node is gone. */
export class VNodeStore {
  /** Bases that are no VNodes yet. */
  readonly unproven = new UnprovenBases();
  readonly #byName = new Map<string, VNode>();
  /** The base that was heard last at an address over HTTP; emptied with the VNode. */
  readonly #byAddress = new Map<string, VNode>();

  get(nodeName: string): VNode | undefined {
    return this.#byName.get(nodeName);
  }

  /** Whether the base of a Node was heard here not long ago. */
  isHeard(nodeName: string): boolean {
    const vnode = this.#byName.get(nodeName);
    return vnode?.life.wasHeard === true && vnode.life.liveness === 'Reachable';
  }

  /** Who a base is: one with a VNode, one that has to answer first, or anybody. */
  senderOf(identity: string): 'Known' | 'Asked' | 'Unknown' {
    const nodeName = nodeNameOf(identity);
    if (this.#byName.has(nodeName)) return 'Known';
    return this.unproven.get(nodeName) ? 'Asked' : 'Unknown';
  }

  add(vnode: VNode): void {
    this.unproven.delete(vnode.nodeName);
    this.#byName.set(vnode.nodeName, vnode);
  }

  remove(vnode: VNode): void {
    if (this.#byName.get(vnode.nodeName) === vnode) this.#byName.delete(vnode.nodeName);
    this.#leave(vnode);
  }

  /** The base that was heard last at an address over HTTP. */
  heardAt(address: string | undefined): VNode | undefined {
    return address === undefined ? undefined : this.#byAddress.get(address);
  }

  /** The VNode was heard where it says it is. Returns the one that was heard there before, if that is another. */
  settle(vnode: VNode): VNode | undefined {
    const address = addressOf(vnode.place);
    if (address !== vnode.place.settledAt) this.#leave(vnode);
    if (address === undefined) return undefined;
    const before = this.#byAddress.get(address);
    if (before === vnode) return undefined;
    this.#byAddress.set(address, vnode);
    vnode.place.settle(address);
    return before;
  }

  values(): IterableIterator<VNode> {
    return this.#byName.values();
  }

  get size(): number {
    return this.#byName.size;
  }

  #leave(vnode: VNode): void {
    const { settledAt } = vnode.place;
    if (settledAt !== undefined && this.#byAddress.get(settledAt) === vnode) this.#byAddress.delete(settledAt);
    vnode.place.settle(undefined);
  }
}
