import type { Clock } from '../clock.ts';
import type { Metrics } from '../metrics.ts';
import type { ClusterAccess } from './cluster-access.ts';
import { ConnectionPool } from './connection-pool.ts';
import { HttpLane } from './http-lane.ts';
import type { RestLane } from './rest-lane.ts';

export interface KubeLanesOptions {
  readonly access: ClusterAccess;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Default 32. */
  readonly restConnections?: number;
  /** Default 4. */
  readonly leaseConnections?: number;
  /** Default 5 s. */
  readonly connectTimeoutMs?: number;
  /** Default Math.random. */
  readonly random?: () => number;
}

/** Lanes do not share connections: a lease renewal never waits behind a burst of status writes or a list. */
export interface KubeLanes {
  readonly rest: RestLane;
  readonly leases: RestLane;
  readonly members: RestLane;
  readonly watches: RestLane;
  /** Cuts everything in flight; to be called when all users of the lanes have ended. */
  close(): Promise<void>;
}

export function createKubeLanes(options: KubeLanesOptions): KubeLanes {
  const { access, clock, metrics, connectTimeoutMs = 5000, random = Math.random } = options;
  const closing = new AbortController();
  const pools: ConnectionPool[] = [];
  const lane = (connections: number | null): RestLane => {
    const pool = new ConnectionPool({ access, connections, connectTimeoutMs });
    pools.push(pool);
    return new HttpLane({ access, pool, clock, metrics, random, closing: closing.signal });
  };
  return {
    rest: lane(options.restConnections ?? 32),
    leases: lane(options.leaseConnections ?? 4),
    members: lane(2),
    watches: lane(null),
    close: async () => {
      closing.abort();
      await Promise.all(pools.map((pool) => pool.close()));
    },
  };
}
