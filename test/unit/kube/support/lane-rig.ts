import { createKubeLanes, type KubeLanes, type KubeLanesOptions } from '../../../../src/kube/transport/kube-lanes.ts';
import type { RestRequest } from '../../../../src/kube/transport/rest-lane.ts';
import { createMetrics, type Metrics } from '../../../../src/metrics.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { staticAccess } from './rig.ts';
import { ScriptedServer } from './scripted-server.ts';

export const GET: RestRequest = { method: 'GET', path: '/api/v1/nodes/a' };
export const PATCH: RestRequest = { method: 'PATCH', path: '/api/v1/nodes/a', body: { a: 1 } };
export const POST: RestRequest = { method: 'POST', path: '/api/v1/nodes', body: { a: 1 } };

/** Credentials, and what differs from two connections of each lane. */
interface ConnectOptions extends Pick<KubeLanesOptions, 'restConnections'> {
  readonly first?: string;
  readonly next?: string;
}

/** Lanes to a server that the test answers for by hand, on a clock that it moves. */
export class LaneRig {
  readonly server: ScriptedServer;
  readonly clock = new FakeClock();
  readonly metrics: Metrics = createMetrics();
  /** To `server`, without credentials. */
  readonly lanes: KubeLanes;
  readonly #opened: KubeLanes[] = [];

  private constructor(server: ScriptedServer) {
    this.server = server;
    this.lanes = this.connect(server.url);
  }

  static async start(): Promise<LaneRig> {
    return new LaneRig(await ScriptedServer.start());
  }

  connect(url: URL, options: ConnectOptions = {}): KubeLanes {
    const { clock, metrics } = this;
    const access = staticAccess(url, options);
    const connections = { restConnections: 2, leaseConnections: 2 };
    const lanes = createKubeLanes({ access, clock, metrics, ...connections, random: () => 0.5, ...options });
    this.#opened.push(lanes);
    return lanes;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#opened.map((lanes) => lanes.close()));
    await this.server.close();
  }
}

/** The error of a request, so that a test can go on while it runs. */
export function failureOf(request: Promise<unknown>): Promise<unknown> {
  return request.then(
    (value) => new Error(`unexpected answer ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );
}
