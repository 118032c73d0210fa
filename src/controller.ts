import { createTunnels } from '../tunnels/index.ts';
import { systemClock } from './clock.ts';
import type { Config } from './config/config.ts';
import type { ClusterAccess } from './kube/cluster-access.ts';
import { ApiEventRecorder } from './kube/event-recorder.ts';
import { SharedInformer } from './kube/informer.ts';
import type { CachedObject } from './kube/informer-types.ts';
import { createKubeClient } from './kube/kube-client.ts';
import { createKubeLanes, type KubeLanes } from './kube/kube-lanes.ts';
import type { KubeObject } from './kube/objects.ts';
import { COMPONENT, COMPONENT_LABEL, ENV_LABEL, NODE_LEASE_NAMESPACE } from './labels.ts';
import { projectLease } from './lease/lease.ts';
import { NodeLeaseController } from './lease/node-lease-controller.ts';
import type { Logger } from './logger.ts';
import { Manager, type Runnable } from './manager.ts';
import type { Metrics } from './metrics.ts';
import { PodController } from './pod/pod-controller.ts';
import { projectPod, type VPod } from './pod/vpod.ts';
import { HttpServer, metricsApp, probesApp } from './server/http-server.ts';
import { Tunnels } from './tunnel/tunnels.ts';
import { BaseInquirer } from './vnode/base-inquirer.ts';
import { LivenessController } from './vnode/liveness-controller.ts';
import { NodeController } from './vnode/node-controller.ts';
import { VNodeController } from './vnode/vnode-controller.ts';
import { projectNode } from './vnode/vnode-object.ts';
import { VNodeStore } from './vnode/vnode-store.ts';

export interface ControllerParts {
  readonly config: Config;
  readonly access: ClusterAccess;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Of this program. */
  readonly version: string;
}

/** How long the parts have to end after SIGTERM, within a Pod's usual 30 s. */
const STOP_GRACE_MS = 10_000;
/** As a kubelet's container back-off: 10 s, doubled to 5 min. */
const MODULE_BACKOFF = { baseMs: 10_000, maxMs: 300_000 };

/** Builds the whole controller, in the order in which data flows; nothing runs before `Manager.run`. */
export function createController({ config, access, logger, metrics, version }: ControllerParts): Manager {
  const clock = systemClock;
  const shared = { clock, logger, metrics };
  const { env, clientId, workers, isCluster } = config;
  const lanes = createKubeLanes({ access, clock, metrics });
  const api = createKubeClient(lanes);
  const { nodes, pods, leases: leaseInformer } = createInformers(env, lanes, shared);
  const recorder = new ApiEventRecorder({ client: api, reportingInstance: clientId, ...shared });

  const settings = { mqtt: mqttSettingsOf(config), http: httpSettingsOf(config) };
  const tunnels = new Tunnels(createTunnels({ env, clientId, ...shared, ...settings }));
  const store = new VNodeStore();
  const inquirer = new BaseInquirer({ tunnels, clock, logger });

  const leases = new NodeLeaseController({
    api,
    informer: leaseInformer,
    env,
    holder: clientId,
    isCluster,
    nodeUidOf: (nodeName) => nodeController.uidOf(nodeName),
    onHeld: (nodeName) => {
      enqueueNode(nodeName);
      enqueuePods(nodeName);
    },
    ...shared,
  });
  const nodeController = new NodeController({
    api,
    informer: nodes,
    podInformer: pods,
    store,
    leases,
    recorder,
    env,
    isCluster,
    version,
    workers,
    ...shared,
  });
  const podController = new PodController({
    api,
    informer: pods,
    baseOf: (nodeName) => vnodeController.managedBase(nodeName),
    tunnels,
    recorder,
    workers,
    unknownModulePolicy: config.unknownModulePolicy,
    ...shared,
  });
  const enqueueNode = (nodeName: string): void => nodeController.enqueue(nodeName);
  const enqueuePods = (nodeName: string): void => podController.enqueue(nodeName);
  const { installDeadlineMs, uninstallDeadlineMs } = config;
  const vnodeController = new VNodeController({
    store,
    nodeInformer: nodes,
    leases,
    tunnels,
    inquirer,
    recorder,
    enqueueNode,
    enqueuePods,
    ledger: { installDeadlineMs, uninstallDeadlineMs, backoff: MODULE_BACKOFF },
    ...shared,
  });
  const liveness = new LivenessController({ store, tunnels, inquirer, enqueueNode, enqueuePods, ...shared });

  const informers = [nodes, pods, leaseInformer];
  const isReady = () => ({ informers: informers.every((informer) => informer.hasSynced()), tunnel: tunnels.isAnyUp() });
  return new Manager({
    clock,
    logger,
    graceMs: STOP_GRACE_MS,
    groups: [
      [
        new HttpServer({ name: 'probes', port: config.healthProbePort, app: probesApp(isReady), logger }),
        new HttpServer({ name: 'metrics', port: config.metricsPort, app: metricsApp(metrics), logger }),
        { name: 'cluster access', run: (signal) => access.run(signal) },
      ],
      [closerOf(lanes)],
      // Nothing is decided before the caches are whole: a Pod that is not seen yet is not a Pod that is gone.
      [runnable('Node informer', nodes), runnable('Pod informer', pods), runnable('Lease informer', leaseInformer)],
      [
        { name: 'events', run: (signal) => recorder.run(signal) },
        { name: 'leases', run: (signal) => leases.run(signal) },
        { name: 'nodes', run: (signal) => nodeController.run(signal) },
        { name: 'pods', run: (signal) => podController.run(signal) },
      ],
      [...tunnels.all()].map((tunnel) => ({
        name: tunnel.name,
        run: (signal: AbortSignal) => tunnel.run(vnodeController, signal),
      })),
      [{ name: 'liveness', run: (signal) => liveness.run(signal) }],
    ],
  });
}

