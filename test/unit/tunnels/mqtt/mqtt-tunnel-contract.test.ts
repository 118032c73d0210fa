import { describeTunnel, type Stall, type TunnelWorld } from '../../../contract/tunnel.ts';
import { FakeMqttBase } from './fake-mqtt-base.ts';
import { createTestTunnel, heart, publishedText } from './mqtt-world.ts';
import { TestBroker } from './test-broker.ts';

describeTunnel('MqttTunnel', async () => {
  const broker = await TestBroker.start();
  const base = { identity: 'base-1', ip: '192.0.2.2', port: 0 };
  const fakeBase = await FakeMqttBase.connect(broker.url, 'default', base.identity);
  const { tunnel } = createTestTunnel(broker.url, { isOurs: () => world.isOurs });
  const world: TunnelWorld = {
    tunnel,
    isOurs: true,
    // What may wait for the acknowledgement of the broker.
    capacity: 512,
    stall: () => stallAcknowledgements(broker),
    base,
    beat: (payload) => fakeBase.publish('heart', payload),
    heartPayload: () => publishedText(heart(base.identity)),
    answer: (command, data) => fakeBase.answer(command, data),
    received: async () => {
      const { command, body } = await fakeBase.received();
      return { command, body };
    },
    breakLink: () => broker.stop(),
    close: async () => {
      await fakeBase.close();
      await broker.stop();
    },
  };
  return world;
});

function stallAcknowledgements({ aedes }: TestBroker): Stall {
  const acknowledge: (() => void)[] = [];
  let wake = (): void => {};
  let isStalled = true;
  aedes.authorizePublish = (_client, _packet, done) => {
    if (!isStalled) return done(null);
    acknowledge.push(() => done(null));
    wake();
  };
  return {
    left: (count) =>
      new Promise((resolve) => {
        wake = () => acknowledge.length >= count && resolve();
        wake();
      }),
    end: () => {
      isStalled = false;
      for (const done of acknowledge) done();
    },
  };
}
