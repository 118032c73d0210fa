import { isDeepStrictEqual } from 'node:util';
import type { CachedNode } from '../kinds/vnode-object.ts';
import { nodeSubject } from '../kube/events/event-object.ts';
import type { EventRecorder } from '../kube/events/event-recorder.ts';
import { BASE_LABEL, identityFault, identityOf, nodeNameOf, VNODE_LABEL } from '../labels.ts';
import type { Leadership } from '../leadership.ts';
import type { NodeLeaseController } from '../lease/node-lease-controller.ts';
import type { LedgerOptions } from '../module/module-ledger.ts';
import type { BaseInfo } from '../tunnel/base.ts';
import { type Envelope, TUNNEL_NAMES, type TunnelName } from '../tunnel/tunnel.ts';
import { isRoutable } from './address.ts';
import type { BaseCandidates } from './base-candidates.ts';
import type { BaseInquirer } from './base-inquirer.ts';
import { BRAKE_MAX_MS, UNREACHABLE_AFTER_MS } from './liveness.ts';
import { NewBases, type NewBasesOptions } from './new-bases.ts';
import { arkletPortOf } from './node-object.ts';
import { addressOf, placeOf, weighClaim } from './tunnel-claim.ts';
import { VNode, type VNodeOptions } from './vnode.ts';

export interface VNodeAdmissionOptions extends NewBasesOptions {
  readonly leadership: Pick<Leadership, 'isFollowed' | 'isHeld'>;
  /** The Lease of each new VNode is followed. */
  readonly leases: Pick<NodeLeaseController, 'follow'>;
  readonly inquirer: BaseInquirer;
  readonly candidates: BaseCandidates;
  readonly recorder: EventRecorder;
  readonly enqueueNode: (nodeName: string) => void;
  readonly enqueuePods: (nodeName: string) => void;
  readonly ledger: LedgerOptions;
}

/** Who gets a VNode, and which of two bases with one identity has it. */
export class VNodeAdmission {
  readonly #options: VNodeAdmissionOptions;
  readonly #newBases: NewBases;

  constructor(options: VNodeAdmissionOptions) {
    this.#options = options;
    this.#newBases = new NewBases(options);
    for (const tunnel of TUNNEL_NAMES) options.metrics.refusedBases.inc({ tunnel }, 0);
  }

