import { createTunnels } from '../tunnels/index.ts';
import { systemClock } from './clock.ts';
import type { Config } from './config/config.ts';
import { createInformers } from './informers.ts';
import type { ClusterAccess } from './kube/cluster-access.ts';
import { ApiEventRecorder, type EventRecorder } from './kube/event-recorder.ts';
import type { SharedInformer } from './kube/informer.ts';
import type { CachedObject } from './kube/informer-types.ts';
import { createKubeClient } from './kube/kube-client.ts';
import { createKubeLanes, type KubeLanes } from './kube/kube-lanes.ts';
import { nodeNameOf } from './labels.ts';
import { NodeLeaseController } from './lease/node-lease-controller.ts';
import type { Logger } from './logger.ts';
import { Manager, type Runnable } from './manager.ts';
import type { Metrics } from './metrics.ts';
import { ownerOfNamespaces } from './pod/name-owners.ts';
import { PodController } from './pod/pod-controller.ts';
import { createReplica, type Replica } from './replica.ts';
import { HttpServer, metricsApp, probesApp } from './server/http-server.ts';
import { Tunnels } from './tunnel/tunnels.ts';
import { BaseCandidates } from './vnode/base-candidates.ts';
import { BaseInquirer } from './vnode/base-inquirer.ts';
import { LivenessController } from './vnode/liveness-controller.ts';
import { NodeController } from './vnode/node-controller.ts';
import { VNodeController } from './vnode/vnode-controller.ts';
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
export async function createController(parts: ControllerParts): Promise<Manager> {
  const { config, access, logger, metrics, version } = parts;
  const clock = systemClock;
  const shared = { clock, logger, metrics };
  const { env, clientId, workers, isCluster } = config;
  const lanes = createKubeLanes({ access, clock, metrics, leasesLateMs: () => leases.renewalWaitMs });
  const api = createKubeClient(lanes);
  const { nodes, pods, leases: leaseInformer } = createInformers(config, lanes, shared);
  const recorder = new ApiEventRecorder({
    client: api,
    traffic: lanes.traffic,
    reportingInstance: clientId,
    ...shared,
  });

  const replica = createReplica({ config, lanes, informer: leaseInformer, tunnels: () => tunnels.all(), ...shared });
  const store = new VNodeStore();
  const isLed = (nodeName: string): boolean => leases.isHeld(nodeName);
  const isFollowed = (nodeName: string): boolean => leases.isFollowed(nodeName);
  // A base that has to answer before it gets a Node has no leader: each replica that hears it, and is a member, asks.
  const isOurs = (identity: string): boolean =>
    !isFollowed(nodeNameOf(identity)) || (leases.isMember() && store.senderOf(identity) === 'Asked');
  const tunnels = new Tunnels(
    await createTunnels({
      env,
      clientId,
      version,
      mayCommand: isOurs,
      hears: isOurs,
      senderOf: (identity) => store.senderOf(identity),
      mqtt: mqttSettingsOf(config),
      http: httpSettingsOf(config, replica),
      ...shared,
    }),
  );
  const inquirer = new BaseInquirer({ tunnels, isFollowed, clock, logger });
  const candidates = new BaseCandidates({ tunnels, clock, logger });

  const tunnelOf = (nodeName: string) => store.get(nodeName)?.tunnel;
  const onLeaderChange = (nodeName: string): void => {
    nodeController.onLeaderChange(nodeName);
    vnodeController.onLeaderChange(nodeName);
  };
  const leases = new NodeLeaseController({
    api,
    informer: leaseInformer,
    membership: replica.membership,
    env,
    holder: clientId,
    isCluster,
    maxLevel: config.cluster?.maxLevel ?? 1,
    nodeUidOf: (nodeName) => nodeController.uidOf(nodeName),
    tunnelOf,
    isWanted: (nodeName) => vnodeController.isHeard(nodeName) || nodeController.uidOf(nodeName) !== undefined,
    onHeld: (nodeName) => {
      if (isCluster) return onLeaderChange(nodeName);
      enqueueNode(nodeName);
      enqueuePods(nodeName);
    },
    onLost: onLeaderChange,
    ...shared,
  });
  replica.connect(leases);
  // Two replicas that see the same would tell it twice.
  const nodeRecorder: EventRecorder = {
    event: (about, ...what) => {
      if (!isFollowed(about.name)) recorder.event(about, ...what);
    },
  };
  const nodeController = new NodeController({
    api,
    informer: nodes,
    podInformer: pods,
    store,
    leases,
    recorder,
    traffic: lanes.traffic,
    env,
    version,
    workers,
    ...shared,
  });
  const podController = new PodController({
    api,
    informer: pods,
    nodeInformer: nodes,
    baseOf: (nodeName) => vnodeController.managedBase(nodeName),
    isLed,
    env,
    isInUse: (nodeName) => store.get(nodeName) !== undefined || nodes.get(nodeName) !== undefined,
    tunnels,
    recorder,
    workers,
    unknownModulePolicy: config.unknownModulePolicy,
    ownerOf: ownerOfNamespaces(config.sharedNamespaces),
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
    candidates,
    recorder: nodeRecorder,
    isLeaving: () => replica.isLeaving(),
    onLinkChange: () => replica.announce(),
    enqueueNode,
    enqueuePods,
    ledger: { installDeadlineMs, uninstallDeadlineMs, backoff: MODULE_BACKOFF },
    newBases: config.newBases,
    ...shared,
  });
  const liveness = new LivenessController({
    store,
    tunnels,
    inquirer,
    candidates,
    isFollowed,
    enqueueNode,
    enqueuePods,
    onSweep: () => vnodeController.sweep(),
    ...shared,
  });
  const handOver = {
    leases,
    tunnelOf,
    isBusy: (nodeName: string) =>
      (store.get(nodeName)?.ledger.inFlightCount ?? 0) > 0 ||
      nodeController.isWorkingOn(nodeName) ||
      podController.isWorkingOn(nodeName),
  };

  const informers = [nodes, pods, leaseInformer];
  const isReady = () => ({
    informers: informers.every((informer) => informer.hasSynced()),
    ...replica.readiness(),
    tunnel: tunnels.isAnyUp(),
  });
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
      replica.first(),
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
      // What ends first: all that leads is still there while it is given away.
      replica.last(handOver),
    ],
  });
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

function httpSettingsOf(config: Config, replica: Replica): Parameters<typeof createTunnels>[0]['http'] {
  const { http, installDeadlineMs, uninstallDeadlineMs } = config;
  return http && { ...http, members: memberLinksOf(config, replica), installDeadlineMs, uninstallDeadlineMs };
}

function memberLinksOf({ env, clientId, cluster }: Config, replica: Replica) {
  const keys = cluster?.memberKeys;
  if (keys === undefined) return undefined;
  const self = { id: clientId, boot: replica.boot };
  return { env, keys, self, peers: () => replica.peers(), isFenced: () => !replica.membership.isValid() };
}
