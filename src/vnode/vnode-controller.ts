import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../clock.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { Informer } from '../kube/informer-types.ts';
import { BASE_LABEL, identityFault, identityOf, nodeNameOf, VNODE_LABEL } from '../labels.ts';
import type { NodeLeaseController } from '../lease/node-lease-controller.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from '../metrics.ts';
import type { LedgerOptions } from '../module/module-ledger.ts';
import type { ManagedBase } from '../pod/managed-base.ts';
import type { BaseHealth, BaseInfo } from '../tunnel/base.ts';
import type { ModuleStatus, OperationResult } from '../tunnel/module.ts';
import {
  type BaseAddress,
  type Envelope,
  TUNNEL_NAMES,
  type TunnelHandler,
  type TunnelName,
} from '../tunnel/tunnel.ts';
import { isRoutable } from './address.ts';
import type { BaseInquirer } from './base-inquirer.ts';
import { MISSED_HEARTBEAT_MS } from './liveness.ts';
import { ManagedVNode } from './managed-vnode.ts';
import { nodeRef } from './node-ref.ts';
import { VNode } from './vnode.ts';
import type { CachedNode } from './vnode-object.ts';
import type { VNodeStore } from './vnode-store.ts';

export interface VNodeControllerOptions {
  readonly store: VNodeStore;
  readonly nodeInformer: Informer<CachedNode>;
  readonly leases: NodeLeaseController;
  readonly inquirer: BaseInquirer;
  readonly recorder: EventRecorder;
  readonly enqueueNode: (nodeName: string) => void;
  readonly enqueuePods: (nodeName: string) => void;
  readonly ledger: LedgerOptions;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** Seconds that a base's run time may seem to go back by without a restart: it is rounded, and answers can cross. */
const RUN_TIME_TOLERANCE_SECONDS = 1;

/**
 * Where bases and the cluster meet: a heartbeat or a Node makes a VNode, messages of a base change it and queue
 * its name. All that follows is decided when the queue comes to it.
 */
export class VNodeController implements TunnelHandler {
  readonly #options: VNodeControllerOptions;

