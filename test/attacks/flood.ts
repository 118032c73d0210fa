import { Agent, request } from 'node:http';
import { connectAsync } from 'mqtt';

/** What floods as fast as it can, up to a rate, until it is stopped. */
export interface Flood {
  /** How many messages were sent. */
  readonly sent: number;
  /** How often each HTTP status came. */
  readonly statuses: ReadonlyMap<number, number>;
  stop(): Promise<void>;
}

const TICK_MS = 10;

/** A heartbeat of a base that nobody has heard of. */
function heartOf(identity: string, localIP: string, port: number): object {
  const baseMetadata = { identity, name: 'base', version: '1.0.0', clusterName: 'default' };
  return { baseMetadata, localIP, localHostName: identity, port, state: 'ACTIVATED' };
}

/** New identities over MQTT, by one client of a broker that lets anybody say anything. */
export async function floodMqtt(url: string, perSecond: number): Promise<Flood> {
  const client = await connectAsync(url, { clientId: 'flood', reconnectPeriod: 0 });
  return pace(perSecond, {
    send: (number) => {
      const identity = `flood-${number}`;
      const payload = { publishTimestamp: Date.now(), data: heartOf(identity, '198.51.100.1', 0) };
      client.publish(`koupleless_dev/${identity}/base/heart`, JSON.stringify(payload), { qos: 0 });
    },
    stop: () => client.endAsync(true),
  });
}

/** Where the base of a number is, as its heartbeat has it. */
export type PlaceOf = (number: number) => { readonly ip: string; readonly port: number };

/** New identities over HTTP, from one source. */
export async function floodHttp(
  port: number,
  { from, placeOf, perSecond }: { from: string; placeOf: PlaceOf; perSecond: number },
): Promise<Flood> {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const statuses = new Map<number, number>();
  const flood = pace(perSecond, {
    send: (number) => {
      const headers = { 'content-type': 'application/json' };
      const options = {
        host: '127.0.0.1',
        port,
        localAddress: from,
        path: '/heartbeat',
        method: 'POST',
        headers,
        agent,
      };
      const sending = request(options, (response) => {
        const status = response.statusCode ?? 0;
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        response.resume();
      });
      // What is cut off by the end of the flood, or by the one that is flooded.
      sending.on('error', () => {});
      const place = placeOf(number);
      sending.end(JSON.stringify(heartOf(`flood-${number}`, place.ip, place.port)));
    },
    stop: () => Promise.resolve(agent.destroy()),
  });
  return Object.assign(flood, { statuses });
}

function pace(perSecond: number, act: { send: (number: number) => void; stop: () => Promise<void> }): Flood {
  const startedAt = performance.now();
  const flood = {
    sent: 0,
    statuses: new Map<number, number>(),
    stop: (): Promise<void> => {
      clearInterval(timer);
      return act.stop();
    },
  };
  const timer = setInterval(() => {
    const due = ((performance.now() - startedAt) / 1000) * perSecond;
    // On a busy machine ticks are late, and the rate has to hold all the same.
    for (let count = 0; flood.sent < due && count < perSecond / 4; count++) act.send(flood.sent++);
  }, TICK_MS);
  return flood;
}
