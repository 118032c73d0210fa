import { describeTunnel, type Stall, type TunnelWorld } from '../../../contract/tunnel.ts';
import { FakeHttpBase } from './fake-http-base.ts';
import { createTestTunnel, heart, post } from './http-world.ts';

describeTunnel('HttpTunnel', async () => {
  const fakeBase = await FakeHttpBase.start();
  const base = { identity: 'base-1', ip: '127.0.0.1', port: fakeBase.port };
  const { tunnel, port } = createTestTunnel({ isOurs: () => world.isOurs });
  const world: TunnelWorld = {
    tunnel,
    isOurs: true,
    capacity: tunnel.maxOperations,
    stall: () => stallInstalls(fakeBase),
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
  return world;
});

function stallInstalls(base: FakeHttpBase): Stall {
  const answer: (() => void)[] = [];
  let wake = (): void => {};
  base.respond('installBiz', ({ response }) => {
    answer.push(() => response.end('{"code":"SUCCESS"}'));
    wake();
  });
  return {
    left: (count) =>
      new Promise((resolve) => {
        wake = () => answer.length >= count && resolve();
        wake();
      }),
    end: () => {
      base.answer('installBiz', { code: 'SUCCESS' });
      for (const end of answer) end();
    },
  };
}
