import type { Clock } from '../clock.ts';
import type { KubeClient } from '../kube/client.ts';
import type { EventRecorder } from '../kube/events/event-recorder.ts';
import type { ConditionStatus, NodeCondition } from '../kube/objects.ts';
import { isConflict, isNotFound, isNotPermitted } from '../kube/transport/api-error.ts';
import type { Informer } from '../kube/watch/informer-types.ts';
import type { Leadership } from '../leadership.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from '../metrics.ts';
import { MAX_RECORDS } from '../module/module-ledger.ts';
import { fingerprintOf, isGone } from '../module/module-record.ts';
import { WorkQueue } from '../queue/work-queue.ts';
import { isReplacing, moduleKeyOf } from '../tunnel/module.ts';
import type { Tunnels } from '../tunnel/tunnels.ts';
import { ASK_AGAIN_MS, type BasePlan, nameOwnersOf, type PlannedCommand, planBase } from './base-plan.ts';
import { CommandSender } from './command-sender.ts';
import { Departures } from './departures.ts';
import { type LedBase, noteOperationEnd } from './led-base.ts';
import { moduleSpecsOf } from './module-spec.ts';
import type { OwnerOf } from './name-owners.ts';
import type { AdmittingNode } from './pod-admission.ts';
import { type HeldPods, PodMemory, type StrandedPods } from './pod-memory.ts';
import { SLOW_INSTALL_MS } from './pod-status.ts';
import { StatusWriter } from './status-writer.ts';
import { type UnknownModulePolicy, UnknownModules } from './unknown-modules.ts';
import type { VPod } from './vpod.ts';

/** What the controller of Pods reads of a Node. */
export interface PodNode extends AdmittingNode {
  readonly conditions: readonly NodeCondition[];
}

export interface PodControllerOptions {
  readonly api: KubeClient;
  readonly informer: Informer<VPod>;
  readonly nodeInformer: Informer<PodNode>;
  readonly leadership: Pick<Leadership, 'isHeld' | 'isInterrupted'>;
  /** The living base behind a Node, led or followed. */
  readonly baseOf: (nodeName: string) => LedBase | undefined;
  /** Asks the base behind a Node for its list of modules. */
  readonly askList: (nodeName: string) => void;
  /** The process is about to end: it finishes running work and starts nothing. */
  readonly isLeaving: () => boolean;
  readonly tunnels: Tunnels;
  readonly recorder: EventRecorder;
  readonly env: string;
  /** Whether a base or a Node of that name is there now, led or followed. */
  readonly isInUse: (nodeName: string) => boolean;
  readonly workers: number;
  readonly unknownModulePolicy: UnknownModulePolicy;
  /** `preStop.sleep` of containers that have none, in s. */
  readonly preStopSleepSeconds: number;
  readonly ownerOf: OwnerOf;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

interface Plan extends BasePlan {
  readonly stranded: StrandedPods;
}

/** A base that this process may not act on for a moment is looked at again after this long. */
const LOOK_AGAIN_MS = 1_000;
/** A base with fewer containers and modules than this never rests: its next Pod waits for nothing. */
const REST_FROM_SIZE = 200;
const REST_FROM_MS = 1;
/** A base that keeps the process busy for 20 ms rests for 80 ms: it has a fifth of a core. */
const REST_FACTOR = 4;
const MAX_REST_MS = 250;

/**
 * Brings the Pods of a base and its modules together. One sync looks at one whole base, since Pods share modules
 * and their statuses have an order. `planBase` decides what to do, and this controller does it.
 */
export class PodController {
  readonly #options: PodControllerOptions;
  readonly #queue: WorkQueue;
  readonly #statuses: StatusWriter;
  readonly #commands: CommandSender;
  readonly #unknown: UnknownModules;
  readonly #memory: PodMemory;
  readonly #departures: Departures;
  /** Time that a large base rests after its sync, in ms, by node name. Emptied by the rest. */
  readonly #restMs = new Map<string, number>();

