import { describeTunnel } from '../../../contract/tunnel.ts';
import { FakeHttpBase } from './fake-http-base.ts';
import { createTestTunnel, heart, post } from './http-world.ts';

describeTunnel('HttpTunnel', async () => {
  const fakeBase = await FakeHttpBase.start();
  const base = { identity: 'base-1', ip: '127.0.0.1', port: fakeBase.port };
  const { tunnel, port } = createTestTunnel();
  return {
    tunnel,
    base,
    beat: async (payload) => {
      await (await post(port(), payload)).text();
    },
    heartPayload: () => JSON.stringify(heart(base.identity, { port: base.port })),
    answer: (command, data) => fakeBase.answer(command, data),
    received: async () => {
      const { command, body } = await fakeBase.received();
      return { command, body };
    },
    breakLink: () => fakeBase.close(),
    close: () => fakeBase.close(),
  };
});
