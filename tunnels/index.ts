import type { Clock } from '../src/clock.ts';
import type { Logger } from '../src/logger.ts';
import type { Metrics } from '../src/metrics.ts';
import type { Tunnel } from '../src/tunnel/tunnel.ts';
import { MqttTunnel, type MqttTunnelOptions } from './mqtt/mqtt-tunnel.ts';

export interface MqttSettings extends Pick<MqttTunnelOptions, 'url' | 'username' | 'password' | 'tls'> {
  /** Before `@@@` in the client id, as the bases have it. */
  readonly clientPrefix: string;
}

export interface TunnelsOptions {
  readonly env: string;
  /** Unique among the controllers of an env. */
  readonly clientId: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Default: no MQTT tunnel. */
  readonly mqtt?: MqttSettings | undefined;
}

/** The tunnels that are configured, not yet running. */
export function createTunnels(options: TunnelsOptions): Tunnel[] {
  const tunnels: Tunnel[] = [];
  const { mqtt, clientId, ...shared } = options;
  if (mqtt) tunnels.push(new MqttTunnel({ ...shared, ...mqtt, clientId: `${mqtt.clientPrefix}@@@${clientId}` }));
  return tunnels;
}
