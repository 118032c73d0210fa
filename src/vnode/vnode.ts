import { nodeNameOf } from '../labels.ts';
import { ListLimit } from '../module/list-limit.ts';
import { type LedgerOptions, ModuleLedger } from '../module/module-ledger.ts';
import { type Contact, type LedBase, newContact, type UnknownModule } from '../pod/led-base.ts';
import type { BaseFacts } from '../pod/pod-status.ts';
import type { PendingRemoval } from '../pod/removals.ts';
import type { VPod } from '../pod/vpod.ts';
import { ReportLimit } from '../report-limit.ts';
import { TokenBucket } from '../token-bucket.ts';
import type { BaseHealth, BaseInfo } from '../tunnel/base.ts';
import type { ModuleKey } from '../tunnel/module.ts';
import type { BaseAddress, TunnelName } from '../tunnel/tunnel.ts';
import { isRoutable } from './address.ts';
import type { Liveness } from './liveness.ts';
import { type BasePod, unreachableMessage } from './node-object.ts';
import type { RunTime } from './restart-signs.ts';
import { addressOf } from './tunnel-claim.ts';
import { UnprovenBases } from './unproven-bases.ts';

export interface VNodeOptions {
  readonly base: BaseInfo;
  readonly tunnel: TunnelName;
  readonly now: number;
  readonly ledger: LedgerOptions;
}

/** List and health are asked for this long after the last operation: a kubelet looks at its node every 10 s. */
const REFRESH_AFTER_MS = 4_000;
/** And this long after the first one at the latest. */
const REFRESH_WITHIN_MS = 60_000;

/**
 * One base as this process knows it: plain state, no I/O, no timer, no subscription. The controllers change it,
 * each its own part, and queue the Node's name.
 */
export class VNode implements LedBase {
  readonly identity: string;
  readonly nodeName: string;
  readonly #ledgerOptions: LedgerOptions;
  /** Its address as it was last checked: each plan asks, and it seldom changes. */
  #checked: Pick<BaseFacts, 'ip' | 'isRoutable'> | undefined;
  /** What is on the base and what was commanded; another one after others led it. */
  ledger: ModuleLedger;
  /** Pods that were deleted without a wait. Emptied by the next plan. */
  readonly vanishedPods = new Set<VPod>();
  /** Modules of Pods that were deleted without a wait. Emptied when the base has removed them, or they are claimed. */
  readonly pendingRemovals = new Map<ModuleKey, PendingRemoval>();

  /** Modules that no Pod asks for. Kept by UnknownModules, from list to list. */
  readonly unknown = new Map<ModuleKey, UnknownModule>();

  /** Bounds how often its own words about itself change. */
  readonly changes: ChangeLimit;

  /** Bounds what is logged and reported of it. */
  readonly reports: ReportLimit;

  /** Which of its lists are read. */
  readonly lists = new ListLimit();

  /** What the record of first contacts says of the base; another one after others led it. Kept by FirstContacts. */
  contact: Contact = newContact();

  base: BaseInfo;
  tunnel: TunnelName;
  /** Nobody listened at its address since it was last heard (HTTP). */
  isRefusing = false;
  /** When it came to its tunnel and address: answers to older questions are another process's. */
  placedAt: number;
  /** Its entry in the store's addresses. */
  settledAt: string | undefined;
  /** Another base was heard at its address since it was last heard: whoever answers there is not this one. */
  isDisplaced = false;
  refusalToldAt = Number.NEGATIVE_INFINITY;
  health: BaseHealth | undefined;
  /** Undefined before it was looked for. Kept by BasePods. */
  basePod: BasePod | undefined;
  /** The name that the base would have in its own list; undefined before this process of it reported its health. */
  masterName: string | undefined;
  /** Of the JVM at its last health answer, and when that came: what does not go on from there is another process. */
  runTime: RunTime | undefined;
  lastBeatAt: number | undefined;
  /** When a heartbeat for its address came last from another one. */
  hintedAt = Number.NEGATIVE_INFINITY;
  /** When an answer from its address last named its identity. */
  namedAt = Number.NEGATIVE_INFINITY;
  /** Last heard only through a heartbeat from another address; the leader verifies it. */
  isHearsay = false;
  /** When a goodbye came from an address that is not the base's; it counts when the base refuses a connection now. */
  goodbyeAt: number | undefined;
  /** The time of the base's first message, by its own wall clock, ms. */
  firstSaidAt: number | undefined;
  healthAskedAt = Number.NEGATIVE_INFINITY;
  /** When a question about its health is due that came too soon after another one. */
  healthDueAt = Number.POSITIVE_INFINITY;

  /**
   * Monotonic time of the last message of the base; of the start of this process for one that is known only from its
   * Node.
   */
  lastHeardAt: number;
  /** When it was met, or this replica started to lead it. */
  metAt: number;
  /** When it came to be known from its Node, at the start of this process or later. */
  adoptedAt = Number.NEGATIVE_INFINITY;
  /** False for a base that is known only from its Node: nothing is written of it before it speaks or is judged. */
  wasHeard = false;
  liveness: Liveness = 'Reachable';
  /** Silent, asked directly over a proven link, and no answer. */
  isConfirmedSilent = false;
  /** Silent, but not judged while the tunnel's brake is on. */
  isSuspended = false;
  /** When list and health should be asked for, as after operations, and when at the latest. */
  refresh: { readonly at: number; readonly latestAt: number } | undefined;