  constructor(options: VNodeControllerOptions) {
    this.#options = options;
    options.nodeInformer.addHandler({ onAdd: (node) => this.#adopt(node) });
  }

  /** The base behind a Node, when this process leads it. */
  managedBase(nodeName: string): ManagedBase | undefined {
    const { store, leases, inquirer, clock, metrics } = this.#options;
    const vnode = store.get(nodeName);
    if (vnode === undefined || !leases.isHeld(nodeName)) return undefined;
    if (vnode.liveness === 'Dead') {
      // A Pod that was bound while the Node goes: the removal takes it along.
      this.#options.enqueueNode(nodeName);
      return undefined;
    }
    return new ManagedVNode(vnode, { inquirer, clock, metrics });
  }

  onHeartbeat(envelope: Envelope, base: BaseInfo): void {
    const known = this.#options.store.get(nodeNameOf(envelope.identity));
    if (known === undefined) {
      this.#discover(envelope, base);
      return;
    }
    const vnode = this.#heard(envelope);
    if (vnode === undefined || (isDeepStrictEqual(vnode.base, base) && vnode.tunnel === envelope.tunnel)) return;
    if (vnode.base.ip !== base.ip) this.#checkAddress(base);
    vnode.base = base;
    vnode.tunnel = envelope.tunnel;
    this.#options.enqueueNode(vnode.nodeName);
    this.#options.enqueuePods(vnode.nodeName);
  }

  onGoingDown({ identity }: Envelope): void {
    const vnode = this.#options.store.get(nodeNameOf(identity));
    if (vnode === undefined || vnode.liveness === 'Dead') return;
    this.#options.logger.info({ node: vnode.nodeName }, 'base is going down');
    vnode.liveness = 'Dead';
    vnode.isSuspended = false;
    this.#options.enqueueNode(vnode.nodeName);
  }

  onHealth(envelope: Envelope, health: BaseHealth): void {
    const vnode = this.#heard(envelope);
    if (vnode === undefined) return;
    const { runTimeSeconds } = vnode;
    // A base that could not tell its figures has not lost its memory.
    if (health.metaspaceUsedBytes !== undefined || vnode.health === undefined) vnode.health = health;
    vnode.runTimeSeconds = health.runTimeSeconds ?? runTimeSeconds;
    const isYounger =
      runTimeSeconds !== undefined &&
      health.runTimeSeconds !== undefined &&
      health.runTimeSeconds < runTimeSeconds - RUN_TIME_TOLERANCE_SECONDS;
    if (isYounger) this.#restarted(vnode, envelope, 'its run time went back');
    this.#options.enqueueNode(vnode.nodeName);
  }

  onModuleList(envelope: Envelope, modules: readonly ModuleStatus[]): void {
    const vnode = this.#heard(envelope);
    if (vnode === undefined) return;
    if (!vnode.ledger.takeList(modules, envelope.publishedAt, this.#options.clock.now())) return;
    this.#options.enqueuePods(vnode.nodeName);
  }

  onOperationResult(envelope: Envelope, result: OperationResult): void {
    const vnode = this.#heard(envelope);
    if (vnode === undefined) return;
    const { clock, logger } = this.#options;
    const end = vnode.ledger.takeResult(result, envelope.publishedAt, clock.now());
    const { command, outcome, module, code, message } = result;
    const fields = { node: vnode.nodeName, command, module: module && `${module.name}:${module.version}`, outcome };
    if (outcome === 'failed') logger.warn({ ...fields, code, reason: message }, 'base answered with a failure');
    else logger.info({ ...fields, tookMs: end && Math.round(end.tookMs) }, 'base answered');
    if (end) this.managedBase(vnode.nodeName)?.onOperationEnd(end);
    this.#options.enqueuePods(vnode.nodeName);
  }

  onBaselineQuery(envelope: Envelope): void {
    const vnode = this.#heard(envelope);
    if (vnode) this.#restarted(vnode, envelope, 'it asked for its baseline');
  }

  onConnectionRefused(_tunnel: TunnelName, { identity }: BaseAddress): void {
    const vnode = this.#options.store.get(nodeNameOf(identity));
    if (vnode === undefined || vnode.liveness === 'Dead') return;
    vnode.ledger.baseRestarted(undefined);
    this.#options.enqueuePods(vnode.nodeName);
  }

  onLinkUp(tunnel: TunnelName): void {
    this.#options.logger.info({ tunnel }, 'tunnel is up');
    for (const vnode of this.#vnodesOf(tunnel)) {
      this.#ask(vnode);
      this.#options.enqueuePods(vnode.nodeName);
    }
  }

  onLinkDown(tunnel: TunnelName): void {
    this.#options.logger.warn({ tunnel }, 'tunnel is down');
    for (const vnode of this.#vnodesOf(tunnel)) vnode.ledger.linkLost();
  }

  #vnodesOf(tunnel: TunnelName): VNode[] {
    return [...this.#options.store.values()].filter((vnode) => vnode.tunnel === tunnel);
  }

  #discover(envelope: Envelope, base: BaseInfo): void {
    const { logger } = this.#options;
    logger.info({ node: nodeNameOf(base.identity), tunnel: envelope.tunnel, ip: base.ip }, 'base found');
    this.#checkAddress(base);
    const vnode = this.#add(base, envelope.tunnel);
    vnode.wasHeard = true;
    this.#ask(vnode);
  }

  /** A Node of an earlier process, or one made by another replica: its base is silent from now on, until it speaks. */
  #adopt(node: CachedNode): void {
    const identity = identityOf(node.name);
    if (identity === undefined || identityFault(identity) || this.#options.store.get(node.name)) return;
    const tunnel = TUNNEL_NAMES.find((name) => name === node.labels[VNODE_LABEL.tunnel]) ?? TUNNEL_NAMES[0];
    const ready = node.conditions.find(({ type }) => type === 'Ready');
    const vnode = this.#add(baseOf(node, identity), tunnel);
    // What was unreachable stays so until the base speaks.
    if (ready?.status === 'False' && ready.reason === 'BaseUnreachable') vnode.liveness = 'Unreachable';
  }

  #add(base: BaseInfo, tunnel: TunnelName): VNode {
    const { store, leases, ledger, clock, enqueueNode, enqueuePods } = this.#options;
    const vnode = new VNode({ base, tunnel, now: clock.now(), ledger });
    store.add(vnode);
    leases.hold(vnode.nodeName);
    enqueueNode(vnode.nodeName);
    enqueuePods(vnode.nodeName);
    return vnode;
  }

  /** Any message is a sign of life. Undefined for a base that no heartbeat or Node told of, or that is being removed. */
  #heard({ identity }: Envelope): VNode | undefined {
    const vnode = this.#options.store.get(nodeNameOf(identity));
    if (vnode === undefined || vnode.liveness === 'Dead') return undefined;
    const now = this.#options.clock.now();
    // It missed a heartbeat: it was perhaps off the broker, which keeps nothing for it.
    if (vnode.wasHeard && now - vnode.lastHeardAt >= MISSED_HEARTBEAT_MS) {
      vnode.ledger.doubtCommands();
      this.#options.enqueuePods(vnode.nodeName);
    }
    vnode.lastHeardAt = now;
    vnode.isConfirmedSilent = false;
    if (!vnode.wasHeard) this.#options.enqueueNode(vnode.nodeName);
    vnode.wasHeard = true;
    if (vnode.liveness === 'Unreachable' || vnode.isSuspended) this.#recover(vnode);
    return vnode;
  }

  /** The Node is Ready at once; its Pods only when a fresh list was read. */
  #recover(vnode: VNode): void {
    if (vnode.liveness === 'Unreachable') {
      vnode.ledger.linkLost();
      this.#options.logger.info({ node: vnode.nodeName }, 'base is reachable again');
    }
    vnode.liveness = 'Reachable';
    vnode.isSuspended = false;
    this.#ask(vnode);
    this.#options.enqueueNode(vnode.nodeName);
    this.#options.enqueuePods(vnode.nodeName);
  }

  #restarted(vnode: VNode, envelope: Envelope, evidence: string): void {
    const { logger, recorder } = this.#options;
    logger.warn({ node: vnode.nodeName, evidence }, 'base was restarted');
    recorder.event(nodeRef(vnode), 'Warning', 'Rebooted', `base ${vnode.identity} was restarted: ${evidence}`);
    vnode.ledger.baseRestarted(envelope.publishedAt);
    vnode.runTimeSeconds = undefined;
    this.#ask(vnode);
    // A base that has just started may not listen yet: the plan asks until it answers.
    this.#options.enqueuePods(vnode.nodeName);
  }

