import type { Clock } from '../clock.ts';
import { ControllerError, messageOf } from '../errors.ts';
import { isConflict, isInvalidUid, isNotFound } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/client.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import { type Informer, objectKey } from '../kube/informer-types.ts';
import { secondsTime } from '../kube/micro-time.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from '../metrics.ts';
import { SEND_AGAIN_MS } from '../module/module-ledger.ts';
import { fingerprintOf } from '../module/module-record.ts';
import { WorkQueue } from '../queue/work-queue.ts';
import { moduleKeyOf } from '../tunnel/module.ts';
import type { Tunnels } from '../tunnel/tunnels.ts';
import { type BasePlan, type PlannedCommand, planBase } from './base-plan.ts';
import type { ManagedBase } from './managed-base.ts';
import type { ContainerView } from './module-view.ts';
import { podEventsOf } from './pod-events.ts';
import { computePodStatus, SLOW_INSTALL_MS } from './pod-status.ts';
import { podStatusPatchOf } from './pod-status-patch.ts';
import type { VPod, VPodStatus } from './vpod.ts';

export interface PodControllerOptions {
  readonly api: KubeClient;
  readonly informer: Informer<VPod>;
  /** The base behind a Node that this process leads; undefined = not ours to touch. */
  readonly baseOf: (nodeName: string) => ManagedBase | undefined;
  readonly tunnels: Tunnels;
  readonly recorder: EventRecorder;
  readonly workers: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/**
 * Brings the Pods of a base and its modules together. One sync looks at one whole base, since Pods share modules
 * and their statuses have an order (V34); what to do is decided by `planBase`, here it is done.
 */
export class PodController {
  readonly #options: PodControllerOptions;
  readonly #queue: WorkQueue;
  /** UIDs that we deleted and that the watch still shows. Emptied by the DELETED event. */
  readonly #deleted = new Set<string>();

  constructor(options: PodControllerOptions) {
    this.#options = options;
    const { workers, clock, logger, metrics, informer } = options;
    this.#queue = new WorkQueue({ name: 'pods', workers, sync: (key) => this.#sync(key), clock, logger, metrics });
    informer.addHandler({
      onAdd: (pod) => this.#onPod(pod),
      onUpdate: (_old, pod) => this.#onPod(pod),
      onDelete: (pod) => this.#onPodDeleted(pod),
    });
  }

  enqueue(nodeName: string): void {
    this.#queue.add(nodeName);
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#queue.run(signal);
  }

  #onPod(pod: VPod): void {
    if (pod.nodeName) this.#queue.add(pod.nodeName);
  }

