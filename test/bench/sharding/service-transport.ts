import { ServiceProxy } from '../../support/cluster/service-proxy.ts';
import type { Transport } from '../../support/transport.ts';

/** Bases over HTTP post to one address, and each message goes to the next replica in turn. */
export class ServiceTransport implements Transport {
  readonly service: ServiceProxy;

  private constructor(service: ServiceProxy) {
    this.service = service;
  }

  static async start(): Promise<ServiceTransport> {
    return new ServiceTransport(await ServiceProxy.start());
  }

  get broker(): never {
    throw new Error('there is no broker over HTTP');
  }

  async controllerEnv(): Promise<Record<string, string>> {
    return { ENABLE_HTTP_TUNNEL: 'true' };
  }

  async fleetTarget(): Promise<{ controllerUrl: string }> {
    return { controllerUrl: this.service.url };
  }

  stop(): Promise<void> {
    return this.service.stop();
  }
}
