import type { ErrorCode } from '../errors.ts';
import type { CachedNode } from '../kinds/vnode-object.ts';
import { nodeSubject } from '../kube/events/event-object.ts';
import type { NodeCondition } from '../kube/objects.ts';
import type { Informer } from '../kube/watch/informer-types.ts';
import { nodeNameOf } from '../labels.ts';
import { MAX_RECORDS, type OperationEnd } from '../module/module-ledger.ts';
import { type Contact, noteOperationEnd } from '../pod/led-base.ts';
import type { BaseHealth, BaseInfo } from '../tunnel/base.ts';
import { type ModuleStatus, moduleKeyOf, type OperationResult } from '../tunnel/module.ts';
import { type BaseAddress, type Envelope, isByAddress, type TunnelHandler, type TunnelName } from '../tunnel/tunnel.ts';
import { ANSWER_WITHIN_MS, MISSED_HEARTBEAT_MS, UNREACHABLE_AFTER_MS } from './liveness.ts';
import { isOffBeat, isOfKnownProcess } from './restart-signs.ts';
import { isFromBase, isSamePlace } from './tunnel-claim.ts';
import type { VNode } from './vnode.ts';
import { VNodeAdmission, type VNodeAdmissionOptions } from './vnode-admission.ts';

export interface VNodeControllerOptions extends VNodeAdmissionOptions {
  readonly nodeInformer: Informer<CachedNode>;
  /** A tunnel came up or went down. `up`: the tunnels that are up now. */
  readonly onLinkChange: (up: readonly TunnelName[]) => void;
}

/**
 * Connects bases and the cluster: a heartbeat or a Node makes a VNode, messages of a base change it and queue its name.
 * All that follows is decided when the queue comes to it.
 */
export class VNodeController implements TunnelHandler {
  readonly #options: VNodeControllerOptions;
  readonly #admission: VNodeAdmission;

  constructor(options: VNodeControllerOptions) {
    this.#options = options;
    this.#admission = new VNodeAdmission(options);
    options.nodeInformer.addHandler({
      onAdd: (node) => this.#admission.adopt(node),
      onUpdate: (_old, node) => this.#admission.follow(node),
    });
  }

  /** This replica has started to lead the VNode after another one, or stopped. */
  onLeaderChange(nodeName: string): void {
    const { store, clock, inquirer, nodeInformer, enqueueNode, enqueuePods } = this.#options;
    const vnode = store.get(nodeName);
    if (vnode === undefined) return;
    const now = clock.now();
    const wasReady = nodeInformer.get(nodeName)?.conditions.some(isReadyTrue) ?? false;
    vnode.changeLeader(now, { wasReady, mayBeSilentSince: now - MISSED_HEARTBEAT_MS });
    inquirer.ask(vnode);
    enqueueNode(nodeName);
    enqueuePods(nodeName);
  }

  /** Looks after bases that have to answer before they get a Node; called once a second. */
  sweep(): void {
    this.#admission.sweep();
  }

  onHeartbeat(envelope: Envelope, base: BaseInfo): void {
    if (!isFromBase(envelope, base)) {
      this.#onHint(envelope, base);
      return;
    }
    const vnode = this.#admission.admit(envelope, base);
    if (vnode === undefined) return;
    const now = this.#options.clock.now();
    const { lastBeatAt } = vnode.life;
    const isOdd = isByAddress(vnode.tunnel) && lastBeatAt !== undefined && isOffBeat(lastBeatAt, now);
    vnode.life.beat(now);
    if (isOdd) this.#options.inquirer.askSoon(vnode);
    this.#noteLife(vnode, envelope);
  }

