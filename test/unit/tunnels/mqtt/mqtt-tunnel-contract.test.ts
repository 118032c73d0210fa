import { describeTunnel } from '../../../contract/tunnel.ts';
import { FakeMqttBase } from './fake-mqtt-base.ts';
import { createTestTunnel, heart, publishedText } from './mqtt-world.ts';
import { TestBroker } from './test-broker.ts';

describeTunnel('MqttTunnel', async () => {
  const broker = await TestBroker.start();
  const base = { identity: 'base-1', ip: '192.0.2.2', port: 0 };
  const fakeBase = await FakeMqttBase.connect(broker.url, 'default', base.identity);
  const { tunnel } = createTestTunnel(broker.url);
  return {
    tunnel,
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
});
