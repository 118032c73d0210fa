import type { Clock } from '../clock.ts';
import { ControllerError } from '../errors.ts';
import { type CachedNode, projectNode } from '../kinds/vnode-object.ts';
import type { KubeClient } from '../kube/client.ts';
import { nodeSubject } from '../kube/events/event-object.ts';
import type { EventRecorder } from '../kube/events/event-recorder.ts';
import { secondsTime } from '../kube/micro-time.ts';
import type { NodeCondition, NodeObject } from '../kube/objects.ts';
import { isAlreadyExists, isConflict, isInvalidUid, isNotFound, unlessGone } from '../kube/transport/api-error.ts';
import type { Traffic } from '../kube/transport/concurrency-limit.ts';
import type { Permit } from '../kube/transport/rest-lane.ts';
import type { Informer } from '../kube/watch/informer-types.ts';
import { COMPONENT, COMPONENT_LABEL, ENV_LABEL } from '../labels.ts';
import type { Leadership } from '../leadership.ts';
import type { NodeLeaseController } from '../lease/node-lease-controller.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from '../metrics.ts';
import type { VPod } from '../pod/vpod.ts';
import { WorkQueue } from '../queue/work-queue.ts';
import { BasePods } from './base-pods.ts';
import type { KnownNodes } from './known-nodes.ts';
import { LatePods } from './late-pods.ts';
import { METASPACE_PRESSURE, type NodeFacts, newNodeOf, providerIdOf } from './node-object.ts';
import { isBasePodUnknown, planNode, showsMetaspace, usablePatchOf } from './node-plan.ts';
import { type NodeWrite, NodeWrites, spreadOf } from './node-writes.ts';
import type { VNode, VNodeStore } from './vnode.ts';

export interface NodeControllerOptions {
  readonly api: KubeClient;
  readonly informer: Informer<CachedNode>;
  readonly known: KnownNodes;
  readonly podInformer: Informer<VPod>;
  readonly store: VNodeStore;
  readonly leadership: Leadership;
  /** The Leases of dead bases are released, and those of Nodes that are gone forgotten. */
  readonly leases: Pick<NodeLeaseController, 'release' | 'forget'>;
  readonly recorder: EventRecorder;
  /** Traffic of other requests to the API server. */
  readonly traffic: Pick<Traffic, 'isCalm'>;
  readonly env: string;
  readonly kubeletVersion: () => string;
  /** Nodes name the Pods that their bases run in. */
  readonly namesBasePods: boolean;
  readonly workers: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** A new Node waits this long for the base's health, to be created with its memory in one write. */
const WAIT_FOR_HEALTH_MS = 1_000;
/**
 * After this long a Node is looked at again that the watch still shows but that is gone, or that this replica may not
 * write for a moment.
 */
const LOOK_AGAIN_MS = 1_000;

/**
 * Keeps the Node of each VNode as it should be, and takes it away with all that belongs to it when the base is dead.
 */
export class NodeController {
  readonly #options: NodeControllerOptions;
  readonly #queue: WorkQueue;
  readonly #latePods: LatePods;
  /** undefined: they are not looked for. */
  readonly #basePods: BasePods | undefined;
  readonly #writes: NodeWrites;

  constructor(options: NodeControllerOptions) {
    this.#options = options;
    const { workers, clock, logger, metrics } = options;
    this.#queue = new WorkQueue({ name: 'nodes', workers, sync: (key) => this.#sync(key), clock, logger, metrics });
    this.#latePods = new LatePods(options);
    const onFound = (nodeName: string): void => this.enqueue(nodeName);
    this.#basePods = options.namesBasePods ? new BasePods({ ...options, onFound }) : undefined;
    this.#writes = new NodeWrites(clock.now(), { traffic: options.traffic, vnodeCount: () => options.store.size });
    options.informer.addHandler({
      onAdd: (node) => this.#onNode(node),
      onUpdate: (_old, node) => this.#onNode(node),
      onDelete: (node) => this.#onNode(node),
    });
  }

  /** Something of it may be on its way to the API server. */
  isWorkingOn(nodeName: string): boolean {
    return this.#queue.isWorkingOn(nodeName);
  }

  enqueue(nodeName: string): void {
    this.#queue.add(nodeName);
  }

  /** Another replica leads it, or has led it: what this process wrote, and when, is old. */
  onLeaderChange(nodeName: string): void {
    this.#writes.forget(nodeName);
    this.#options.known.forgetCreated(nodeName);
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#queue.run(signal), this.#latePods.run(signal), this.#basePods?.run(signal)]);
  }

  #onNode({ name }: CachedNode): void {
    if (this.#options.store.get(name)) this.#queue.add(name);
  }

