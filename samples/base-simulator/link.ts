import { firstExternalAddress } from './external-address.ts';
import { HttpTransport } from './http-transport.ts';
import { localAddressOf } from './local-address.ts';
import { MqttTransport, type MqttTransportOptions } from './mqtt-transport.ts';
import type { SharedConnection } from './shared-connection.ts';
import type { Transport, TransportProcess, TunnelName } from './transport.ts';

/** Exactly one of the two. */
export interface LinkTarget {
  /** The base speaks MQTT, e.g. `mqtt://127.0.0.1:1883`. */
  brokerUrl?: string | undefined;
  /** The base speaks HTTP, e.g. `http://127.0.0.1:7777`. */
  controllerUrl?: string | undefined;
}

/** Where a base is; see `BaseOptions`. */
export interface Place {
  localIP?: string | undefined;
  listenAddress?: string | undefined;
}

/** Where a base is linked to its controller, and as whom it shows itself there. */
export type Link =
  | { tunnel: 'mqtt'; brokerUrl: string; localIP: string }
  /** `port`: 0 = a free one. */
  | { tunnel: 'http'; controllerUrl: string; localIP: string; listenAddress: string; port: number };

/** What a link of either kind needs besides. */
export interface LinkOptions extends Omit<MqttTransportOptions, 'brokerUrl' | 'shared'> {
  /** Over MQTT: the connection that the bases of that broker share. Absent: each has its own. */
  sharedConnectionTo?: (brokerUrl: string) => SharedConnection;
  /** For the controller, over HTTP. */
  token?: string;
  queriesBaseline: boolean;
  eventLoops: number;
  listenDelayMs: number;
}

/** What the public agent has: 10 s over MQTT, 12 s over HTTP. */
export const HEARTBEAT_MS: Record<TunnelName, number> = { mqtt: 10_000, http: 12_000 };

/** The link that a base's options ask for. `number` gives an address to a base that has none of its own. */
export function linkOf(options: LinkTarget & Place, number: number): Link {
  const { brokerUrl, controllerUrl, localIP } = options;
  if ((brokerUrl === undefined) === (controllerUrl === undefined)) {
    throw new Error('brokerUrl: a base needs either brokerUrl or controllerUrl, and not both');
  }
  if (controllerUrl === undefined) {
    return { tunnel: 'mqtt', brokerUrl: brokerUrl ?? '', localIP: localIP ?? localAddressOf(number) };
  }
  if (URL.parse(controllerUrl)?.protocol !== 'http:') {
    throw new Error(`controllerUrl: must be an URL like http://127.0.0.1:7777, got '${controllerUrl}'`);
  }
  const address = localIP ?? firstExternalAddress();
  return { tunnel: 'http', controllerUrl, localIP: address, listenAddress: options.listenAddress ?? address, port: 0 };
}

export function createTransport(link: Link, options: LinkOptions, process: TransportProcess): Transport {
  const { username, password, env, clientIdPrefix, legacyBizTopic, reconnectMs, sharedConnectionTo } = options;
  if (link.tunnel === 'http') {
    const { token, queriesBaseline, eventLoops, listenDelayMs } = options;
    const { controllerUrl, listenAddress, port } = link;
    const credential = token === undefined ? {} : { token };
    return new HttpTransport(
      { controllerUrl, listenAddress, port, eventLoops, listenDelayMs, queriesBaseline, ...credential },
      process,
    );
  }
  return new MqttTransport(
    {
      brokerUrl: link.brokerUrl,
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password }),
      env,
      clientIdPrefix,
      legacyBizTopic,
      reconnectMs,
      ...(sharedConnectionTo ? { shared: sharedConnectionTo(link.brokerUrl) } : {}),
    },
    process,
  );
}
