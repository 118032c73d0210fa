import type { Clock } from '../src/clock.ts';
import type { Logger } from '../src/logger.ts';
import type { Metrics } from '../src/metrics.ts';
import type { Tunnel } from '../src/tunnel/tunnel.ts';
import { HttpTunnel, type HttpTunnelOptions } from './http/http-tunnel.ts';
import { MqttTunnel, type MqttTunnelOptions } from './mqtt/mqtt-tunnel.ts';

export interface MqttSettings extends Pick<MqttTunnelOptions, 'url' | 'username' | 'password' | 'tls'> {
  /** Before `@@@` in the client id, as the bases have it. */
  readonly clientPrefix: string;
}

export type HttpSettings = Pick<
  HttpTunnelOptions,
  'port' | 'token' | 'baseNetworks' | 'installDeadlineMs' | 'uninstallDeadlineMs'
>;

export interface TunnelsOptions {
  readonly env: string;
  /** Unique among the controllers of an env. */
  readonly clientId: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Default: no MQTT tunnel. */
  readonly mqtt?: MqttSettings | undefined;
  /** Default: no HTTP tunnel. */
  readonly http?: HttpSettings | undefined;
}

/** The tunnels that are configured, not yet running. */
export function createTunnels(options: TunnelsOptions): Tunnel[] {
  const tunnels: Tunnel[] = [];
  const { mqtt, http, clientId, ...shared } = options;
  if (mqtt) tunnels.push(new MqttTunnel({ ...shared, ...mqtt, clientId: `${mqtt.clientPrefix}@@@${clientId}` }));
  if (http) tunnels.push(new HttpTunnel({ ...shared, ...http }));
  return tunnels;
}