  #onPodDeleted(pod: VPod): void {
    const isOurs = this.#deleted.delete(pod.uid);
    if (pod.nodeName === undefined) return;
    // Force, grace 0, or a deletion we slept through: the event is all there is to remember the modules by.
    if (!isOurs) this.#options.baseOf(pod.nodeName)?.oweRemoval(pod);
    this.#queue.add(pod.nodeName);
  }

  async #sync(nodeName: string): Promise<void> {
    const base = this.#options.baseOf(nodeName);
    if (base === undefined) return;
    const { clock } = this.#options;
    for (const end of base.ledger.expire(clock.now())) base.onOperationEnd(end);
    const plan = this.#plan(base);
    // What ended is written before it is started again, so that no restart goes uncounted (a kill may come between).
    const { writes, errors } = await this.#writeStatuses(base, plan);
    const commands = writes === 0 ? plan.commands : this.#stillWanted(base, plan.commands);
    for (const command of commands) this.#send(base, command);
    for (const pod of plan.finished) await this.#deletePod(pod).catch((error: unknown) => errors.push(error));
    for (const [key, debt] of plan.settledDebts) if (base.debts.get(key) === debt) base.debts.delete(key);
    base.ledger.forgetUnless(plan.isWanted);
    if (plan.askList && base.isReachable) base.askList();
    if (plan.wakeAt !== undefined) this.#queue.addAfter(nodeName, plan.wakeAt - clock.now());
    // The plan was made before these were sent: what is slow is seen, and shown, when it is made again.
    if (plan.commands.length > 0) this.#queue.addAfter(nodeName, SLOW_INSTALL_MS);
    if (errors.length > 0) throw errors[0];
  }

  #plan(base: ManagedBase): BasePlan {
    const { clock, informer } = this.#options;
    const pods = informer.byIndex('node', base.nodeName).filter((pod) => !this.#deleted.has(pod.uid));
    return planBase({ pods, debts: base.debts, ledger: base.ledger, now: clock.now() });
  }

  /** Much may have come while statuses were written: only what a fresh plan has too is sent, the rest next time. */
  #stillWanted(base: ManagedBase, commands: readonly PlannedCommand[]): PlannedCommand[] {
    const fresh = this.#plan(base).commands.map(identityOf);
    if (fresh.length > 0) this.#queue.add(base.nodeName);
    return commands.filter((command) => fresh.includes(identityOf(command)));
  }

  /** Oldest Pod first, one after the other: of two Pods with one module the old one is not ready first (V34). */
  async #writeStatuses(base: ManagedBase, plan: BasePlan): Promise<{ writes: number; errors: unknown[] }> {
    const facts = base.facts();
    const { clock, recorder } = this.#options;
    const times = { now: clock.now(), nowText: secondsTime(clock.wallTime()) };
    const changes: [VPod, VPodStatus, readonly ContainerView[]][] = [];
    for (const [pod, views] of plan.views) {
      const next = computePodStatus({ pod, views, base: facts, ...times });
      if (next !== pod.status) changes.push([pod, next, views]);
    }
    for (const [pod, message] of plan.failedKills) {
      if (pod.status.reason === 'FailedKillPod' && pod.status.message === message) continue;
      changes.push([pod, { ...pod.status, reason: 'FailedKillPod', message }, []]);
      recorder.event(podRef(pod), 'Warning', 'FailedKillPod', message);
    }
    const errors: unknown[] = [];
    // A Pod that cannot be written does not keep the others of its base from it.
    for (const change of changes) await this.#writeStatus(...change).catch((error: unknown) => errors.push(error));
    return { writes: changes.length, errors };
  }

  async #writeStatus(pod: VPod, next: VPodStatus, views: readonly ContainerView[]): Promise<void> {
    const { api, informer, metrics, recorder } = this.#options;
    try {
      const answer = await api.patchPodStatus(pod.namespace, pod.name, podStatusPatchOf(pod, next));
      informer.upsert(answer);
      metrics.podStatusWrites.inc({ result: 'ok' });
    } catch (error) {
      metrics.podStatusWrites.inc({ result: 'error' });
      // Gone, or another Pod by now: the watch tells.
      if (isNotFound(error) || isInvalidUid(error)) return;
      throw error;
    }
    for (const { type, reason, message } of podEventsOf(pod, next, views)) {
      recorder.event(podRef(pod), type, reason, message);
    }
  }

  #send(base: ManagedBase, planned: PlannedCommand): void {
    const { clock, logger, tunnels, recorder } = this.#options;
    if (!base.isReachable || !tunnels.has(base.tunnel)) return;
    const tunnel = tunnels.get(base.tunnel);
    if (!tunnel.isUp()) return;
    const id = planned.command === 'install' ? planned.spec : planned.id;
    const module = moduleKeyOf(id);
    const pod = planned.pod && objectKey(planned.pod);
    logger.info({ node: base.nodeName, module, pod }, `${planned.command} sent`);
    if (planned.command === 'install') base.ledger.installSent(planned.spec, clock.now());
    else base.ledger.uninstallSent(planned.id, clock.now());
    if (planned.pod) {
      const [reason, verb] = planned.command === 'install' ? ['Pulling', 'Installing'] : ['Killing', 'Uninstalling'];
      recorder.event(podRef(planned.pod), 'Normal', reason, `${verb} module ${module}`);
    }
    const sent =
      planned.command === 'install'
        ? tunnel.installModule(base.address, planned.spec)
        : tunnel.uninstallModule(base.address, planned.id);
    sent.catch((error: unknown) => {
      logger.warn({ node: base.nodeName, module, reason: messageOf(error) }, 'command could not be sent');
      const mayHaveArrived = !(error instanceof ControllerError && error.code === 'Tunnel.NotConnected');
      base.ledger.sendFailed(id, mayHaveArrived, clock.now());
      this.#queue.addAfter(base.nodeName, SEND_AGAIN_MS);
    });
  }

  /** The base has confirmed that nothing of the Pod is left. */
  async #deletePod(pod: VPod): Promise<void> {
    this.#deleted.add(pod.uid);
    try {
      await this.#options.api.forceDeletePod(pod.namespace, pod.name, pod.uid);
      this.#options.metrics.podDeletes.inc({ reason: 'Uninstalled' });
    } catch (error) {
      this.#deleted.delete(pod.uid);
      // Gone before us, or another Pod has the name by now.
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  }
}

function identityOf(planned: PlannedCommand): string {
  if (planned.command === 'install') return `install ${moduleKeyOf(planned.spec)} ${fingerprintOf(planned.spec)}`;
  return `uninstall ${moduleKeyOf(planned.id)}`;
}

function podRef(pod: VPod) {
  return { apiVersion: 'v1' as const, kind: 'Pod' as const, namespace: pod.namespace, name: pod.name, uid: pod.uid };
}