  /** After 5 min of an outage silence counts although the link is down. */
  #couldSpeakSince(name: TunnelName): number | undefined {
    const { tunnels, clock } = this.#options;
    const tunnel = tunnels.get(name);
    const upSince = tunnel?.upSince();
    if (upSince !== undefined) return upSince;
    const downSince = tunnel?.downSince() ?? clock.now();
    return clock.now() - downSince >= BRAKE_MAX_MS ? downSince : undefined;
  }

  /** The VNode that a heartbeat is for; undefined when it is refused, or the VNode is being removed. */
  admit(envelope: Envelope, base: BaseInfo): VNode | undefined {
    const { store, clock } = this.#options;
    const vnode = store.get(nodeNameOf(envelope.identity));
    const heard = { tunnel: envelope.tunnel, base };
    const holder = store.heardAt(addressOf(heard));
    if (holder && holder !== vnode && this.#stillBeats(holder)) {
      this.#refuseAt(holder, envelope);
      return undefined;
    }
    if (vnode === undefined) {
      if (!this.#newBases.meet(envelope, base)) return undefined;
      const found = this.#discover(envelope.tunnel, base);
      this.#options.inquirer.ask(found);
      return this.#settled(found);
    }
    if (vnode.life.liveness === 'Dead') return undefined;
    const { place } = vnode;
    const verdict = weighClaim(vnode, heard, clock.now(), this.#couldSpeakSince(place.tunnel));
    if (verdict === 'Refused') {
      this.#refuse(vnode, placeOf(heard), envelope.tunnel);
      return undefined;
    }
    if (place.tunnel === envelope.tunnel && isDeepStrictEqual(place.base, base)) return this.#settled(vnode);
    const isMove = verdict === 'Moved' || place.base.ip !== base.ip || place.base.port !== base.port;
    // Nobody is spoken to at a place that changes all the time, and the Node keeps its labels.
    if (!place.changes.admit(isMove, clock.now())) return verdict === 'Moved' ? undefined : this.#settled(vnode);
    if (verdict === 'Moved') this.#move(vnode, placeOf(heard));
    if (place.base.ip !== base.ip) this.#checkAddress(base);
    place.update(base, envelope.tunnel);
    this.#enqueue(vnode);
    return this.#settled(vnode);
  }

  /** What a base at its former address says of itself now. */
  update(vnode: VNode, base: BaseInfo): void {
    const { place } = vnode;
    if (isDeepStrictEqual(place.base, base) || !place.changes.admit(false, this.#options.clock.now())) return;
    place.update(base, place.tunnel);
    this.#enqueue(vnode);
  }

  /** Another base answers at its address: it is called there no longer until it is heard again. */
  displace(vnode: VNode): void {
    vnode.displace();
  }

  /** A base answers. If it had to answer before it becomes a VNode, returns the VNode that it becomes. */
  prove(envelope: Envelope): VNode | undefined {
    const { store, inquirer } = this.#options;
    if (store.get(nodeNameOf(envelope.identity))) return undefined;
    const proven = this.#newBases.prove(envelope);
    if (proven === undefined) return undefined;
    const holder = store.heardAt(addressOf(proven));
    if (holder && this.#stillBeats(holder)) return undefined;
    const vnode = this.#discover(proven.tunnel, proven.base, proven.lastBeatAt);
    // Its health is what it has answered.
    inquirer.noteHealthAsked(vnode, proven.askedAt);
    inquirer.askList(vnode);
    return this.#settled(vnode);
  }

  /** Looks after bases that have to answer; called once a second. */
  sweep(): void {
    this.#newBases.sweep();
  }

  /** Addresses are reused: an answer from there does not prove that the former base lives. */
  #settled(vnode: VNode): VNode {
    const before = this.#options.store.settle(vnode);
    if (vnode.place.isDisplaced) {
      vnode.regainAddress();
      this.#options.inquirer.ask(vnode);
    }
    if (before === undefined) return vnode;
    before.loseAddress();
    const admitted = before.reports.admit(this.#options.clock.now());
    if (admitted) {
      const fields = { node: before.nodeName, by: vnode.nodeName, ...admitted };
      this.#options.logger.warn(fields, 'another base is at its address now');
    }
    this.#enqueue(before);
    return vnode;
  }

  /** A Node of an earlier process, or one made by another replica: its base is silent from now on, until it speaks. */
  adopt(node: CachedNode): void {
    const { store, tunnels } = this.#options;
    const identity = identityOf(node.name);
    const named = TUNNEL_NAMES.find((name) => name === node.labels[VNODE_LABEL.tunnel]);
    // The tunnel may have been switched off since: the base is judged, and found, over one that is there.
    const tunnel = [named, ...TUNNEL_NAMES].find((name) => name !== undefined && tunnels.get(name));
    if (identity === undefined || tunnel === undefined || identityFault(identity) || store.get(node.name)) return;
    const ready = node.conditions.find(({ type }) => type === 'Ready');
    // What was unreachable stays so until the base speaks.
    const wasUnreachable = ready?.status === 'False' && ready.reason === 'BaseUnreachable';
    const vnode = this.#add({ base: baseOf(node, identity), tunnel, adopted: { wasUnreachable } });
    const heardThere = store.settle(vnode);
    if (heardThere) {
      store.settle(heardThere);
      vnode.displace();
      // Two Nodes show one address, and neither base was heard: the first heartbeat decides.
      if (!heardThere.life.wasHeard) heardThere.displace();
    }
  }

  /** Moves the base to where it is now, as the replica that leads it says: its messages may not have arrived here. */
  follow(node: CachedNode): void {
    const { store, leadership, tunnels } = this.#options;
    const vnode = store.get(node.name);
    if (vnode === undefined || !leadership.isFollowed(node.name)) return;
    const tunnel = TUNNEL_NAMES.find((name) => name === node.labels[VNODE_LABEL.tunnel]);
    if (tunnel === undefined || tunnels.get(tunnel) === undefined) return;
    const base = baseOf(node, vnode.identity);
    if (placeOf({ tunnel, base }) === placeOf(vnode.place)) return;
    vnode.place.update(base, tunnel);
    store.settle(vnode);
  }

  #discover(tunnel: TunnelName, base: BaseInfo, lastBeatAt?: number): VNode {
    this.#options.logger.info({ node: nodeNameOf(base.identity), tunnel, ip: base.ip }, 'base found');
    this.#checkAddress(base);
    return this.#add({ base, tunnel, lastBeatAt });
  }

  #add(found: Omit<VNodeOptions, 'now' | 'ledger'>): VNode {
    const { store, leases, ledger, clock } = this.#options;
    const vnode = new VNode({ ...found, now: clock.now(), ledger });
    store.add(vnode);
    leases.follow(vnode.nodeName);
    this.#enqueue(vnode);
    return vnode;
  }

  /** The same VNode, and whatever is behind it now has to say what it has. */
  #move(vnode: VNode, place: string): void {
    const { logger, clock } = this.#options;
    const now = clock.now();
    vnode.move(now);
    if (!vnode.life.wasHeard) return;
    const admitted = vnode.reports.admit(now);
    if (admitted)
      logger.info({ node: vnode.nodeName, from: placeOf(vnode.place), to: place, ...admitted }, 'base has moved');
  }

  /** Two processes have one identity. Whether the first still lives shows when it is asked. */
  #refuse(vnode: VNode, place: string, tunnel: TunnelName): void {
    const { logger, inquirer } = this.#options;
    inquirer.askHealthSoon(vnode);
    if (!this.#countRefusal(vnode, tunnel)) return;
    const held = placeOf(vnode.place);
    logger.warn({ node: vnode.nodeName, held, refused: place }, 'two bases have one identity');
    const why = vnode.life.wasHeard
      ? `while the base at ${held} sends messages`
      : `until ${held}, where its Node shows it, refuses a connection or is silent for 25 s`;
    const message = `a base at ${place} has the identity ${vnode.identity} too: it is refused ${why}`;
    this.#reportRefusal(vnode, message);
  }

  /** Its own heartbeats count; what answers at its address may be the other one. */
  #stillBeats({ life: { liveness, isRefusing, lastBeatAt } }: VNode): boolean {
    const sinceMs = this.#options.clock.now() - (lastBeatAt ?? Number.NEGATIVE_INFINITY);
    return liveness !== 'Dead' && !isRefusing && sinceMs < UNREACHABLE_AFTER_MS;
  }

  /** Two identities have one address: nobody is spoken to there until the one that has it is heard again. */
  #refuseAt(holder: VNode, { identity, tunnel }: Envelope): void {
    holder.displace();
    if (!this.#countRefusal(holder, tunnel)) return;
    const place = placeOf(holder.place);
    this.#options.logger.warn({ node: holder.nodeName, refused: identity, place }, 'two bases have one address');
    const message = `base ${identity} reports ${place} too: it is refused while ${holder.identity} sends heartbeats`;
    this.#reportRefusal(holder, message);
  }

  /** Whether it is reported, too. */
  #countRefusal(holder: VNode, tunnel: TunnelName): boolean {
    const { clock, metrics } = this.#options;
    metrics.refusedBases.inc({ tunnel });
    return holder.place.takeRefusalReport(clock.now());
  }

  #reportRefusal(holder: VNode, message: string): void {
    this.#options.recorder.event(nodeSubject(holder.nodeName), 'Warning', 'BaseRefused', message);
  }

  #checkAddress(base: BaseInfo): void {
    if (isRoutable(base.ip)) return;
    const { metrics, recorder, logger } = this.#options;
    metrics.unroutableBases.inc();
    const nodeName = nodeNameOf(base.identity);
    logger.warn({ node: nodeName, ip: base.ip }, 'base has an address that no Service can use');
    const message = `base ${base.identity} reports the address ${base.ip}, which no Service endpoint can use: its Pods get no podIP`;
    recorder.event(nodeSubject(nodeName), 'Warning', 'UnroutableAddress', message);
  }

  #enqueue({ nodeName }: VNode): void {
    this.#options.enqueueNode(nodeName);
    this.#options.enqueuePods(nodeName);
  }
}

/** What a Node shows of its base, until the base itself speaks. */
function baseOf(node: CachedNode, identity: string): BaseInfo {
  const addressOf = (type: string): string => node.addresses.find((address) => address.type === type)?.address ?? '';
  return {
    identity,
    name: node.labels[BASE_LABEL.name] ?? '',
    version: node.labels[BASE_LABEL.version] ?? '',
    clusterName: node.labels[BASE_LABEL.clusterName] ?? '',
    ip: addressOf('InternalIP') || '0.0.0.0',
    hostName: node.labels[BASE_LABEL.hostName] ?? '',
    port: arkletPortOf(node.annotations),
  };
}
