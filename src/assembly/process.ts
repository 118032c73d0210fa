import { randomUUID } from 'node:crypto';
import { systemClock } from '../clock.ts';
import type { Config } from '../config/config.ts';
import type { ClusterAccess } from '../kube/auth/cluster-access.ts';
import type { KubeClient } from '../kube/client.ts';
import { ApiEventRecorder } from '../kube/events/event-recorder.ts';
import { createKubeClient } from '../kube/kube-client.ts';
import { Leader } from '../kube/leader.ts';
import { createLeaseClient } from '../kube/lease-client.ts';
import { Resources } from '../kube/resource.ts';
import { createKubeLanes, type KubeLanes } from '../kube/transport/kube-lanes.ts';
import type { Logger } from '../logger.ts';
import { Manager, type Runnable } from '../manager.ts';
import type { Metrics } from '../metrics.ts';
import {
  type BuiltController,
  type ControllerContext,
  type ControllerDefinition,
  groupOf,
} from '../reconcile/controller-definition.ts';
import { Informers } from '../reconcile/informers.ts';
import { type WebhookKey, Webhooks } from '../reconcile/webhooks.ts';
import { feedServer, type ServedApp } from '../server/feed-server.ts';
import { HttpServer, metricsApp, probesApp } from '../server/http-server.ts';
import { ControllerParts, isCollectionOf } from './controller-parts.ts';
import { CrdInstaller } from './crd-installer.ts';
import { heapKeeper, systemHeap } from './heap.ts';

/** What the Virtual Kubelet finds besides. */
export interface ProcessContext extends ControllerContext {
  readonly lanes: KubeLanes;
  /** The calls of the Virtual Kubelet. */
  readonly api: KubeClient;
  /** To be called when a request shows that the cluster went back to an older state: all informers list again. */
  readonly onRolledBack: () => void;
}

export interface ProcessParts {
  readonly config: Config;
  readonly access: ClusterAccess;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Version of this program. */
  readonly version: string;
  /** Those that are on. */
  readonly controllers: readonly ControllerDefinition<ProcessContext>[];
  /** Whether a controller of this program, also one that is off, declares a webhook for such requests. */
  readonly isWebhookKnown?: (key: WebhookKey) => Promise<boolean>;
}

/** How long the parts have to end after SIGTERM, within a Pod's usual 30 s. */
const STOP_GRACE_MS = 10_000;
/** A renewal has to fail in time for another one before the leader's term ends. */
const LEADER_TIMEOUT_MS = 3_000;
/** Owns the CRDs. */
const FIELD_MANAGER = 'module-controller';

/** Builds the process: the way to the API server, the controllers, and the servers of probes and metrics. */
export async function createProcess(parts: ProcessParts): Promise<Manager> {
  const { config, access, logger, metrics, version } = parts;
  const clock = systemClock;
  const shared = { clock, logger, metrics };
  const lanes = createKubeLanes({ access, clock, metrics });
  const api = createKubeClient(lanes);
  const resourcesOf = (fieldManager: string): Resources => new Resources({ lane: lanes.rest, fieldManager });
  const informers = new Informers({ config, lane: lanes.watches, ...shared });
  const recorder = new ApiEventRecorder({
    client: api,
    traffic: lanes.traffic,
    reportingInstance: config.clientId,
    ...shared,
  });
  const { namespace } = config.pod;
  const leaderApi = createLeaseClient(lanes.leases, namespace, { timeoutMs: LEADER_TIMEOUT_MS, isOnce: true });
  const identity = `${config.clientId}_${randomUUID()}`;
  const onRolledBack = (): void => {
    logger.warn('the cluster went back to an older state: everything is listed again');
    informers.wasRolledBack();
  };
  const leaderOf = (name: string): Leader =>
    new Leader({ api: leaderApi, name, namespace, identity, onRolledBack, ...shared });
  const webhooks = new Webhooks(parts.isWebhookKnown);
  const definitions = parts.controllers.flatMap((definition) => (definition.crds ?? []).map(({ crd }) => crd));
  const crds = new CrdInstaller({
    crds: definitions,
    resources: resourcesOf(FIELD_MANAGER),
    ...shared,
  });
  const shares = { config, version, recorder, informers, resourcesOf, leaderOf, webhooks, ...shared };
  const branches: (readonly Runnable[])[][] = [];
  const readiness: (BuiltController['readiness'] | undefined)[] = [];
  const served: ServedApp[] = [];
  for (const definition of parts.controllers) {
    const own = new ControllerParts(definition, shares);
    const built = await definition.build({ ...own.context, lanes, api, onRolledBack });
    branches.push(own.branchOf(built, crds));
    readiness.push(built.readiness);
    served.push(...own.servedOf(built));
  }
  if (config.feed !== undefined) branches.push([await feedServer({ ...config.feed, served, ...shared })]);
  const gateOf = (path: string): Promise<void> | undefined => {
    const crd = definitions.find(({ spec }) => isCollectionOf({ group: spec.group, plural: spec.names.plural }, path));
    return crd && crds.whenInstalled(crd.metadata.name);
  };
  const isReady = (): Record<string, boolean | string> => {
    const failures = informers.failures();
    const caches = informers.hasSynced() || (failures.length > 0 && failures.join('; '));
    return Object.assign({ informers: caches }, crds.readiness(), ...readiness.map((check) => check?.()));
  };
  const heap = systemHeap();
  return new Manager({
    clock,
    logger,
    graceMs: STOP_GRACE_MS,
    groups: [
      [
        new HttpServer({ name: 'probes', port: config.healthProbePort, app: probesApp(isReady), ...shared }),
        new HttpServer({ name: 'metrics', port: config.metricsPort, app: metricsApp(metrics, clock), ...shared }),
        { name: 'cluster access', run: (signal) => access.run(signal) },
        ...(heap === undefined ? [] : [heapKeeper({ heap, traffic: lanes.traffic, clock, logger })]),
      ],
      [closerOf(lanes)],
      groupOf({ CRDs: crds }),
      informers.runnables(gateOf),
      [{ name: 'events', run: (signal) => recorder.run(signal) }],
    ],
    // A controller that waits for a CRD or a cache holds up no other.
    branches,
  });
}

/** Closes the lanes when everything that uses them has stopped. */
function closerOf(lanes: KubeLanes): Runnable {
  return {
    name: 'connections',
    run: (signal) =>
      new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => lanes.close().then(resolve, reject), { once: true });
      }),
  };
}