  #ask(vnode: VNode): void {
    this.#options.inquirer.askList(vnode);
    this.#options.inquirer.askHealth(vnode);
  }

  #checkAddress(base: BaseInfo): void {
    if (isRoutable(base.ip)) return;
    const { metrics, recorder, logger } = this.#options;
    metrics.unroutableBases.inc();
    const nodeName = nodeNameOf(base.identity);
    logger.warn({ node: nodeName, ip: base.ip }, 'base has an address that no Service can use');
    const message = `base ${base.identity} calls itself ${base.ip}, which no endpoint of a Service may be: its Pods get no podIP`;
    recorder.event(nodeRef({ nodeName }), 'Warning', 'UnroutableAddress', message);
  }
}

/** What a Node tells of its base, until the base itself speaks. */
function baseOf(node: CachedNode, identity: string): BaseInfo {
  const addressOf = (type: string): string => node.addresses.find((address) => address.type === type)?.address ?? '';
  return {
    identity,
    name: node.labels[BASE_LABEL.name] ?? '',
    version: node.labels[BASE_LABEL.version] ?? '',
    clusterName: node.labels[BASE_LABEL.clusterName] ?? '',
    ip: addressOf('InternalIP') || '0.0.0.0',
    hostName: addressOf('Hostname') === node.name ? '' : addressOf('Hostname'),
    port: 0,
  };
}
