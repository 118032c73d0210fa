import type { Clock } from '../clock.ts';
import type { CachedNode } from '../kinds/vnode-object.ts';
import type { KubeClient } from '../kube/client.ts';
import type { EventRecorder } from '../kube/events/event-recorder.ts';
import type { Traffic } from '../kube/transport/concurrency-limit.ts';
import type { Informer } from '../kube/watch/informer-types.ts';
import { nodeNameOf } from '../labels.ts';
import type { Leadership } from '../leadership.ts';
import type { CachedLease } from '../lease/lease.ts';
import type { Membership } from '../lease/membership.ts';
import { NodeLeaseController } from '../lease/node-lease-controller.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from '../metrics.ts';
import type { LedgerOptions } from '../module/module-ledger.ts';
import type { OwnerOf } from '../pod/name-owners.ts';
import { PodController } from '../pod/pod-controller.ts';
import type { UnknownModulePolicy } from '../pod/unknown-modules.ts';
import type { VPod } from '../pod/vpod.ts';
import type { TunnelName } from '../tunnel/tunnel.ts';
import type { Tunnels } from '../tunnel/tunnels.ts';
import { BaseCandidates } from '../vnode/base-candidates.ts';
import { BaseInquirer } from '../vnode/base-inquirer.ts';
import { KnownNodes } from '../vnode/known-nodes.ts';
import { LivenessController } from '../vnode/liveness-controller.ts';
import type { NewBaseLimits } from '../vnode/new-bases.ts';
import { NodeController } from '../vnode/node-controller.ts';
import { type VNode, VNodeStore } from '../vnode/vnode.ts';
import { VNodeController } from '../vnode/vnode-controller.ts';

