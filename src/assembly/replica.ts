import { randomUUID } from 'node:crypto';
import type { Clock } from '../clock.ts';
import type { ClusterConfig } from '../config/config.ts';
import { createLeaseClient } from '../kube/lease-client.ts';
import type { KubeLanes } from '../kube/transport/kube-lanes.ts';
import type { Informer } from '../kube/watch/informer-types.ts';
import { NODE_LEASE_NAMESPACE } from '../labels.ts';
import { HandOverController, type HandOverControllerOptions } from '../lease/hand-over-controller.ts';
import type { CachedLease } from '../lease/lease.ts';
import { type MemberPeer, peersOf } from '../lease/member.ts';
import { type Membership, type MembershipListener, SoleMembership } from '../lease/membership.ts';
import { MembershipController } from '../lease/membership-controller.ts';
import type { Logger } from '../logger.ts';
import type { Runnable } from '../manager.ts';
import type { Metrics } from '../metrics.ts';

export interface ReplicaOptions {
  readonly config: { readonly env: string; readonly clientId: string; readonly cluster: ClusterConfig | undefined };
  readonly lanes: KubeLanes;
  readonly informer: Informer<CachedLease>;
  /** The cluster went back to an older state. */
  readonly onRolledBack: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

type HandOverParts = Pick<HandOverControllerOptions, 'leases' | 'tunnels' | 'tunnelOf' | 'isBusy'>;

/** This process as one of several, or as the only one. */
export interface Replica {
  readonly membership: Membership;
  /** Nonce of this process in its membership Lease. */
  readonly boot: string;
  /** The other members that stay and take messages. */
  peers(): readonly MemberPeer[];
  /** Publishes which tunnels of this replica are up. */
  announce(tunnelsUp: readonly string[]): void;
  /** It is about to end, and begins nothing new. */
  isLeaving(): boolean;
  /** A readiness check; none where there is nothing to check. */
  readiness(): Readonly<Record<string, boolean>>;
  addListener(listener: MembershipListener): void;
  /** Starts before everything that leads. */
  first(): Runnable[];
  /** Ends before everything that leads, and hands that over. */
  last(parts: HandOverParts): Runnable[];
}

/** A renewal has to fail in time for one more before the fence. */
const MEMBER_TIMEOUT_MS = 1_500;

export function createReplica(options: ReplicaOptions): Replica {
  const { cluster, clientId } = options.config;
  return cluster === undefined ? soleReplica(clientId) : oneOfSeveral(options, cluster);
}

function soleReplica(clientId: string): Replica {
  return {
    membership: new SoleMembership(clientId),
    boot: '',
    peers: () => [],
    announce: () => {},
    isLeaving: () => false,
    readiness: () => ({}),
    addListener: () => {},
    first: () => [],
    last: () => [],
  };
}

function oneOfSeveral(options: ReplicaOptions, cluster: ClusterConfig): Replica {
  const { config, lanes, clock, logger, metrics } = options;
  const { env, clientId: holder } = config;
  const { memberAddress, maxLevel, rebalance } = cluster;
  const nonce = randomUUID();
  const membership = new MembershipController({
    ...options,
    api: createLeaseClient(lanes.members, NODE_LEASE_NAMESPACE, { timeoutMs: MEMBER_TIMEOUT_MS, isOnce: true }),
    env,
    clientId: holder,
    nonce,
    address: memberAddress,
  });
  let isLeaving = false;
  return {
    membership,
    boot: nonce,
    peers: () => peersOf(membership.members(), holder),
    announce: (tunnelsUp) => void membership.announce({ tunnels: tunnelsUp }),
    isLeaving: () => isLeaving,
    readiness: () => ({ membership: membership.isValid() }),
    addListener: (listener) => membership.addListener(listener),
    first: () => [
      {
        name: 'membership',
        run: (signal) => membership.run(signal),
        whenReady: (signal) => membership.whenJoined(signal),
      },
    ],
    last: (parts) => {
      const handOver = new HandOverController({
        ...parts,
        membership,
        holder,
        maxLevel,
        isRebalancing: rebalance,
        onLeaving: () => {
          isLeaving = true;
        },
        clock,
        logger,
        metrics,
      });
      return [{ name: 'hand-over', run: (signal) => handOver.run(signal) }];
    },
  };
}
