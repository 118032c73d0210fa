import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect, it } from 'vitest';
import { BaseAgent } from '../../../../tunnels/http/base-agent.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

it('keeps a connection for 4 s, and none after its end', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const [first, second] = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')];
  await Promise.all([once(first, 'connect'), once(second, 'connect')]);
  const clock = new FakeClock();
  const agent = new BaseAgent(clock);
  expect(agent.keepSocketAlive(first)).toBe(true);
  clock.advance(3_999);
  expect(first.destroyed).toBe(false);
  clock.advance(1);
  expect(first.destroyed).toBe(true);
  agent.destroy();
  expect(agent.keepSocketAlive(second)).toBe(false);
  expect(clock.pending).toBe(0);
  second.destroy();
  server.close();
});