interface Shared {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

export interface KnownBasesOptions extends Shared {
  readonly api: KubeClient;
  readonly informers: CoreInformers;
  readonly membership: Membership;
  readonly env: string;
  /** The holderIdentity of this replica. */
  readonly holder: string;
  readonly isCluster: boolean;
  readonly maxLevel: number;
  readonly renewIntervalMs: number;
  /** The cluster went back to an older state. */
  readonly onRolledBack: () => void;
}

export interface CoreInformers {
  readonly nodes: Informer<CachedNode>;
  readonly pods: Informer<VPod>;
  readonly leases: Informer<CachedLease>;
}

/** The bases that this replica knows, and the Leases that decide which of them it leads. */
export interface KnownBases {
  readonly options: KnownBasesOptions;
  readonly store: VNodeStore;
  readonly known: KnownNodes;
  readonly leases: NodeLeaseController;
  /** Whether this replica speaks to a base and reads its answers. */
  readonly isOurs: (identity: string) => boolean;
}

/** Comes before the tunnels, which ask it before each command. */
export function createKnownBases(options: KnownBasesOptions): KnownBases {
  const { informers, ...rest } = options;
  const store = new VNodeStore();
  const known = new KnownNodes(informers.nodes);
  const leases = new NodeLeaseController({
    ...rest,
    informer: informers.leases,
    nodeUidOf: (nodeName) => known.get(nodeName)?.uid,
    tunnelOf: (nodeName) => store.get(nodeName)?.tunnel,
    isWanted: (nodeName) => store.isHeard(nodeName) || known.get(nodeName) !== undefined,
  });
  return {
    options,
    store,
    known,
    leases,
    // A base that has to answer before it gets a Node has no leader: every member that hears it asks.
    isOurs: (identity) =>
      !leases.isFollowed(nodeNameOf(identity)) || (leases.isMember() && store.senderOf(identity) === 'Asked'),
  };
}

export interface CoreOptions {
  readonly tunnels: Tunnels;
  readonly recorder: EventRecorder;
  readonly traffic: Pick<Traffic, 'isCalm'>;
  /** What Nodes show as their version; asked for each Node. */
  readonly kubeletVersion: () => string;
  readonly workers: number;
  readonly ledger: LedgerOptions;
  readonly newBases: NewBaseLimits;
  readonly unknownModulePolicy: UnknownModulePolicy;
  /** `preStop.sleep` of containers that have none, in s. */
  readonly preStopSleepSeconds: number;
  readonly namesBasePods: boolean;
  readonly ownerOf: OwnerOf;
  /** The process is about to end: it finishes running work and starts nothing. */
  readonly isLeaving: () => boolean;
  /** A tunnel came up or went down. `up`: the tunnels that are up now. */
  readonly onLinkChange: (up: readonly TunnelName[]) => void;
}

/** The controllers of bases, Nodes and Pods. Nothing runs yet. */
export interface Core {
  readonly nodes: NodeController;
  readonly pods: PodController;
  readonly vnodes: VNodeController;
  readonly liveness: LivenessController;
  readonly candidates: BaseCandidates;
  /** Whether a command is under way at the base of a Node, or a write about it to the API server. */
  isBusy(nodeName: string): boolean;
}

/** Builds the controllers in the order in which data flows down: Nodes, Pods, bases, their liveness. */
export function createCore(bases: KnownBases, options: CoreOptions): Core {
  const { store, known, leases } = bases;
  const leadership: Leadership = leases;
  const { api, informers, env, isCluster, clock, logger, metrics } = bases.options;
  const { tunnels, recorder, traffic, kubeletVersion, workers, ledger, newBases, unknownModulePolicy, ownerOf } =
    options;
  const shared = { clock, logger, metrics };
  // Two replicas that see the same would report it twice.
  const leadRecorder: EventRecorder = {
    event: (subject, ...what) => {
      if (!leadership.isFollowed(subject.name)) recorder.event(subject, ...what);
    },
  };
  const inquirer = new BaseInquirer({ tunnels, leadership, clock, logger });
  const candidates = new BaseCandidates({ tunnels, clock, logger });
  const { isLeaving, onLinkChange } = options;
  const nodes = new NodeController({
    api,
    informer: informers.nodes,
    known,
    podInformer: informers.pods,
    store,
    leadership,
    leases,
    recorder,
    traffic,
    env,
    kubeletVersion,
    namesBasePods: options.namesBasePods,
    workers,
    ...shared,
  });
  const baseOf = (nodeName: string): VNode | undefined => {
    const vnode = store.get(nodeName);
    // A dead one is removed together with its Pods.
    return vnode?.life.liveness === 'Dead' ? undefined : vnode;
  };
  const pods = new PodController({
    api,
    informer: informers.pods,
    nodeInformer: informers.nodes,
    leadership,
    baseOf,
    askList: (nodeName) => {
      const vnode = store.get(nodeName);
      if (vnode) inquirer.askList(vnode);
    },
    isLeaving,
    isInUse: (nodeName) => store.get(nodeName) !== undefined || informers.nodes.get(nodeName) !== undefined,
    tunnels,
    recorder,
    env,
    workers,
    unknownModulePolicy,
    preStopSleepSeconds: options.preStopSleepSeconds,
    ownerOf,
    ...shared,
  });
  const enqueueNode = (nodeName: string): void => nodes.enqueue(nodeName);
  const enqueuePods = (nodeName: string): void => pods.enqueue(nodeName);
  const vnodes = new VNodeController({
    store,
    nodeInformer: informers.nodes,
    leadership,
    leases,
    tunnels,
    inquirer,
    candidates,
    recorder: leadRecorder,
    onLinkChange,
    enqueueNode,
    enqueuePods,
    ledger,
    newBases,
    ...shared,
  });
  const onSweep = (): void => vnodes.sweep();
  const asked = { store, tunnels, inquirer, candidates, leadership };
  const liveness = new LivenessController({ ...asked, enqueueNode, enqueuePods, traffic, onSweep, ...shared });
  const onLeaderChange = (nodeName: string): void => {
    nodes.onLeaderChange(nodeName);
    vnodes.onLeaderChange(nodeName);
  };
  leases.addListener({
    onHeld: (nodeName) => {
      if (isCluster) return onLeaderChange(nodeName);
      enqueueNode(nodeName);
      enqueuePods(nodeName);
    },
    onLost: onLeaderChange,
  });
  return {
    nodes,
    pods,
    vnodes,
    liveness,
    candidates,
    isBusy: (nodeName) =>
      (store.get(nodeName)?.ledger.inFlightCount ?? 0) > 0 || nodes.isWorkingOn(nodeName) || pods.isWorkingOn(nodeName),
  };
}
