import { randomUUID } from 'node:crypto';
import { type Clock, sleep, systemClock } from '../clock.ts';
import type { Config } from '../config/config.ts';
import type { ClusterAccess } from '../kube/auth/cluster-access.ts';
import { CRDS, type Crd, installCrd } from '../kube/crds.ts';
import { ApiEventRecorder } from '../kube/events/event-recorder.ts';
import { createKubeClient } from '../kube/kube-client.ts';
import { Leader } from '../kube/leader.ts';
import { createLeaseClient } from '../kube/lease-client.ts';
import { Resources } from '../kube/resource.ts';
import { isRetriable } from '../kube/transport/api-error.ts';
import { createKubeLanes, type KubeLanes } from '../kube/transport/kube-lanes.ts';
import type { Logger } from '../logger.ts';
import { Manager, type Runnable } from '../manager.ts';
import type { Metrics } from '../metrics.ts';
import type { BuiltController, ControllerModule } from '../reconcile/controller-module.ts';
import { Informers } from '../reconcile/informers.ts';
import { Webhooks } from '../reconcile/webhooks.ts';
import { HttpServer, metricsApp, probesApp } from '../server/http-server.ts';
import { heapKeeper, systemHeap } from './heap.ts';

export interface ProcessParts {
  readonly config: Config;
  readonly access: ClusterAccess;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Of this program. */
  readonly version: string;
  /** Those that are on, in the order in which they start. */
  readonly controllers: readonly ControllerModule[];
}

/** How long the parts have to end after SIGTERM, within a Pod's usual 30 s. */
const STOP_GRACE_MS = 10_000;
/** A renewal has to fail in time for another one before the leader's term ends. */
const LEADER_TIMEOUT_MS = 3_000;
const CRD_RETRY_MS = 2_000;
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
  const webhooks = new Webhooks();
  const context = {
    config,
    version,
    lanes,
    api,
    resourcesOf,
    informers,
    leaderOf,
    recorder,
    webhooks,
    onRolledBack,
    ...shared,
  };
  const controllers: BuiltController[] = [];
  for (const module of parts.controllers) {
    controllers.push(await module.build(context));
  }
  const crds = parts.controllers.flatMap((module) => module.crds ?? []);
  const isReady = () =>
    Object.assign({ informers: informers.hasSynced() }, ...controllers.map(({ readiness }) => readiness?.()));
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
      ...(crds.length === 0 ? [] : [[installerOf(crds, resourcesOf(FIELD_MANAGER), shared)]]),
      // Nothing is decided before the caches are whole: a Pod that is not seen yet is not a Pod that is gone.
      informers.runnables(),
      [{ name: 'events', run: (signal) => recorder.run(signal) }],
      ...controllers.flatMap(({ groups }) => groups),
    ],
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

/** Holds up the informers until the CRDs are served. A CRD that cannot be used ends the process. */
function installerOf(
  crds: readonly Crd[],
  resources: Resources,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): Runnable {
  const installed = Promise.withResolvers<void>();
  // Also while nobody waits for it.
  installed.promise.catch(() => {});
  const client = resources.of<Crd>(CRDS);
  const install = async (crd: Crd, signal: AbortSignal): Promise<void> => {
    for (;;) {
      try {
        await installCrd(crd, { client, clock, logger }, signal);
        return;
      } catch (error) {
        if (signal.aborted || !isRetriable(error)) throw error;
        logger.warn({ crd: crd.metadata.name, err: error }, 'CRD not installed, will be tried again');
        await sleep(clock, CRD_RETRY_MS, signal);
      }
    }
  };
  return {
    name: 'CRDs',
    whenReady: () => installed.promise,
    run: async (signal) => {
      try {
        for (const crd of crds) await install(crd, signal);
        installed.resolve();
      } catch (error) {
        installed.reject(error);
        if (!signal.aborted) throw error;
      }
      if (!signal.aborted) await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    },
  };
}
