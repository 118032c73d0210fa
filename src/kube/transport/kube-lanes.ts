import type { Clock } from '../../clock.ts';
import type { Metrics } from '../../metrics.ts';
import type { ClusterAccess } from '../auth/cluster-access.ts';
import { ConcurrencyLimit, type Traffic } from './concurrency-limit.ts';
import { ConnectionPool } from './connection-pool.ts';
import { Connectors } from './connectors.ts';
import { HttpLane } from './http-lane.ts';
import type { RestLane } from './rest-lane.ts';

export interface KubeLanesOptions {
  readonly access: ClusterAccess;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Default 64. */
  readonly restConnections?: number;
  /** Default 32: as many as there are workers for leases. */
  readonly leaseConnections?: number;
  /** Default 5 s. */
  readonly connectTimeoutMs?: number;
  /** Default Math.random. */
  readonly random?: () => number;
}

/**
 * Lanes do not share connections: a lease renewal never waits behind a burst of status writes or a list. Where the API
 * server itself is what is slow, the rest makes way.
 */
export interface KubeLanes {
  readonly rest: RestLane;
  readonly leases: RestLane;
  readonly members: RestLane;
  readonly watches: RestLane;
  /** Traffic of `rest`. */
  readonly traffic: Traffic;
  /** `latenessMs`: how late renewals of Leases are, ms. While they are late, `rest` sends less. Default: never. */
  giveWayTo(latenessMs: () => number): void;
  /** Cuts everything in flight; to be called when all users of the lanes have ended. */
  close(): Promise<void>;
}

export function createKubeLanes(options: KubeLanesOptions): KubeLanes {
  const { access, clock, metrics, connectTimeoutMs = 5000, random = Math.random } = options;
  const closing = new AbortController();
  const pools: ConnectionPool[] = [];
  const connectors = new Connectors(access, connectTimeoutMs);
  const lane = (connections: number | null, limit?: ConcurrencyLimit): RestLane => {
    const pool = new ConnectionPool({ access, connectors, connections });
    pools.push(pool);
    return new HttpLane({ access, pool, clock, metrics, random, closing: closing.signal, limit });
  };
  const { restConnections = 64, leaseConnections = 32 } = options;
  const limit = new ConcurrencyLimit({
    max: restConnections,
    clock,
    onChange: (value) => metrics.restLimit.set(value),
  });
  return {
    rest: lane(restConnections, limit),
    leases: lane(leaseConnections),
    members: lane(2),
    watches: lane(null),
    traffic: limit,
    giveWayTo: (latenessMs) => limit.giveWayTo(latenessMs),
    close: async () => {
      closing.abort();
      await Promise.all(pools.map((pool) => pool.close()));
    },
  };
}