  async #sync(nodeName: string): Promise<void> {
    const { store, leadership, known } = this.#options;
    const vnode = store.get(nodeName);
    if (vnode === undefined) return;
    // Nothing queues the Node when this replica leads it again.
    if (leadership.isInterrupted(nodeName)) {
      this.#queue.addAfter(nodeName, LOOK_AGAIN_MS);
      return;
    }
    if (!leadership.isHeld(nodeName)) {
      this.#follow(vnode);
      return;
    }
    if (vnode.life.liveness === 'Dead') {
      await this.#remove(vnode);
      return;
    }
    const node = known.get(nodeName);
    const written = this.#writes.of(vnode, node !== undefined && showsMetaspace(node));
    if (node === undefined) await this.#create(vnode, written);
    else if (!node.isDeleting) await this.#update(vnode, node, written);
  }

  /**
   * Another replica may lead it. The rest is removed when its Node is gone and the base is silent. The only replica does
   * so with a dead base that has no Lease, because another ENV has its name; a Lease of its own it would delete first.
   */
  #follow(vnode: VNode): void {
    const { leadership, leases, informer } = this.#options;
    const { nodeName } = vnode;
    const { wasHeard, liveness } = vnode.life;
    if (!leadership.isFollowed(nodeName) && (liveness !== 'Dead' || leadership.isHolder(nodeName))) return;
    if (informer.get(nodeName) || (wasHeard && liveness === 'Reachable')) return;
    leases.forget(nodeName);
    this.#forget(vnode);
  }

  async #create(vnode: VNode, written: NodeWrite): Promise<void> {
    const { api, clock, logger, recorder, known } = this.#options;
    const waitedMs = clock.now() - vnode.life.metAt;
    if (vnode.process.health === undefined && waitedMs < WAIT_FOR_HEALTH_MS) {
      this.#queue.addAfter(vnode.nodeName, WAIT_FOR_HEALTH_MS - waitedMs);
      return;
    }
    const nowText = secondsTime(clock.wallTime());
    try {
      const node = newNodeOf(this.#factsOf(vnode), nowText, known.ttlSecondsOfNext());
      const created = projectNode(await api.createNode(node, this.#permitOf(vnode)));
      known.addCreated(created);
      written.statusWrittenAt = spreadOf(vnode.nodeName, clock.now());
      if (vnode.process.health) written.metaspaceWrittenAt = clock.now();
      logger.info({ node: vnode.nodeName, tunnel: vnode.tunnel, ip: vnode.place.base.ip }, 'node created');
      recorder.event(nodeSubject(vnode.nodeName), 'Normal', 'Starting', `base ${vnode.identity} was found`);
      this.#reportAddress(vnode);
      await this.#makeUsable(vnode, created);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      known.addCreated(projectNode(this.#refuseForeign(vnode, await api.getNode(vnode.nodeName))));
      this.#queue.add(vnode.nodeName);
    }
  }

  /** Whoever has changed the Node meanwhile, kube-controller-manager above all, removes the taint instead. */
  async #makeUsable(vnode: VNode, created: CachedNode): Promise<void> {
    const patch = usablePatchOf(created);
    if (patch === undefined) return;
    try {
      await this.#options.api.patchNode(created.name, patch, this.#permitOf(vnode));
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error) && !isInvalidUid(error)) throw error;
    }
  }

  async #update(vnode: VNode, node: CachedNode, written: NodeWrite): Promise<void> {
    if (!vnode.life.wasHeard && !vnode.life.isSilent) return;
    const { api, clock, metrics } = this.#options;
    const [now, nowText] = [clock.now(), secondsTime(clock.wallTime())];
    const { statusWrittenAt } = written;
    const metaspaceTurnAt = (): number => this.#writes.turnOf(written, now);
    const plan = planNode({ node, facts: this.#factsOf(vnode), now, nowText, statusWrittenAt, metaspaceTurnAt });
    try {
      if (plan.metadata) this.#store(await api.patchNode(node.name, plan.metadata, this.#permitOf(vnode)));
      if (plan.status) {
        const answer = await api.patchNodeStatus(node.name, plan.status, this.#permitOf(vnode));
        this.#store(answer);
        metrics.nodeStatusWrites.inc({ result: 'ok' });
        this.#writes.noteWrite(written, plan, now);
        this.#reportReadiness(vnode, node);
        if ((plan.status.status as NodeObject['status'])?.addresses !== undefined) this.#reportAddress(vnode);
        this.#reportPressure(vnode, node.conditions, answer.status?.conditions ?? []);
      }
    } catch (error) {
      metrics.nodeStatusWrites.inc({ result: 'error' });
      // What the create answered is old. The watch may never show a Node without labels, so the next sync reads it.
      if (isConflict(error)) this.#options.known.forgetCreated(node.name);
      // Another Node has the name, or none: the watch will show it, and the next sync makes it right.
      if (!isNotFound(error) && !isInvalidUid(error)) throw error;
      this.#options.known.forgetCreated(node.name);
      this.#queue.addAfter(node.name, LOOK_AGAIN_MS);
      return;
    }
    if (this.#basePods && isBasePodUnknown(node, this.#factsOf(vnode))) this.#basePods.want(vnode.nodeName);
    this.#queue.addAfter(node.name, plan.wakeAt - now);
  }

  #reportAddress({ nodeName, place }: VNode): void {
    const { recorder } = this.#options;
    if (place.addressFault !== undefined)
      recorder.event(nodeSubject(nodeName), 'Warning', 'UnroutableAddress', place.addressFault);
  }

  #reportReadiness(vnode: VNode, before: CachedNode): void {
    const was = before.conditions.find(({ type }) => type === 'Ready')?.status;
    const is = vnode.life.liveness === 'Reachable' ? 'True' : 'False';
    if (was === is) return;
    const [type, reason] = is === 'True' ? (['Normal', 'NodeReady'] as const) : (['Warning', 'NodeNotReady'] as const);
    const { recorder, logger } = this.#options;
    recorder.event(nodeSubject(vnode.nodeName), type, reason, `Node ${vnode.nodeName} status is now: ${reason}`);
    logger.info({ node: vnode.nodeName, ready: is }, 'node readiness changed');
  }

  #reportPressure({ nodeName }: VNode, before: readonly NodeCondition[], after: readonly NodeCondition[]): void {
    const messageOf = (all: readonly NodeCondition[]): string | undefined =>
      all.find(({ type, status }) => type === METASPACE_PRESSURE && status === 'True')?.message;
    const message = messageOf(after);
    if (message === undefined || messageOf(before) !== undefined) return;
    this.#options.recorder.event(nodeSubject(nodeName), 'Warning', 'MetaspacePressure', message);
  }

  /** Pods first and the Node last: as long as it exists, the next leader knows that there is work left. */
  async #remove(vnode: VNode): Promise<void> {
    const { api, podInformer, leadership, leases, logger, metrics, known, clock } = this.#options;
    const { nodeName } = vnode;
    const pods = podInformer.byIndex('node', nodeName);
    const permit = this.#permitOf(vnode);
    await Promise.all(pods.map((pod) => this.#forceDelete(pod, permit)));
    const node = known.get(nodeName);
    if (node) await unlessGone(api.deleteNode(nodeName, node.uid, permit));
    // Pods that were bound meanwhile; later ones come from a scheduler whose cache is behind.
    const isLate = (pod: VPod): boolean => !pods.some(({ uid }) => uid === pod.uid);
    const latePods = podInformer.byIndex('node', nodeName).filter(isLate);
    await Promise.all(latePods.map((pod) => this.#forceDelete(pod, permit)));
    // Between two steps another replica may have taken over, which continues from there.
    if (!leadership.isHeld(nodeName)) return;
    await leases.release(nodeName);
    this.#forget(vnode);
    this.#latePods.noteRemoval(nodeName);
    const podCount = pods.length + latePods.length;
    metrics.podDeletes.inc({ reason: 'BaseDead' }, podCount);
    const silentSeconds = Math.round((clock.now() - vnode.life.lastHeardAt) / 1000);
    logger.warn({ node: nodeName, pods: podCount, silentSeconds }, 'base is dead: node and pods deleted');
  }

  #forget(vnode: VNode): void {
    this.#options.store.remove(vnode);
    this.#writes.forget(vnode.nodeName);
    this.#options.known.forgetCreated(vnode.nodeName);
    this.#queue.forget(vnode.nodeName);
    this.#basePods?.forget(vnode.nodeName);
  }

  #forceDelete(pod: VPod, permit: Permit): Promise<void> {
    return unlessGone(this.#options.api.forceDeletePod(pod.namespace, pod.name, pod.uid, permit));
  }

  #permitOf({ nodeName }: VNode): Permit {
    return () => this.#options.leadership.isHeld(nodeName);
  }

  #store(answer: NodeObject): void {
    this.#options.informer.upsert(answer);
  }

  #factsOf(vnode: VNode): NodeFacts {
    const { env, kubeletVersion } = this.#options;
    const { base, tunnel, hasAnswered } = vnode.place;
    const { health, basePod } = vnode.process;
    const { liveness, isSuspended } = vnode.life;
    const reachability = liveness === 'Reachable' ? (isSuspended ? 'Suspended' : 'Reachable') : 'Unreachable';
    return { base, tunnel, env, kubeletVersion: kubeletVersion(), health, reachability, hasAnswered, basePod };
  }

  #refuseForeign(vnode: VNode, node: NodeObject): NodeObject {
    const { env, metrics } = this.#options;
    const labels = node.metadata.labels ?? {};
    const isLabelled = labels[COMPONENT_LABEL] === COMPONENT.vnode && labels[ENV_LABEL] === env;
    if (isLabelled || node.spec?.providerID === providerIdOf(env, vnode.identity)) return node;
    metrics.nodeNameConflicts.inc();
    const owner = labels[ENV_LABEL] === undefined ? 'is not of this controller' : `belongs to ENV ${labels[ENV_LABEL]}`;
    throw new ControllerError('VNode.NameTaken', `node ${vnode.nodeName} exists and ${owner}`);
  }
}