  /** Anybody may have posted it, so it is only a reason to ask the base: its answers count. */
  #onHint(envelope: Envelope, base: BaseInfo): void {
    const { identity, tunnel } = envelope;
    const { store, leadership, candidates } = this.#options;
    const vnode = store.get(nodeNameOf(identity));
    if (vnode?.life.liveness === 'Dead') return;
    const isFollowed = vnode !== undefined && leadership.isFollowed(vnode.nodeName);
    if (vnode === undefined || vnode.place.isDisplaced || !isSamePlace(vnode.place, { tunnel, base })) {
      if (!isFollowed) candidates.hint(tunnel, base);
      return;
    }
    if (!this.#beatsItself(vnode)) {
      if (isFollowed) this.#noteHearsay(vnode, envelope);
      else this.#noteHint(vnode, base);
    }
  }

  /** Its own heartbeats say all that others could. */
  #beatsItself({ life: { lastBeatAt } }: VNode): boolean {
    return lastBeatAt !== undefined && this.#options.clock.now() - lastBeatAt < UNREACHABLE_AFTER_MS;
  }

  /** The replica that leads the base asks it and judges it. Here it only shows that there is nothing to do. */
  #noteHearsay(vnode: VNode, envelope: Envelope): void {
    this.#noteLife(vnode, envelope);
    vnode.life.noteHearsay();
  }

  #noteHint(vnode: VNode, base: BaseInfo): void {
    const { clock, inquirer } = this.#options;
    const now = clock.now();
    const { life, proof } = vnode;
    const isOdd = proof.hint(now);
    const isWell = life.wasHeard && !life.isSilent && !life.isRefusing;
    if (livesByAnswers(vnode)) {
      if (proof.provesHints(now)) this.#admission.update(vnode, base);
      // A base whose threads all run commands answers no question; when it ends, their connections break.
      if (isWell && vnode.ledger.hasOpenCommand) life.hear(now, undefined);
    }
    if (isOdd || !isWell) inquirer.askSoon(vnode);
  }

  onGoingDown(envelope: Envelope, base: BaseInfo): void {
    const { identity, tunnel } = envelope;
    const { store, leadership, clock, inquirer } = this.#options;
    const unproven = store.unproven.get(nodeNameOf(identity));
    if (unproven && isFromBase(envelope, base) && isSamePlace(unproven, { tunnel, base })) {
      store.unproven.delete(nodeNameOf(identity));
    }
    const vnode = store.get(nodeNameOf(identity));
    if (vnode === undefined || vnode.life.liveness === 'Dead' || !isSamePlace(vnode.place, { tunnel, base })) return;
    if (leadership.isFollowed(vnode.nodeName)) return;
    if (isFromBase(envelope, vnode.place.base)) {
      this.#end(vnode);
      return;
    }
    // Anybody may have posted it: a refused connection confirms it, an answer refutes it.
    vnode.proof.sayGoodbye(clock.now());
    inquirer.askHealthSoon(vnode);
  }

  #end(vnode: VNode): void {
    this.#options.logger.info({ node: vnode.nodeName }, 'base is going down');
    vnode.goDown();
    this.#options.enqueueNode(vnode.nodeName);
  }

  onHealth(envelope: Envelope, health: BaseHealth): void {
    const { clock } = this.#options;
    this.#admitProven(envelope);
    this.#admission.prove(envelope)?.life.hear(clock.now(), envelope.publishedAt);
    const vnode = this.#heard(envelope);
    if (vnode === undefined) return;
    vnode.process.reportHealth(health, vnode.place.base.name);
    if (vnode.process.reportAge(health.runTimeSeconds, clock.now(), envelope.askedAt))
      this.#restarted(vnode, envelope, 'the start time of the JVM changed');
    this.#options.enqueueNode(vnode.nodeName);
  }

  /** An answer from an address names the identity that a heartbeat from elsewhere claimed for it. */
  #admitProven(envelope: Envelope): void {
    const base = this.#options.candidates.proven(envelope);
    const vnode = base && this.#admission.admit(envelope, base);
    if (vnode === undefined) return;
    const now = this.#options.clock.now();
    vnode.proof.hint(now);
    vnode.proof.named(now);
    this.#noteLife(vnode, envelope);
  }

  admitList(tunnel: TunnelName, identity: string): boolean {
    const vnode = this.#options.store.get(nodeNameOf(identity));
    if (vnode?.tunnel !== tunnel || vnode.questions.lists.admit(this.#options.clock.now())) return true;
    this.#options.metrics.skippedLists.inc({ reason: 'rate' });
    return false;
  }

  onModuleList(envelope: Envelope, modules: readonly ModuleStatus[]): void {
    const vnode = this.#heard(envelope);
    if (vnode === undefined) return;
    if (!vnode.ledger.takeList(modules, envelope, this.#options.clock.now())) {
      if (vnode.ledger.isFull) this.#refuseList(vnode, modules.length);
      return;
    }
    // Here, since a plan may come late: by then the base may have been restarted, and its list may lack what it had.
    noteListed(vnode.contact, modules);
    this.#options.enqueuePods(vnode.nodeName);
  }

  /** The plan makes room in the ledger, and then the base is asked again. */
  #refuseList(vnode: VNode, listed: number): void {
    const { metrics, logger, enqueuePods, clock } = this.#options;
    metrics.skippedLists.inc({ reason: 'room' });
    const admitted = vnode.reports.admit(clock.now());
    const code: ErrorCode = 'Base.TooManyModules';
    const reason = `no room for ${listed} listed modules: at most ${MAX_RECORDS} are known of one base`;
    if (admitted) logger.warn({ node: vnode.nodeName, code, reason, ...admitted }, 'list of a base refused');
    vnode.questions.lists.refused();
    enqueuePods(vnode.nodeName);
  }

  onOperationResult(envelope: Envelope, result: OperationResult): void {
    const vnode = this.#heard(envelope);
    if (vnode === undefined) return;
    const { clock } = this.#options;
    const end = vnode.ledger.takeResult(result, envelope, clock.now());
    this.#logAnswer(vnode, result, end);
    if (end && this.#options.leadership.isHeld(vnode.nodeName)) noteOperationEnd(vnode, end, this.#options);
    this.#options.enqueuePods(vnode.nodeName);
  }

  onBaselineQuery(envelope: Envelope): void {
    if (isByAddress(envelope.tunnel)) {
      this.#askWhetherRestarted(envelope);
      return;
    }
    const vnode = this.#heard(envelope);
    if (vnode === undefined || isOfKnownProcess(envelope.publishedAt, vnode.life.firstSaidAt)) return;
    this.#restarted(vnode, envelope, 'it asked for its baseline');
  }

  /**
   * A question over HTTP carries no time and may be posted by anybody, so it ends no command in work: the age of the
   * process in its answer shows whether it is another one.
   */
  #askWhetherRestarted({ identity, tunnel }: Envelope): void {
    const { store, inquirer } = this.#options;
    const vnode = store.get(nodeNameOf(identity));
    if (vnode === undefined || vnode.life.liveness === 'Dead' || vnode.tunnel !== tunnel) return;
    inquirer.askSoon(vnode);
  }

  /** The process has ended; the next one is at the same place, or its heartbeat names it. */
  onConnectionRefused(tunnel: TunnelName, base: BaseAddress): void {
    this.#options.candidates.refused(tunnel, base);
    const vnode = this.#options.store.get(nodeNameOf(base.identity));
    if (vnode === undefined || vnode.life.liveness === 'Dead' || !isSamePlace(vnode.place, { tunnel, base })) return;
    if (vnode.proof.awaitsEnd(this.#options.clock.now()) && !this.#options.leadership.isFollowed(vnode.nodeName)) {
      this.#end(vnode);
      return;
    }
    const admitted = vnode.life.isRefusing ? undefined : vnode.reports.admit(this.#options.clock.now());
    if (admitted) this.#options.logger.warn({ node: vnode.nodeName, ...admitted }, 'base refuses connections');
    vnode.refuse();
    this.#options.enqueuePods(vnode.nodeName);
  }

  onLinkUp(tunnel: TunnelName): void {
    this.#options.logger.info({ tunnel }, 'tunnel is up');
    this.#options.onLinkChange(this.#options.tunnels.namesUp());
    for (const vnode of this.#vnodesOf(tunnel)) {
      this.#options.inquirer.ask(vnode);
      this.#options.enqueuePods(vnode.nodeName);
    }
  }

  onLinkDown(tunnel: TunnelName): void {
    this.#options.logger.warn({ tunnel }, 'tunnel is down');
    this.#options.onLinkChange(this.#options.tunnels.namesUp());
    for (const vnode of this.#vnodesOf(tunnel)) vnode.ledger.linkLost();
  }

  #vnodesOf(tunnel: TunnelName): VNode[] {
    return [...this.#options.store.values()].filter((vnode) => vnode.tunnel === tunnel);
  }

  /**
   * The VNode that a message is for, which any message keeps alive. Undefined for a base that no heartbeat or Node
   * reported, that is being removed, that another replica may lead, or that is spoken to elsewhere (or was, when it was
   * asked this).
   */
  #heard(envelope: Envelope): VNode | undefined {
    const { identity, tunnel, askedAt } = envelope;
    const vnode = this.#options.store.get(nodeNameOf(identity));
    if (vnode === undefined || vnode.life.liveness === 'Dead' || vnode.tunnel !== tunnel) return undefined;
    if (this.#options.leadership.isFollowed(vnode.nodeName) || this.#isForeign(vnode, envelope)) return undefined;
    const { place, proof } = vnode;
    if (place.isDisplaced || (askedAt !== undefined && askedAt < place.placedAt)) return undefined;
    if (envelope.answeredBy === identity) proof.named(this.#options.clock.now());
    // Its Node shows the port from now on. There is none where bases are not called by their addresses.
    if (askedAt !== undefined && isByAddress(tunnel) && place.answer()) this.#options.enqueueNode(vnode.nodeName);
    this.#noteLife(vnode, envelope);
    return vnode;
  }

  /**
   * Whether an answer over HTTP may be another base's, which has the address now: it says so, or it does not say
   * whose it is and the base itself was not heard yet since the start of this process, nor named in an answer since it
   * came there.
   */
  #isForeign(vnode: VNode, { tunnel, askedAt, answeredBy }: Envelope): boolean {
    if (!isByAddress(tunnel) || askedAt === undefined || answeredBy === vnode.identity) return false;
    const isOther = answeredBy !== undefined && this.#options.store.get(nodeNameOf(answeredBy)) !== undefined;
    if (isOther) this.#admission.displace(vnode);
    return isOther || (vnode.life.lastBeatAt === undefined && vnode.proof.namedAt < vnode.place.placedAt);
  }

  #noteLife(vnode: VNode, { publishedAt, askedAt }: Envelope): void {
    const { clock, inquirer, enqueueNode, enqueuePods } = this.#options;
    const { life, proof } = vnode;
    const now = clock.now();
    proof.refuteGoodbye(askedAt);
    // It missed a heartbeat: it was perhaps off the broker, which keeps nothing for it.
    if (life.wasHeard && now - Math.max(life.lastHeardAt, proof.hintedAt) >= MISSED_HEARTBEAT_MS) {
      vnode.ledger.doubtCommands();
      enqueuePods(vnode.nodeName);
    }
    const wasRefusing = life.isRefusing;
    if (life.hear(now, publishedAt)) enqueueNode(vnode.nodeName);
    if (life.liveness === 'Unreachable' || life.isSuspended) this.#recover(vnode);
    else if (wasRefusing) inquirer.ask(vnode);
  }

  /** The Node is Ready at once; its Pods only when a fresh list was read. */
  #recover(vnode: VNode): void {
    if (vnode.life.liveness === 'Unreachable') {
      this.#options.logger.info({ node: vnode.nodeName }, 'base is reachable again');
    }
    vnode.recover();
    this.#options.inquirer.ask(vnode);
    this.#options.enqueueNode(vnode.nodeName);
    this.#options.enqueuePods(vnode.nodeName);
  }

  #restarted(vnode: VNode, envelope: Envelope, evidence: string): void {
    const { logger, recorder, clock } = this.#options;
    // Reported again: the base is asked already.
    const isReported = vnode.ledger.isRestarting && clock.now() - vnode.ledger.askedAt < ANSWER_WITHIN_MS;
    vnode.restart(envelope.publishedAt);
    if (isReported) return;
    // A base that has just started may not listen yet: the plan asks until it answers.
    this.#options.enqueuePods(vnode.nodeName);
    const admitted = vnode.reports.admit(clock.now());
    // A base that restarts all the time is asked by the plan alone, which takes its time.
    if (admitted === undefined) return;
    logger.warn({ node: vnode.nodeName, evidence, ...admitted }, 'base was restarted');
    recorder.event(
      nodeSubject(vnode.nodeName),
      'Warning',
      'Rebooted',
      `base ${vnode.identity} was restarted: ${evidence}`,
    );
    this.#options.inquirer.ask(vnode);
  }

  #logAnswer(vnode: VNode, result: OperationResult, end: OperationEnd | undefined): void {
    const { logger, clock } = this.#options;
    const { command, outcome, module, code, message } = result;
    // The controller's own commands bound their number.
    const admitted = end ? {} : vnode.reports.admit(clock.now());
    if (admitted === undefined) return;
    const fields = { node: vnode.nodeName, command, module: module && moduleKeyOf(module), outcome, ...admitted };
    if (outcome === 'failed') logger.warn({ ...fields, code, reason: message }, 'base answered with a failure');
    else logger.info({ ...fields, tookMs: end && Math.round(end.tookMs) }, 'base answered');
  }
}

/**
 * Adds a list to those before the first plan. A base may restart before each plan and list other names each time, so
 * no more modules are noted than a ledger knows: the record keeps all modules of a base with far fewer that no Pod
 * asks for.
 */
function noteListed({ listed }: Contact, modules: readonly ModuleStatus[]): void {
  if (listed === undefined) return;
  for (const module of modules) {
    if (listed.size >= MAX_RECORDS) return;
    listed.set(moduleKeyOf(module), module);
  }
}

/** Whether the base answered with its identity when its own heartbeats no longer came, or never had. */
function livesByAnswers({ life: { lastBeatAt }, place, proof: { namedAt } }: VNode): boolean {
  if (namedAt < place.placedAt) return false;
  return lastBeatAt === undefined || namedAt - lastBeatAt >= UNREACHABLE_AFTER_MS;
}

function isReadyTrue({ type, status }: NodeCondition): boolean {
  return type === 'Ready' && status === 'True';
}
