import type { Clock } from '../clock.ts';
import type { Config } from '../config/config.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Crd } from '../kube/crds.ts';
import type { EventRecorder } from '../kube/events/event-recorder.ts';
import type { Leader } from '../kube/leader.ts';
import type { Resources } from '../kube/resource.ts';
import type { KubeLanes } from '../kube/transport/kube-lanes.ts';
import type { Logger } from '../logger.ts';
import type { Runnable } from '../manager.ts';
import type { Metrics } from '../metrics.ts';
import type { Informers } from './informers.ts';
import type { Webhooks } from './webhooks.ts';

/** What every controller of a process shares. */
export interface ControllerContext {
  readonly config: Config;
  /** Of this program. */
  readonly version: string;
  readonly lanes: KubeLanes;
  /** The calls of the Virtual Kubelet. */
  readonly api: KubeClient;
  /** Clients of any kind; what they write belongs to `fieldManager`. */
  readonly resourcesOf: (fieldManager: string) => Resources;
  readonly informers: Informers;
  /** Lets one process of several lead; the controller runs it. `name`: of its Lease, in the namespace of this Pod. */
  readonly leaderOf: (name: string) => Leader;
  /** Events about any object. */
  readonly recorder: EventRecorder;
  /** Where a controller registers what it says about requests for its kinds; the controller `admission` asks. */
  readonly webhooks: Webhooks;
  /** To be called when a request shows that the cluster went back to an older state: all informers list again. */
  readonly onRolledBack: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** A controller that is built, and does not run yet. */
export interface BuiltController {
  /** Started in this order when all caches are whole, and stopped in the reverse one. */
  readonly groups: readonly (readonly Runnable[])[];
  /** Readiness checks of `/readyz`, by name. */
  readonly readiness?: () => Readonly<Record<string, boolean>>;
}

/** A group of parts that start together, by the names that the log gives them. */
export function groupOf(parts: Readonly<Record<string, Pick<Runnable, 'run'>>>): Runnable[] {
  return Object.entries(parts).map(([name, part]) => ({ name, run: (signal) => part.run(signal) }));
}

/** One controller, as `CONTROLLERS` names it. */
export interface ControllerModule {
  readonly name: string;
  /** Installed before its informers start. */
  readonly crds?: readonly Crd[];
  /** Asks the context for all that it needs, informers too: what it does not ask for is not watched. */
  build(context: ControllerContext): BuiltController | Promise<BuiltController>;
}
