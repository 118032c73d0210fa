import type { Clock } from '../clock.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { NodeLeaseController } from '../lease/node-lease-controller.ts';
import type { Metrics } from '../metrics.ts';
import type { ModuleLedger, OperationEnd } from '../module/module-ledger.ts';
import type { Contact, ManagedBase, UnknownModule } from '../pod/managed-base.ts';
import type { BaseFacts } from '../pod/pod-status.ts';
import type { Debt } from '../pod/removals.ts';
import type { ReportLimit } from '../pod/report-limit.ts';
import type { VPod } from '../pod/vpod.ts';
import type { ModuleKey } from '../tunnel/module.ts';
import type { BaseAddress, TunnelName } from '../tunnel/tunnel.ts';
import type { Tunnels } from '../tunnel/tunnels.ts';
import { isRoutable } from './address.ts';
import type { BaseInquirer } from './base-inquirer.ts';
import { unreachableMessage } from './node-object.ts';
import { nodeRef } from './node-ref.ts';
import type { VNode } from './vnode.ts';
import type { VNodeStore } from './vnode-store.ts';

/**
 * So long after the last operation list and health are asked for, and so long after the first at the latest: once for
 * all that ended meanwhile. A kubelet looks at its node each 10 s.
 */
const REFRESH_AFTER_MS = 4_000;
const REFRESH_WITHIN_MS = 20_000;

export interface LedBasesOptions {
  readonly store: VNodeStore;
  readonly leases: Pick<NodeLeaseController, 'isHeld'>;
  readonly inquirer: BaseInquirer;
  readonly tunnels: Tunnels;
  readonly recorder: EventRecorder;
  /** The process is about to end: it finishes what is under way and begins nothing. */
  readonly isLeaving: () => boolean;
  readonly clock: Clock;
  readonly metrics: Metrics;
}

/** The bases that this process leads, as the Pods see them. */
export class LedBases {
  readonly #options: LedBasesOptions;
  readonly #managed = new WeakMap<VNode, ManagedVNode>();

  constructor(options: LedBasesOptions) {
    this.#options = options;
  }

  /** The base behind a Node. Undefined where this process does not lead the Node, or removes it. */
  get(nodeName: string): ManagedBase | undefined {
    const { store, leases } = this.#options;
    const vnode = store.get(nodeName);
    if (vnode === undefined || vnode.liveness === 'Dead' || !leases.isHeld(nodeName)) return undefined;
    const known = this.#managed.get(vnode);
    if (known) return known;
    const managed = new ManagedVNode(vnode, this.#options);
    this.#managed.set(vnode, managed);
    return managed;
  }
}

class ManagedVNode implements ManagedBase {
  readonly #vnode: VNode;
  readonly #inquirer: BaseInquirer;
  readonly #clock: Clock;
  readonly #metrics: Metrics;
  readonly #tunnels: Tunnels;
  readonly #recorder: EventRecorder;
  readonly #isLeaving: () => boolean;

  constructor(vnode: VNode, parts: LedBasesOptions) {
    this.#vnode = vnode;
    this.#tunnels = parts.tunnels;
    this.#recorder = parts.recorder;
    this.#inquirer = parts.inquirer;
    this.#clock = parts.clock;
    this.#metrics = parts.metrics;
    this.#isLeaving = parts.isLeaving;
  }

  get nodeName(): string {
    return this.#vnode.nodeName;
  }

  get tunnel(): TunnelName {
    return this.#vnode.tunnel;
  }

  get address(): BaseAddress {
    return this.#vnode.base;
  }

  get maxOperations(): number {
    return this.#tunnels.get(this.tunnel)?.maxOperations ?? 0;
  }

  get canSwitch(): boolean {
    return this.#tunnels.get(this.tunnel)?.canSwitch ?? false;
  }

  get isReachable(): boolean {
    const { liveness, isSuspended, isDisplaced } = this.#vnode;
    return liveness === 'Reachable' && !isSuspended && !isDisplaced && !this.#isLeaving();
  }

  get ledger(): ModuleLedger {
    return this.#vnode.ledger;
  }

  get goneWithoutWait(): Set<VPod> {
    return this.#vnode.goneWithoutWait;
  }

  get debts(): Map<ModuleKey, Debt> {
    return this.#vnode.debts;
  }

  get reports(): ReportLimit {
    return this.#vnode.reports;
  }

  get unknown(): Map<ModuleKey, UnknownModule> {
    return this.#vnode.unknown;
  }

  get contact(): Contact {
    return this.#vnode.contact;
  }

  get masterName(): string | undefined {
    return this.#vnode.masterName;
  }

  facts(): BaseFacts {
    const { base, liveness } = this.#vnode;
    const isOut = liveness !== 'Reachable';
    return {
      identity: base.identity,
      ip: base.ip,
      isRoutable: isRoutable(base.ip),
      unreachable: isOut ? { message: unreachableMessage(base) } : undefined,
    };
  }

  askList(): void {
    this.#inquirer.askList(this.#vnode);
  }

  onUnknownModules(message: string): void {
    this.#recorder.event(nodeRef(this.#vnode), 'Warning', 'UnknownModule', message);
  }

  onOperationEnd({ command, result, tookMs }: OperationEnd): void {
    this.#metrics.moduleOperations.inc({ command, result });
    this.#metrics.moduleOperationSeconds.observe({ command }, tookMs / 1000);
    const now = this.#clock.now();
    const { latestAt } = this.#vnode.refresh ?? { latestAt: now + REFRESH_WITHIN_MS };
    this.#vnode.refresh = { at: Math.min(now + REFRESH_AFTER_MS, latestAt), latestAt };
  }
}
