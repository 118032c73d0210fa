import type { Clock } from '../src/clock.ts';
import type { Logger } from '../src/logger.ts';
import type { Metrics } from '../src/metrics.ts';
import type { Tunnel } from '../src/tunnel/tunnel.ts';
import type { HttpTunnelOptions } from './http/http-tunnel.ts';
import type { MqttTunnelOptions } from './mqtt/mqtt-tunnel.ts';

export interface MqttSettings extends Pick<MqttTunnelOptions, 'url' | 'username' | 'password' | 'tls'> {
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
  /** Of this program. */
  readonly version: string;
  /**
   * Whether a command may leave for a base, asked at the last moment before it does. Default: always.
   * Where it says no, the command is rejected with `Tunnel.NotConnected`.
   */
  readonly mayCommand?: ((identity: string) => boolean) | undefined;
  /**
   * Whether the lists, health and answers of a base matter here; where not, they are dropped unread. Its heartbeats
   * always matter. Over HTTP answers come only to who asked. Default: always.
   */
  readonly hears?: ((identity: string) => boolean) | undefined;
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