type Shared = Pick<ControllerParts, 'logger' | 'metrics'> & { clock: typeof systemClock };

/** One watch a kind for all bases (V9). */
function createInformers(env: string, lanes: KubeLanes, shared: Shared) {
  const create = <T extends CachedObject>(
    kind: string,
    path: string,
    labelSelector: string,
    project: (raw: KubeObject) => T,
  ) => ({ kind, path, labelSelector, project, lane: lanes.watches, ...shared });
  const ofEnv = (component: string): string => `${COMPONENT_LABEL}=${component},${ENV_LABEL}=${env}`;
  return {
    nodes: new SharedInformer(create('Node', '/api/v1/nodes', ofEnv(COMPONENT.vnode), projectNode)),
    // V10: Pods carry no env; they are ours when they are bound to a Node of ours.
    pods: new SharedInformer({
      ...create('Pod', '/api/v1/pods', `${COMPONENT_LABEL}=${COMPONENT.module}`, projectPod),
      indexers: { node: (pod: VPod) => pod.nodeName },
    }),
    leases: new SharedInformer(
      create(
        'Lease',
        `/apis/coordination.k8s.io/v1/namespaces/${NODE_LEASE_NAMESPACE}/leases`,
        ofEnv(COMPONENT.lease),
        projectLease,
      ),
    ),
  };
}

function runnable(name: string, informer: Pick<SharedInformer<CachedObject>, 'run' | 'whenSynced'>): Runnable {
  return { name, run: (signal) => informer.run(signal), whenReady: (signal) => informer.whenSynced(signal) };
}

/** The lanes are closed when all that uses them has stopped. */
function closerOf(lanes: KubeLanes): Runnable {
  return {
    name: 'connections',
    run: (signal) =>
      new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => lanes.close().then(resolve, reject), { once: true });
      }),
  };
}

function mqttSettingsOf({ mqtt }: Config): Parameters<typeof createTunnels>[0]['mqtt'] {
  if (mqtt === undefined) return undefined;
  const { host, port, username, password, clientPrefix, caPath, clientCertPath, clientKeyPath } = mqtt;
  const isTls = caPath !== undefined || clientCertPath !== undefined;
  const url = `${isTls ? 'mqtts' : 'mqtt'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const tls = isTls ? { caPath, certPath: clientCertPath, keyPath: clientKeyPath } : undefined;
  return { url, username, password, clientPrefix, tls };
}

function httpSettingsOf({ http, installDeadlineMs, uninstallDeadlineMs }: Config) {
  return http && { ...http, installDeadlineMs, uninstallDeadlineMs };
}
