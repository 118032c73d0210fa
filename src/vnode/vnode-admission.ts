import type { CachedNode } from '../kinds/vnode-object.ts';
import { nodeSubject } from '../kube/events/event-object.ts';
import type { EventRecorder } from '../kube/events/event-recorder.ts';
import { BASE_LABEL, identityFault, identityOf, nodeNameOf, VNODE_LABEL } from '../labels.ts';
import type { Leadership } from '../leadership.ts';
import type { NodeLeaseController } from '../lease/node-lease-controller.ts';
import type { LedgerOptions } from '../module/module-ledger.ts';
import { type BaseInfo, isSameBase } from '../tunnel/base.ts';
import { type Envelope, isByAddress, TUNNEL_NAMES, type TunnelName } from '../tunnel/tunnel.ts';
import { isRoutable, NO_ADDRESS } from './address.ts';
import type { BaseCandidates } from './base-candidates.ts';
import type { BaseInquirer } from './base-inquirer.ts';
import { MISSED_HEARTBEAT_MS, UNREACHABLE_AFTER_MS } from './liveness.ts';
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

interface HeardBase {
  readonly tunnel: TunnelName;
  readonly base: BaseInfo;
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

  /** The VNode that a heartbeat is for; undefined when it is refused, or the VNode is being removed. */
  admit(envelope: Envelope, said: BaseInfo): VNode | undefined {
    const { store, clock, tunnels } = this.#options;
    const vnode = store.get(nodeNameOf(envelope.identity));
    // Nearly every heartbeat says what the one before said, and that was checked.
    const isKnown = vnode?.tunnel === envelope.tunnel && isSameBase(vnode.place.base, said);
    const base = isKnown ? vnode.place.base : this.#storable(envelope.tunnel, said);
    const heard = { tunnel: envelope.tunnel, base };
    const holder = store.heardAt(addressOf(heard));
    if (holder && holder !== vnode && this.#stillBeats(holder)) {
      this.#refuseAt(holder, envelope);
      return undefined;
    }
    if (vnode === undefined) {
      if (!this.#newBases.meet(envelope, said)) return undefined;
      const found = this.#discover(envelope.tunnel, said);
      this.#options.inquirer.ask(found);
      return this.#settled(found);
    }
    if (vnode.life.liveness === 'Dead') return undefined;
    const isProven = tunnels.get(envelope.tunnel)?.provesIdentity ?? false;
    const verdict = weighClaim(vnode, heard, clock.now(), isProven);
    if (verdict === 'Refused') {
      this.#refuse(vnode, placeOf(heard), envelope.tunnel);
      return undefined;
    }
    return this.#place(vnode, heard, said, verdict === 'Moved');
  }

  /** The base is at this place now. `hasMoved`: it has the identity from now on. Undefined when it moves too often. */
  #place(vnode: VNode, heard: HeardBase, said: BaseInfo, hasMoved: boolean): VNode | undefined {
    const { place } = vnode;
    const { tunnel, base } = heard;
    const isTakeover = place.tunnel !== tunnel;
    if (!isTakeover && isSameBase(place.base, base)) return this.#settled(vnode);
    const isMove = hasMoved || place.base.ip !== base.ip || place.base.port !== base.port;
    // Nobody is spoken to at a place that changes all the time, and the Node keeps its labels. A base that has proven
    // itself takes over once, and not back, though a stranger may have used up the changes.
    if (!isTakeover && !place.changes.admit(isMove, this.#options.clock.now()))
      return hasMoved ? undefined : this.#settled(vnode);
    if (hasMoved) this.#move(vnode, placeOf(heard));
    if (place.base.ip !== base.ip) this.#checkAddress(vnode, tunnel, said);
    place.update(base, tunnel);
    this.#enqueue(vnode);
    return this.#settled(vnode);
  }

  /** What a base at its former address says of itself now. */
  update(vnode: VNode, base: BaseInfo): void {
    const { place } = vnode;
    if (isSameBase(place.base, base) || !place.changes.admit(false, this.#options.clock.now())) return;
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
    const shown = baseOf(node, identity);
    const base = this.#storable(tunnel, shown);
    const vnode = this.#add({ base, tunnel, adopted: { wasUnreachable } });
    // The networks of bases are others than those of the process before.
    if (base.ip !== shown.ip) this.#checkAddress(vnode, tunnel, shown);
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
    const base = this.#storable(tunnel, baseOf(node, vnode.identity));
    const shown = { tunnel, base };
    if (placeOf(shown) === placeOf(vnode.place)) return;
    // The leader has no answer yet, so its Node has no port. A heartbeat that came here says more.
    if (isByAddress(tunnel) && tunnel === vnode.tunnel && addressOf(shown) === undefined) return;
    vnode.place.update(base, tunnel);
    store.settle(vnode);
  }

  #discover(tunnel: TunnelName, said: BaseInfo, lastBeatAt?: number): VNode {
    this.#options.logger.info({ node: nodeNameOf(said.identity), tunnel, ip: said.ip }, 'base found');
    const vnode = this.#add({ base: this.#storable(tunnel, said), tunnel, lastBeatAt });
    this.#checkAddress(vnode, tunnel, said);
    return vnode;
  }

  /**
   * What may be stored of what a base, or its Node, says of its address. Over MQTT a base works without an address, and
   * a port means nothing: nobody has ever called it there.
   */
  #storable(tunnel: TunnelName, said: BaseInfo): BaseInfo {
    const port = isByAddress(tunnel) ? said.port : 0;
    if (this.#options.tunnels.get(tunnel)?.addressFault(said.ip) !== undefined)
      return { ...said, ip: NO_ADDRESS, port: 0 };
    return port === said.port ? said : { ...said, port };
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
    const why =
      vnode.tunnel !== tunnel
        ? `while its Node is one of ${vnode.tunnel}`
        : vnode.life.wasHeard
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
    if (this.#mayHaveLeft(holder)) holder.displace();
    if (!this.#countRefusal(holder, tunnel)) return;
    const place = placeOf(holder.place);
    this.#options.logger.warn({ node: holder.nodeName, refused: identity, place }, 'two bases have one address');
    const message = `base ${identity} reports ${place} too: it is refused while ${holder.identity} sends heartbeats`;
    this.#reportRefusal(holder, message);
  }

  /**
   * A base that went on with its heartbeats after such a claim has shown that the claim is false: more of them are
   * counted and keep nobody from speaking to it, until it misses a heartbeat.
   */
  #mayHaveLeft({ place, life: { lastBeatAt } }: VNode): boolean {
    const sinceMs = this.#options.clock.now() - (lastBeatAt ?? Number.NEGATIVE_INFINITY);
    return !place.hasRegained || sinceMs >= MISSED_HEARTBEAT_MS;
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

  /** The event about it comes with the addresses of the Node, from the replica that writes them. */
  #checkAddress({ nodeName, place }: VNode, tunnel: TunnelName, { identity, ip }: BaseInfo): void {
    const { metrics, logger, tunnels } = this.#options;
    const fault = tunnels.get(tunnel)?.addressFault(ip);
    const isUsable = fault === undefined && isRoutable(ip);
    const why =
      fault === undefined
        ? 'no Service endpoint can use: its Pods get no podIP'
        : `${fault}: its Node and its Pods show no address`;
    place.noteAddress(isUsable ? undefined : `base ${identity} reports the address ${ip}, which ${why}`);
    if (isUsable) return;
    metrics.unroutableBases.inc();
    logger.warn({ node: nodeName, ip, why: fault }, 'base has an address that no Service can use');
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
    ip: addressOf('InternalIP') || NO_ADDRESS,
    hostName: node.labels[BASE_LABEL.hostName] ?? '',
    port: arkletPortOf(node.annotations),
  };
}
