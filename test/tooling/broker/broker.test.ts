import { connect as connectSocket } from 'node:net';
import { connectAsync, type IClientOptions, type MqttClient } from 'mqtt';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Broker, type BrokerOptions, startBroker } from '../../../samples/broker/broker.ts';
import { describeBroker } from './contract.ts';

/** MQTT 3.1.1, section 3.1: a clean session without a keep-alive for the client id `same`. */
const CONNECT_AS_SAME = Buffer.from('\x10\x10\0\x04MQTT\x04\x02\0\0\0\x04same', 'latin1');

let broker: Broker;
let clients: MqttClient[];

beforeEach(async () => {
  clients = [];
  broker = await startBroker();
});

afterEach(async () => {
  for (const client of clients) client.end(true);
  await broker.stop();
});

async function restartWith(options: BrokerOptions): Promise<void> {
  await broker.stop();
  broker = await startBroker(options);
}

async function client(clientId: string, options: IClientOptions = {}): Promise<MqttClient> {
  const connected = await connectAsync(broker.url, { clientId, protocolVersion: 4, reconnectPeriod: 0, ...options });
  clients.push(connected);
  return connected;
}

/** Collects messages; `untilCount` resolves when so many have come. */
async function subscriber(clientId: string, topic: string): Promise<{ received: string[]; untilCount: UntilCount }> {
  const subscribed = await client(clientId);
  const received: string[] = [];
  subscribed.on('message', (_topic, payload) => received.push(payload.toString()));
  await subscribed.subscribeAsync(topic, { qos: 1 });
  const untilCount: UntilCount = (count) =>
    new Promise((resolve) => {
      const check = (): void => {
        if (received.length >= count) resolve();
      };
      subscribed.on('message', check);
      check();
    });
  return { received, untilCount };
}
type UntilCount = (count: number) => Promise<void>;

describeBroker('the broker in this process', (credentials) => startBroker(credentials ? { credentials } : {}));

