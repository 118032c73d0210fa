import { firstExternalAddress } from '../../samples/base-simulator/external-address.ts';
import { type Broker, startBroker } from '../../samples/broker/broker.ts';
import { startMosquitto } from '../../samples/broker/mosquitto.ts';
import type { MqttBroker } from '../../samples/broker/mqtt-broker.ts';
import { releasePort, reservePort } from '../../samples/control-plane/ports.ts';
import type { TunnelName } from '../../src/tunnel/tunnel.ts';

/** How controllers and bases speak: over MQTT through a broker in this process or a Mosquitto, or over HTTP. */
const TRANSPORTS = ['aedes', 'mosquitto', 'http'] as const;
export type TransportName = (typeof TRANSPORTS)[number];

/** That of the vitest project. */
export const TRANSPORT = transportOf(process.env.TEST_TRANSPORT ?? 'aedes');
/** What takes a hundred bases has them over Mosquitto; over the others, where only the transport differs, half as many. */
export const SCALE = TRANSPORT === 'mosquitto' ? 1 : 0.5;
export const TUNNEL: TunnelName = TRANSPORT === 'http' ? 'http_tunnel_provider' : 'mqtt_tunnel_provider';

/** One for each world. The controllers of one ENV and its bases find each other by it. */
export interface Transport {
  /** Variables of a controller. */
  controllerEnv(env: string): Promise<Record<string, string>>;
  /** Where bases send to. */
  fleetTarget(env: string): Promise<{ brokerUrl: string } | { controllerUrl: string }>;
  /** The broker; throws where there is none. */
  readonly broker: MqttBroker;
  stop(): Promise<void>;
}

export class MqttTransport implements Transport {
  readonly broker: MqttBroker;

  constructor(broker: MqttBroker) {
    this.broker = broker;
  }

  async controllerEnv(): Promise<Record<string, string>> {
    return { ENABLE_MQTT_TUNNEL: 'true', MQTT_BROKER: '127.0.0.1', MQTT_PORT: String(this.broker.port) };
  }

  async fleetTarget(): Promise<{ brokerUrl: string }> {
    return { brokerUrl: this.broker.url };
  }

  stop(): Promise<void> {
    return this.broker.stop();
  }
}

/** A port for each ENV, so that a controller that comes after another one is found by the same bases. */
class HttpTransport implements Transport {
  readonly #ports = new Map<string, Promise<number>>();

  get broker(): never {
    throw new Error('there is no broker over HTTP');
  }

  async controllerEnv(env: string): Promise<Record<string, string>> {
    return { ENABLE_HTTP_TUNNEL: 'true', HTTP_TUNNEL_LISTEN_PORT: String(await this.#portOf(env)) };
  }

  async fleetTarget(env: string): Promise<{ controllerUrl: string }> {
    needExternalAddress();
    // From an own address of the machine to itself: the sender is the address that the bases name.
    return { controllerUrl: `http://${firstExternalAddress()}:${await this.#portOf(env)}` };
  }

  async stop(): Promise<void> {
    for (const port of await Promise.all(this.#ports.values())) releasePort(port);
    this.#ports.clear();
  }

  #portOf(env: string): Promise<number> {
    const port = this.#ports.get(env) ?? reservePort();
    this.#ports.set(env, port);
    return port;
  }
}

/** Controllers call no loopback address. */
export function needExternalAddress(): void {
  if (firstExternalAddress() !== '127.0.0.1') return;
  throw new Error('over HTTP the simulated bases need an IPv4 address of this machine that is not loopback');
}

export async function startTransport(name: TransportName): Promise<Transport> {
  if (name === 'http') return new HttpTransport();
  return new MqttTransport(name === 'mosquitto' ? await startMosquitto() : await startBroker());
}

/** Our own broker, which records and drops messages; only tests of the project `integration` may ask for it. */
export function aedesOf({ broker }: Transport): Broker {
  if ('recorder' in broker) return broker as Broker;
  throw new Error('this test needs the broker in this process: it belongs in the project `integration` only');
}

function transportOf(text: string): TransportName {
  const name = TRANSPORTS.find((known) => known === text);
  if (name === undefined) throw new Error(`TEST_TRANSPORT=${text}: must be one of ${TRANSPORTS.join(', ')}`);
  return name;
}
