import { createTunnels } from '../../tunnels/index.ts';
import type { Config } from '../config/config.ts';
import { VNODES } from '../kinds/vnode-object.ts';
import { ServerVersion } from '../kube/server-version.ts';
import { renewalPeriodMsOf } from '../lease/lease.ts';
import { ownerOfNamespaces } from '../pod/name-owners.ts';
import { CONTAINER_BACKOFF } from '../queue/backoff.ts';
import type { BuiltController, ControllerDefinition } from '../reconcile/controller-definition.ts';
import { Tunnels } from '../tunnel/tunnels.ts';
import { kubeletVersionOf } from '../vnode/node-object.ts';
import { createCore, createKnownBases } from './core.ts';
import type { ProcessContext } from './process.ts';
import { createReplica, type Replica } from './replica.ts';
import { VK_ACCESS, VK_EVENTS } from './vk-definition.ts';
import { VNODE_LEASES, VPODS } from './vk-kinds.ts';

/** The multi-tenant Virtual Kubelet: bases become Nodes, modules become Pods. Several replicas share the bases. */
export const VK: ControllerDefinition<ProcessContext> = {
  name: 'vk',
  summary: 'the Virtual Kubelet: bases become Nodes, and Pods on them become modules',
  access: VK_ACCESS,
  events: VK_EVENTS,
  build,
};

async function build(context: ProcessContext): Promise<BuiltController> {
  const { config, lanes, api, recorder, version, clock, logger, metrics } = context;
  const { env, clientId, isCluster } = config;
  const shared = { clock, logger, metrics };
  const informers = {
    nodes: context.informers.get(VNODES),
    pods: context.informers.get(VPODS),
    leases: context.informers.get(VNODE_LEASES),
  };
  const serverVersion = new ServerVersion({ lane: lanes.rest, clock, logger });
  const { onRolledBack } = context;
  const replica = createReplica({ config, lanes, informer: informers.leases, onRolledBack, ...shared });
  const { membership } = replica;
  const maxLevel = config.cluster?.maxLevel ?? 1;
  const bases = createKnownBases({
    api,
    informers,
    membership,
    env,
    holder: clientId,
    isCluster,
    maxLevel,
    renewIntervalMs: renewalPeriodMsOf(config.leaseRenewIntervalMs),
    onRolledBack,
    ...shared,
  });
  const { store, leases, isOurs } = bases;
  lanes.giveWayTo(() => leases.renewalWaitMs);
  const tunnels = new Tunnels(
    await createTunnels({
      env,
      clientId,
      version,
      isOurs,
      senderOf: (identity) => store.senderOf(identity),
      mqtt: mqttSettingsOf(config),
      http: httpSettingsOf(config, replica),
      ...shared,
    }),
  );
  const { installDeadlineMs, uninstallDeadlineMs, preStopSleepSeconds } = config;
  const { workers, newBases, unknownModulePolicy, namesBasePods } = config;
  const core = createCore(bases, {
    tunnels,
    recorder,
    traffic: lanes.traffic,
    kubeletVersion: () => kubeletVersionOf(serverVersion.current, version),
    workers,
    ledger: { installDeadlineMs, uninstallDeadlineMs, backoff: CONTAINER_BACKOFF },
    newBases,
    unknownModulePolicy,
    preStopSleepSeconds,
    namesBasePods,
    ownerOf: ownerOfNamespaces(config.sharedNamespaces),
    isLeaving: () => replica.isLeaving(),
    onLinkChange: (up) => replica.announce(up),
  });
  replica.addListener({
    onProven: () => leases.reconsider(),
    onFenced: () => {
      leases.onFenced();
      for (const tunnel of tunnels.all()) tunnel.abandon();
    },
  });
  const handOver = {
    leases,
    tunnels: () => tunnels.all(),
    tunnelOf: (nodeName: string) => store.get(nodeName)?.tunnel,
    isBusy: (nodeName: string) => core.isBusy(nodeName),
  };
  return {
    readiness: () => ({ ...replica.readiness(), tunnel: tunnels.namesUp().length > 0 }),
    groups: [
      [
        {
          name: 'server version',
          run: (signal) => serverVersion.run(signal),
          whenReady: () => serverVersion.whenReady(),
        },
        ...replica.first(),
      ],
      [
        { name: 'leases', run: (signal) => leases.run(signal) },
        { name: 'nodes', run: (signal) => core.nodes.run(signal) },
        { name: 'pods', run: (signal) => core.pods.run(signal) },
      ],
      [...tunnels.all()].map((tunnel) => ({
        name: tunnel.name,
        run: (signal: AbortSignal) => tunnel.run(core.vnodes, signal),
      })),
      [{ name: 'liveness', run: (signal) => core.liveness.run(signal) }],
      // Ends first: everything that leads is still there while it is handed over.
      replica.last(handOver),
    ],
  };
}

function mqttSettingsOf({ mqtt }: Config): Parameters<typeof createTunnels>[0]['mqtt'] {
  if (mqtt === undefined) return undefined;
  const { host, port, username, password, clientPrefix, caPath, clientCertPath, clientKeyPath, baseNetworks } = mqtt;
  const isTls = caPath !== undefined || clientCertPath !== undefined;
  const url = `${isTls ? 'mqtts' : 'mqtt'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const tls = isTls ? { caPath, certPath: clientCertPath, keyPath: clientKeyPath } : undefined;
  return { url, username, password, clientPrefix, tls, baseNetworks };
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
