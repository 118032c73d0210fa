import { connect as connectSocket } from 'node:net';
import { connectAsync, type IClientOptions, type MqttClient } from 'mqtt';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { MqttBroker } from '../../../samples/broker/mqtt-broker.ts';

export interface Credentials {
  username: string;
  password: string;
}

/** What every kind of broker does. */
export function describeBroker(name: string, start: (only?: Credentials) => Promise<MqttBroker>): void {
  describe(name, () => {
    let broker: MqttBroker;
    let clients: MqttClient[];

    beforeEach(async () => {
      clients = [];
      broker = await start();
    });

    afterEach(async () => {
      for (const client of clients) client.end(true);
      await broker.stop();
    });

    async function client(options: IClientOptions = {}): Promise<MqttClient> {
      const connected = await connectAsync(broker.url, { protocolVersion: 4, reconnectPeriod: 0, ...options });
      clients.push(connected);
      return connected;
    }

    /** Resolves with the next message of the topic. */
    async function heard(by: MqttClient, topic: string): Promise<Promise<string>[]> {
      await by.subscribeAsync(topic, { qos: 1 });
      return [new Promise((resolve) => by.once('message', (_topic, payload) => resolve(payload.toString())))];
    }

    it('hands messages over to who subscribed', async () => {
      const [message] = await heard(await client(), 'a/+');
      await (await client()).publishAsync('a/b', 'hello', { qos: 1 });
      expect(await message).toBe('hello');
    });

    it('lets in only who has the credentials', async () => {
      await broker.stop();
      broker = await start({ username: 'mc', password: 'secret' });
      await expect(client()).rejects.toMatchObject({ code: expect.toBeOneOf([4, 5]) });
      await expect(client({ username: 'mc', password: 'wrong' })).rejects.toMatchObject({
        code: expect.toBeOneOf([4, 5]),
      });
      expect((await client({ username: 'mc', password: 'secret' })).connected).toBe(true);
    });

    it('cuts every client and refuses connections while paused, and comes back on the same port', async () => {
      const { port } = broker;
      const dropped = await client();
      const closed = new Promise((resolve) => dropped.once('close', () => resolve('closed')));
      await broker.pause();
      await broker.pause();
      expect(await closed).toBe('closed');
      await expect(client()).rejects.toThrow();
      await broker.resume();
      await broker.resume();
      expect(broker.port).toBe(port);
      const [message] = await heard(await client(), 'b');
      await (await client()).publishAsync('b', 'back', { qos: 1 });
      expect(await message).toBe('back');
    });

    it('refuses connections after stop, which may be called again', async () => {
      await client();
      await broker.stop();
      await broker.stop();
      const refused = await new Promise<string | undefined>((resolve) => {
        const socket = connectSocket(broker.port, '127.0.0.1');
        socket.once('connect', () => resolve('connected'));
        socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code));
      });
      expect(refused).toBe('ECONNREFUSED');
    });

    it('gives each broker a port of its own', async () => {
      const other = await start();
      expect(other.port).not.toBe(broker.port);
      await other.stop();
    });
  });
}