  constructor(options: PodControllerOptions) {
    this.#options = options;
    const { workers, clock, logger, metrics, informer, nodeInformer } = options;
    this.#memory = new PodMemory(options.preStopSleepSeconds);
    this.#departures = new Departures({
      ...options,
      isReadyNode: (nodeName) => readyOf(nodeInformer.get(nodeName)) === 'True',
    });
    const sync = (nodeName: string): Promise<void> => this.#sync(nodeName);
    const restMs = (nodeName: string): number => this.#takeRest(nodeName);
    this.#queue = new WorkQueue({ name: 'pods', workers, sync, restMs, clock, logger, metrics });
    this.#statuses = new StatusWriter(options);
    this.#commands = new CommandSender({
      ...options,
      enqueueAfter: (nodeName, delayMs) => this.#queue.addAfter(nodeName, delayMs),
    });
    this.#unknown = new UnknownModules({
      ...options,
      policy: options.unknownModulePolicy,
      enqueue: (nodeName) => this.#queue.add(nodeName),
    });
    informer.addHandler({
      onAdd: (pod) => this.#onPod(undefined, pod),
      onUpdate: (old, pod) => this.#onPod(old, pod),
      onDelete: (pod, isForgotten) => this.#onPodDeleted(pod, isForgotten),
    });
    nodeInformer.addHandler({
      onAdd: (node) => this.#onNode(node),
      onUpdate: (_old, node) => this.#onNode(node),
    });
  }

  /** Something of it may be on its way to the API server. */
  isWorkingOn(nodeName: string): boolean {
    return this.#queue.isWorkingOn(nodeName);
  }

  enqueue(nodeName: string): void {
    this.#queue.add(nodeName);
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#queue.run(signal), this.#unknown.run(signal)]);
  }

  #onPod(before: VPod | undefined, pod: VPod): void {
    if (pod.nodeName === undefined) return;
    const { clock } = this.#options;
    this.#memory.observe(before, pod, { now: clock.now(), wallTime: clock.wallTime() });
    if (before !== undefined && this.#statuses.isOwnWrite(before, pod)) return;
    this.#queue.add(pod.nodeName);
  }

  /** A Pod may fit now. */
  #onNode({ name }: PodNode): void {
    if (this.#memory.isAwaited(name)) this.#queue.add(name);
  }

  #onPodDeleted(pod: VPod, isForgotten: boolean): void {
    const base = pod.nodeName === undefined ? undefined : this.#ledBaseOf(pod.nodeName);
    // Force, grace 0, or a deletion that this process did not see: the event is all there is to remember the modules
    // by. One that the cluster has forgotten leaves modules that no Pod asks for.
    if (this.#memory.forget(pod) && !isForgotten) base?.vanishedPods.add(this.#statuses.remembered(pod));
    this.#statuses.forget(pod);
    if (pod.nodeName !== undefined) this.#queue.add(pod.nodeName);
  }

  /** The base behind a Node that this replica leads, also at a moment at which it may not act. */
  #ledBaseOf(nodeName: string): LedBase | undefined {
    const { leadership, baseOf } = this.#options;
    return leadership.isHeld(nodeName) || leadership.isInterrupted(nodeName) ? baseOf(nodeName) : undefined;
  }

  async #sync(nodeName: string): Promise<void> {
    const { leadership, baseOf } = this.#options;
    const base = leadership.isHeld(nodeName) ? baseOf(nodeName) : undefined;
    if (base === undefined) {
      // Nobody else has written meanwhile, so what is remembered of its Pods still counts.
      if (leadership.isInterrupted(nodeName)) {
        this.#queue.addAfter(nodeName, LOOK_AGAIN_MS);
        return;
      }
      // Whoever leads it now writes what it sees.
      const pods = this.#options.informer.byIndex('node', nodeName);
      this.#memory.forgetNode(nodeName, pods);
      for (const pod of pods) this.#statuses.forget(pod);
      return;
    }
    const { clock } = this.#options;
    const startedAt = clock.now();
    for (const end of base.ledger.expire(clock.now())) noteOperationEnd(base, end, this.#options);
    const unwritten = this.#statuses.unwrittenModules(nodeName);
    const plan = this.#plan(base, unwritten);
    const first = firstInstallsOf(plan.commands);
    this.#send(base, first);
    // What ended is written before it is started again, so that no restart goes uncounted (a kill may come between).
    const writing = this.#statuses.write(nodeName, plan, base.facts(), plan.stranded.departing);
    const deleting = this.#deleteAll(plan.finished);
    const plannedMs = clock.now() - startedAt;
    const { writes, errors } = await writing;
    const hasLater = plan.commands.length > first.length || unwritten.size > 0;
    const wanted = writes > 0 && hasLater ? this.#stillWanted(base, plan.commands) : plan.commands;
    const sent = new Set(first);
    const commands = wanted.filter((command) => !sent.has(command));
    // A write that was held back: another replica may lead the Node by now.
    if (!errors.some(isNotPermitted)) this.#send(base, commands);
    errors.push(...(await deleting));
    for (const [key, removal] of plan.settledRemovals) {
      if (base.pendingRemovals.get(key) === removal) base.pendingRemovals.delete(key);
    }
    const writtenAt = clock.now();
    base.ledger.forgetUnless(plan.isWanted);
    this.#lookAhead(base, plan, startedAt);
    this.#noteCost(base, plan, plannedMs + clock.now() - writtenAt);
    if (errors.length > 0) throw errors[0];
  }

  /** The time that one sync keeps all other bases waiting. It grows with the containers and modules of the base. */
  #noteCost({ nodeName, ledger, pendingRemovals }: LedBase, plan: BasePlan, costMs: number): void {
    if (costMs < REST_FROM_MS) return;
    let size = ledger.recordCount + pendingRemovals.size;
    for (const { containers } of plan.views.keys()) size += containers.length;
    if (size < REST_FROM_SIZE) return;
    this.#restMs.set(nodeName, Math.min(REST_FACTOR * costMs, MAX_REST_MS));
  }

  #takeRest(nodeName: string): number {
    const restMs = this.#restMs.get(nodeName) ?? 0;
    this.#restMs.delete(nodeName);
    return restMs;
  }

  /** The end of each makes a new plan, which decides again about what may not leave now. */
  #send(base: LedBase, commands: readonly PlannedCommand[]): void {
    const tunnel = this.#options.tunnels.get(base.tunnel);
    if (tunnel === undefined || !base.isReachable || this.#options.isLeaving()) return;
    const room = Math.max(0, tunnel.maxOperations - base.ledger.inFlightCount);
    for (const command of commands.slice(0, room)) this.#commands.send(base, tunnel, command);
  }

  /** What the base has to be asked, and when the plan, made at `plannedAt`, has to be made again if nothing happens. */
  #lookAhead(base: LedBase, plan: Plan, plannedAt: number): void {
    const unknown = this.#unknown.observe(base, plan);
    const asks = plan.askList || unknown.askList || asksForStranded(base, plan, plannedAt);
    if (asks && base.isReachable && !this.#options.isLeaving()) this.#options.askList(base.nodeName);
    const slowAt = slowAtOf(base, plan, plannedAt);
    const times = [plan.wakeAt, unknown.wakeAt, slowAt, this.#memory.wakeAt(base.nodeName), plan.stranded.wakeAt];
    this.#queue.lookAt(base.nodeName, Math.min(...times.map((time) => time ?? Number.POSITIVE_INFINITY)));
  }

  #plan(base: LedBase, unwritten: ReadonlySet<string>): Plan {
    const { clock, ownerOf, nodeInformer, tunnels } = this.#options;
    const { pendingRemovals, ledger } = base;
    const canSwitch = tunnels.get(base.tunnel)?.canSwitch ?? false;
    const now = clock.now();
    const pods = this.#podsOf(base.nodeName);
    const node = nodeInformer.get(base.nodeName);
    const held = this.#memory.judge(base.nodeName, pods, node, now);
    // No controller has written for the Node, and kube-controller-manager says so.
    const isUnknown = readyOf(node) === 'Unknown';
    const mayLeave = (pod: VPod): boolean => hasNothingOf(base, pod) || this.#departures.mayLeave(pod, now);
    const stranded = this.#memory.noteNode(base.nodeName, pods, { isUnknown, now, mayLeave });
    this.#requireRemovals(base, pods, held);
    this.#memory.noteWritten(pods, unwritten, now);
    const plan = planBase({
      pods,
      unadmitted: held,
      pendingRemovals,
      ledger,
      canSwitch,
      unwritten,
      sleepUntil: this.#memory,
      ownerOf,
      now,
    });
    this.#memory.noteReplaced(plan.replaced, pods);
    return { ...plan, stranded };
  }

  /** A module whose name belongs to another namespace was never installed for its Pod. */
  #requireRemovals(base: LedBase, pods: readonly VPod[], held: HeldPods): void {
    const { vanishedPods, pendingRemovals, ledger } = base;
    if (vanishedPods.size === 0) return;
    const { ownerOf } = this.#options;
    const counted = [...pods.filter(({ uid }) => !held.has(uid)), ...vanishedPods];
    const owners = nameOwnersOf({ pods: counted, pendingRemovals, ledger, ownerOf });
    for (const pod of vanishedPods) {
      for (const { name, version, strategy } of owners.specsOf(pod)) {
        // Further modules are removed later, as those that no Pod asks for.
        if (pendingRemovals.size >= MAX_RECORDS) break;
        const removal = { name, version, namespace: pod.namespace, ...(strategy !== undefined && { strategy }) };
        pendingRemovals.set(moduleKeyOf(removal), removal);
      }
    }
    vanishedPods.clear();
  }

  /** The Pods that are known to exist, each with the status that was last attempted to write. */
  #podsOf(nodeName: string): VPod[] {
    const pods = this.#options.informer.byIndex('node', nodeName);
    return pods.filter((pod) => !this.#memory.isDeleted(pod)).map((pod) => this.#statuses.remembered(pod));
  }

  /**
   * Plans again after the writes, and returns those commands that the new plan still has; the next sync sends the
   * others of the new plan. The new plan has no install that replaces a module whose Pod could not be written.
   */
  #stillWanted(base: LedBase, commands: readonly PlannedCommand[]): PlannedCommand[] {
    const unwritten = this.#statuses.unwrittenModules(base.nodeName);
    const fresh = new Set(this.#plan(base, unwritten).commands.map(identityOf));
    const still = commands.filter((command) => fresh.delete(identityOf(command)));
    if (fresh.size > 0) this.#queue.add(base.nodeName);
    return still;
  }

  /** Resolves with what went wrong. */
  async #deleteAll(pods: readonly VPod[]): Promise<unknown[]> {
    if (pods.length === 0) return [];
    const deleted = await Promise.allSettled(pods.map((pod) => this.#deletePod(pod)));
    return deleted.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
  }

  /** The base has confirmed that nothing of the Pod is left. */
  async #deletePod(pod: VPod): Promise<void> {
    const { api, informer, leadership } = this.#options;
    this.#memory.noteDeletion(pod);
    const deletionFailed = pod.hasFinalizers ? undefined : informer.expectDeletion(pod);
    try {
      await api.forceDeletePod(pod.namespace, pod.name, pod.uid, () => leadership.isHeld(pod.nodeName ?? ''));
      this.#options.metrics.podDeletes.inc({ reason: 'Uninstalled' });
      // It may stay without another event, and what it held is free.
      if (pod.hasFinalizers && pod.nodeName !== undefined) this.#queue.add(pod.nodeName);
    } catch (error) {
      deletionFailed?.();
      this.#memory.deletionFailed(pod);
      // Gone already, or another Pod has the name by now.
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  }
}

