import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { Fleet } from '../../../samples/base-simulator/fleet.ts';
import type { SimulatedBase } from '../../../samples/base-simulator/simulated-base.ts';

/** Addresses of simulated bases over MQTT. Nothing can listen there. */
const SIMULATED = '198.51.100.';
/** Linux answers on all of 127/8. */
const LOCAL = '127.1.0.';
/** Time that a module takes for an answer: calls are in flight when a base is killed. */
const SERVICE_MS = 5;

/** Where the server of a base listens that reports `localIP`. */
export function localAddressOf(localIP: string): string {
  if (!localIP.startsWith(SIMULATED)) throw new Error(`${localIP}: no address of a simulated base over MQTT`);
  return localIP.replace(SIMULATED, LOCAL);
}

/**
 * A program for `HAPROXY` of the sample balancer: it rewrites the addresses in the configuration file, then becomes
 * `haproxy`. The balancer has each configuration checked under the name `….next` before it loads it, so a reload, which
 * does not start this program again, finds the rewritten one.
 */
export const HAPROXY_WRAPPER = `#!/bin/sh
for argument; do file=$argument; done
sed -i 's/${SIMULATED.replaceAll('.', '\\.')}/${LOCAL}/g' "$file" || exit 1
PATH=$PATH:/usr/sbin exec haproxy "$@"
`;

/**
 * One HTTP server for each simulated base, all with the same port. It answers `/{module}` with 200 and the version
 * while the base has a module of that name ACTIVATED, and with 503 and all its modules else.
 */
export class BaseServers {
  readonly port: number;
  readonly #servers = new Map<string, Server>();

  private constructor(port: number) {
    this.port = port;
  }

  static async start(fleet: Fleet, port: number): Promise<BaseServers> {
    const servers = new BaseServers(port);
    await Promise.all(fleet.bases.map((base) => servers.#serve(base)));
    return servers;
  }

  /** The process of the base dies: its connections are cut, and new ones are refused. */
  async kill(base: SimulatedBase): Promise<void> {
    const killed = base.kill();
    this.#close(base.identity);
    await killed;
  }

  stop(): void {
    for (const identity of [...this.#servers.keys()]) this.#close(identity);
  }

  #close(identity: string): void {
    const server = this.#servers.get(identity);
    this.#servers.delete(identity);
    server?.close();
    server?.closeAllConnections();
  }

  async #serve(base: SimulatedBase): Promise<void> {
    const server = createServer(({ url = '' }, response) => {
      const modules = base.modules();
      const active = modules.find(({ bizName, state }) => `/${bizName}` === url && state === 'ACTIVATED');
      const all = modules.map(({ bizName, bizVersion, state }) => `${bizName}:${bizVersion} ${state}`).join(', ');
      response.statusCode = active ? 200 : 503;
      const text = active ? active.bizVersion : `${base.identity} has ${all || 'no modules'}`;
      setTimeout(() => response.end(text), SERVICE_MS);
    });
    // Clients close idle connections here. A server that did so could cut a call that is on its way.
    server.keepAliveTimeout = 0;
    this.#servers.set(base.identity, server);
    await once(server.listen(this.port, localAddressOf(base.localIP)), 'listening');
  }
}
