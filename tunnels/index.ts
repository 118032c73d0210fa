import type { Clock } from '../src/clock.ts';
import type { Logger } from '../src/logger.ts';
import type { Metrics } from '../src/metrics.ts';
import type { Tunnel } from '../src/tunnel/tunnel.ts';
import type { HttpTunnelOptions } from './http/http-tunnel.ts';
import type { MqttTunnelOptions } from './mqtt/mqtt-tunnel.ts';

export interface MqttSettings
  extends Pick<MqttTunnelOptions, 'url' | 'username' | 'password' | 'tls' | 'baseNetworks'> {
  /** Before `@@@` in the client id, as the bases have it. */
  readonly clientPrefix: string;
}

export type HttpSettings = Pick<
  HttpTunnelOptions,
  'port' | 'tokens' | 'baseNetworks' | 'trustedProxies' | 'members' | 'installDeadlineMs' | 'uninstallDeadlineMs'
>;

export interface TunnelsOptions {
  readonly env: string;
  /** Unique among the controllers of an env. */
  readonly clientId: string;
  /** Version of this program. */
  readonly version: string;
  /**
   * Whether this replica speaks to a base, asked right before each command leaves. Default: always. Where it does not, a
   * command is rejected with `Tunnel.NotConnected`, and the lists, health and answers that the base sends over MQTT are
   * dropped unread. Its heartbeats are always read.
   */
  readonly isOurs?: ((identity: string) => boolean) | undefined;
  /** Who a base is to the core; messages of others are taken up to a limit. Default: all are known. */
  readonly senderOf?: MqttTunnelOptions['senderOf'];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Default: no MQTT tunnel. */
  readonly mqtt?: MqttSettings | undefined;
  /** Default: no HTTP tunnel. */
  readonly http?: HttpSettings | undefined;
}

/** The tunnels that are configured, not yet running. One that is not used is not even loaded: it takes 15 MiB. */
export async function createTunnels(options: TunnelsOptions): Promise<Tunnel[]> {
  const tunnels: Tunnel[] = [];
  const { mqtt, http, clientId, version, ...shared } = options;
  if (mqtt) {
    const { MqttTunnel } = await import('./mqtt/mqtt-tunnel.ts');
    tunnels.push(new MqttTunnel({ ...shared, ...mqtt, clientId: `${mqtt.clientPrefix}@@@${clientId}` }));
  }
  if (http) {
    const { HttpTunnel } = await import('./http/http-tunnel.ts');
    tunnels.push(new HttpTunnel({ ...shared, ...http, userAgent: `module-controller/${version} (${clientId})` }));
  }
  return tunnels;
}