function readyOf(node: PodNode | undefined): ConditionStatus | undefined {
  return node?.conditions.find(({ type }) => type === 'Ready')?.status;
}

/** The list of the base has no module of the Pod. */
function hasNothingOf({ ledger }: LedBase, pod: VPod): boolean {
  return ledger.isKnown && moduleSpecsOf(pod).every((spec) => isGone(ledger.get(moduleKeyOf(spec))));
}

/** Whether a base that has started again has their modules is not known before its list. */
function asksForStranded({ ledger }: LedBase, { stranded }: Plan, now: number): boolean {
  return stranded.wakeAt !== undefined && !ledger.isKnown && ledger.askedAt + ASK_AGAIN_MS <= now;
}

/** All of them, where nothing has to be written or taken off the base before: they wait for no API server. */
function firstInstallsOf(commands: readonly PlannedCommand[]): readonly PlannedCommand[] {
  const isFirst = (planned: PlannedCommand): boolean =>
    planned.command === 'install' && !isReplacing(planned.spec) && planned.pod.status.containerStatuses.length === 0;
  return commands.every(isFirst) ? commands : [];
}

/**
 * When the first command is slow that the plan did not see slow yet, so that its Pod shows it. What could not be sent is
 * planned again then.
 */
function slowAtOf({ ledger }: LedBase, { commands }: BasePlan, plannedAt: number): number {
  const sentAt = commands.length > 0 ? [plannedAt] : [];
  if (ledger.inFlightCount > 0) {
    for (const { inFlight } of ledger.records()) if (inFlight !== undefined) sentAt.push(inFlight.sentAt);
  }
  return Math.min(...sentAt.map((time) => time + SLOW_INSTALL_MS).filter((time) => time > plannedAt));
}

function identityOf(planned: PlannedCommand): string {
  if (planned.command === 'install') return `install ${moduleKeyOf(planned.spec)} ${fingerprintOf(planned.spec)}`;
  return `${planned.command} ${moduleKeyOf(planned.id)}`;
}