describe('the broker in this process', () => {
  it('stops, also after connections that took an id from another one and went at once', async () => {
    for (let times = 0; times < 20; times++) {
      const first = await client('same');
      await first.subscribeAsync('a/+', { qos: 1 });
      const ended = new Promise<void>((resolve) => first.once('close', () => resolve()));
      const second = connectSocket(broker.port, '127.0.0.1');
      second.write(CONNECT_AS_SAME);
      second.once('connect', () => setImmediate(() => second.resetAndDestroy()));
      await ended;
    }
    await broker.stop();
    expect(broker.clientIds()).toEqual([]);
  });

  it('records who published what, and leaves its own messages out', async () => {
    const before = Date.now();
    const publisher = await client('c1');
    await publisher.publishAsync('a/b', 'one', { qos: 1, retain: true });
    await publisher.publishAsync('a/c', 'two', { qos: 0 });
    await broker.recorder.waitFor({}, { count: 2 });
    const records = broker.recorder.records();
    expect(records.map(({ at, ...record }) => record)).toEqual([
      { clientId: 'c1', topic: 'a/b', payload: 'one', retain: true, qos: 1 },
      { clientId: 'c1', topic: 'a/c', payload: 'two', retain: false, qos: 0 },
    ]);
    expect(records.every(({ at }) => at >= before && at <= Date.now())).toBe(true);
  });

  it('finds records by client and by topic filter', async () => {
    const [one, two] = [await client('c1'), await client('c2')];
    await one.publishAsync('e/b1/heart', '1', { qos: 1 });
    await two.publishAsync('e/b2/heart', '2', { qos: 1 });
    await two.publishAsync('e/b2/health', '3', { qos: 1 });
    await broker.recorder.waitFor({}, { count: 3 });
    expect(broker.recorder.records({ topic: 'e/+/heart' }).map((record) => record.payload)).toEqual(['1', '2']);
    expect(broker.recorder.count({ clientId: 'c2' })).toBe(2);
    expect(broker.recorder.count({ matches: (record) => record.payload === '3' })).toBe(1);
    broker.recorder.clear();
    expect(broker.recorder.count()).toBe(0);
  });

  it('records nothing while the recorder is off, and no payloads when told so', async () => {
    await restartWith({ record: false, recordPayloads: false });
    const publisher = await client('c1');
    const { untilCount } = await subscriber('c2', 'a');
    await publisher.publishAsync('a', 'unseen', { qos: 1 });
    await untilCount(1);
    expect(broker.recorder.count()).toBe(0);
    broker.recorder.enabled = true;
    await publisher.publishAsync('a', 'seen', { qos: 1 });
    const [record] = await broker.recorder.waitFor({ topic: 'a' });
    expect(record).toMatchObject({ topic: 'a' });
    expect(record).not.toHaveProperty('payload');
  });

  it('says what is missing when a wait ends', async () => {
    await expect(broker.recorder.waitFor({ topic: 'a/b' }, { count: 2, timeoutMs: 10 })).rejects.toThrow(
      '2 messages that match a/b missing after 10 ms',
    );
  });

  it('cuts and refuses clients as told, until told otherwise', async () => {
    const [bad, good] = [await client('bad'), await client('good')];
    const closed = new Promise((resolve) => bad.once('close', () => resolve('closed')));
    broker.refuse((clientId) => clientId === 'bad');
    expect(await closed).toBe('closed');
    await expect(client('bad')).rejects.toMatchObject({ code: 5 });
    expect(good.connected).toBe(true);
    broker.refuse(undefined);
    expect((await client('bad')).connected).toBe(true);
  });

  it('drops and delays messages as the interceptor says', async () => {
    const publisher = await client('c1');
    const { received, untilCount } = await subscriber('c2', 'a');
    broker.intercept(({ payload }) => (payload === 'lost' ? 'drop' : payload === 'late' ? { delayMs: 30 } : undefined));
    for (const payload of ['lost', 'late', 'soon']) await publisher.publishAsync('a', payload, { qos: 1 });
    await untilCount(2);
    expect(received).toEqual(['soon', 'late']);
    expect(broker.recorder.records({ topic: 'a' }).map(({ payload, isDropped }) => [payload, isDropped])).toEqual([
      ['lost', true],
      ['late', undefined],
      ['soon', undefined],
    ]);
    broker.intercept(undefined);
    await publisher.publishAsync('a', 'lost', { qos: 1 });
    await untilCount(3);
  });

  it('loses nothing when one client mixes QoS 0 and QoS 1', async () => {
    const publisher = await client('c1');
    const { received, untilCount } = await subscriber('c2', 'a');
    const wanted = Array.from({ length: 200 }, (_, index) => String(index));
    for (const payload of wanted) publisher.publish('a', payload, { qos: Number(payload) % 2 === 0 ? 1 : 0 });
    await untilCount(200);
    expect(received.toSorted((a, b) => Number(a) - Number(b))).toEqual(wanted);
  });

  it('delivers a message once to a client whose subscriptions overlap', async () => {
    const publisher = await client('c1');
    const overlapping = await client('c2');
    const received: string[] = [];
    overlapping.on('message', (_topic, payload) => received.push(payload.toString()));
    await overlapping.subscribeAsync(['e/+/heart', 'e/b1/+'], { qos: 1 });
    const end = new Promise<void>((resolve) => overlapping.on('message', (topic) => topic === 'e/b1/end' && resolve()));
    await publisher.publishAsync('e/b1/heart', 'beat', { qos: 1 });
    await publisher.publishAsync('e/b1/end', 'end', { qos: 1 });
    await end;
    expect(received).toEqual(['beat', 'end']);
  });

  it('serves everybody else while one subscriber reads nothing', async () => {
    const frozen = await client('frozen');
    await frozen.subscribeAsync('+', { qos: 1 });
    (frozen.stream as unknown as { pause(): void }).pause();
    const { untilCount } = await subscriber('c2', 'b');
    const publisher = await client('c1');
    const payload = Buffer.alloc(64 * 1024, 'x');
    for (let index = 0; index < 300; index += 1) publisher.publish('a', payload, { qos: 1 });
    for (let index = 0; index < 5_000; index += 1) publisher.publish('b', String(index), { qos: 1 });
    await untilCount(5_000);
  });
});