  constructor({ base, tunnel, now, ledger }: VNodeOptions) {
    this.identity = base.identity;
    this.nodeName = nodeNameOf(base.identity);
    this.base = base;
    this.tunnel = tunnel;
    this.lastHeardAt = now;
    this.metAt = now;
    this.placedAt = now;
    this.changes = new ChangeLimit(now);
    this.reports = new ReportLimit(now);
    this.#ledgerOptions = ledger;
    this.ledger = new ModuleLedger(ledger);
  }

  get address(): BaseAddress {
    return this.base;
  }

  get isReachable(): boolean {
    return this.liveness === 'Reachable' && !this.isSuspended && !this.isDisplaced;
  }

  facts(): BaseFacts {
    const { identity, ip } = this.base;
    const unreachable = this.liveness === 'Reachable' ? undefined : { message: unreachableMessage(this.base) };
    if (this.#checked?.ip !== ip) this.#checked = { ip, isRoutable: isRoutable(ip) };
    return { identity, ip, isRoutable: this.#checked.isRoutable, unreachable };
  }

  operationEnded(now: number): void {
    const { latestAt } = this.refresh ?? { latestAt: now + REFRESH_WITHIN_MS };
    this.refresh = { at: Math.min(now + REFRESH_AFTER_MS, latestAt), latestAt };
  }

  /** List and health are asked for at this time at the latest. */
  refreshBy(time: number): void {
    const { at, latestAt } = this.refresh ?? { at: time, latestAt: time };
    this.refresh = { at: Math.min(at, time), latestAt: Math.min(latestAt, time) };
  }

  /** It has said something. Returns whether this process hears of it for the first time. */
  hear(now: number, publishedAt: number | undefined): boolean {
    const isFirst = !this.wasHeard;
    if (isFirst) this.firstSaidAt = publishedAt;
    this.wasHeard = true;
    this.lastHeardAt = now;
    this.isConfirmedSilent = false;
    this.isHearsay = false;
    return isFirst;
  }

  /**
   * Another replica leads it from now on, or has led it: the known modules are old, and answers to earlier
   * questions do not count. `wasReady`: the former leader had the base Ready, so this replica does not
   * judge it by earlier silence; silence counts from `mayBeSilentSince` on.
   */
  changeLeader(now: number, { wasReady, mayBeSilentSince }: { wasReady: boolean; mayBeSilentSince: number }): void {
    this.ledger = new ModuleLedger(this.#ledgerOptions);
    this.vanishedPods.clear();
    this.pendingRemovals.clear();
    this.unknown.clear();
    this.contact = newContact(this.contact);
    this.runTime = undefined;
    this.refresh = undefined;
    this.isRefusing = false;
    this.healthAskedAt = Number.NEGATIVE_INFINITY;
    this.healthDueAt = Number.POSITIVE_INFINITY;
    this.placedAt = now;
    this.metAt = now;
    // The next leader judges by what it hears itself.
    if (this.liveness === 'Dead') this.liveness = 'Unreachable';
    this.isConfirmedSilent = false;
    if (this.isHearsay) {
      this.isHearsay = false;
      this.lastHeardAt = mayBeSilentSince;
      this.liveness = 'Unreachable';
    }
    if (!wasReady) return;
    this.liveness = 'Reachable';
    this.lastHeardAt = Math.max(this.lastHeardAt, mayBeSilentSince);
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
    return vnode?.wasHeard === true && vnode.liveness === 'Reachable';
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
    const address = addressOf(vnode);
    if (address !== vnode.settledAt) this.#leave(vnode);
    if (address === undefined) return undefined;
    const before = this.#byAddress.get(address);
    if (before === vnode) return undefined;
    this.#byAddress.set(address, vnode);
    vnode.settledAt = address;
    return before;
  }

  values(): IterableIterator<VNode> {
    return this.#byName.values();
  }

  get size(): number {
    return this.#byName.size;
  }

  #leave(vnode: VNode): void {
    const { settledAt } = vnode;
    if (settledAt !== undefined && this.#byAddress.get(settledAt) === vnode) this.#byAddress.delete(settledAt);
    vnode.settledAt = undefined;
  }
}

/** What a base says of itself is written to its Node and its Pods. */
const CHANGE_INTERVAL_MS = 10_000;
/** Moves beyond that interval: a base that restarts elsewhere is worth a write at once. */
const MOVES = { burst: 3, refillMs: 60_000 };

/** How often what a base says of itself may change. A change that is not admitted is in its next heartbeat again. */
export class ChangeLimit {
  readonly #moves: TokenBucket;
  #changedAt = Number.NEGATIVE_INFINITY;

  constructor(now: number) {
    this.#moves = new TokenBucket(MOVES, now);
  }

  /** `isMove`: the address or the tunnel changes, not only names and versions. */
  admit(isMove: boolean, now: number): boolean {
    const isDue = now - this.#changedAt >= CHANGE_INTERVAL_MS;
    if (!isDue && !(isMove && this.#moves.tryTake(now))) return false;
    this.#changedAt = now;
    return true;
  }
}
