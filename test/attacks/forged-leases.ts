import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import { COMPONENT, COMPONENT_LABEL, ENV_LABEL, MEMBER_ANNOTATION } from '../../src/labels.ts';

export function leasesPath(namespace: string): string {
  return `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
}

/** A membership Lease as a replica of `clientId` would write it, under any name. */
export function memberLease(name: string, clientId: string, address: string, state = 'Active'): KubeObject {
  return leaseOf(name, clientId, COMPONENT.member, {
    [MEMBER_ANNOTATION.nonce]: 'forged',
    [MEMBER_ANNOTATION.address]: address,
    [MEMBER_ANNOTATION.tunnels]: 'http_tunnel_provider,mqtt_tunnel_provider',
    [MEMBER_ANNOTATION.state]: state,
  });
}

/** A Lease of a base's Node that names `holder`. */
export function nodeLease(name: string, holder: string): KubeObject {
  return leaseOf(name, holder, COMPONENT.lease, {});
}

function leaseOf(
  name: string,
  holderIdentity: string,
  component: string,
  annotations: Readonly<Record<string, string>>,
): KubeObject {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, labels: { [COMPONENT_LABEL]: component, [ENV_LABEL]: 'dev' }, annotations },
    spec: { holderIdentity, leaseDurationSeconds: 40, leaseTransitions: 99 },
  };
}

/** Listens where a false Lease says that a replica is, and notes the first line and headers of whatever comes. */
export class ForeignListener {
  readonly heard: string[] = [];
  readonly #server = createServer((request, response) => {
    this.heard.push(`${request.method} ${request.url} ${JSON.stringify(request.headers)}`);
    response.end('{"taken":0,"refused":0}');
  });

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}
