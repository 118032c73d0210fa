import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, test } from 'vitest';
import { takenPortsOf } from '../../../samples/balancer/taken-ports.ts';

test('a port is taken while another server has it, and free after that', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  expect([...(await takenPortsOf([port], '127.0.0.1'))]).toEqual([port]);
  server.close();
  await once(server, 'close');
  expect([...(await takenPortsOf([port], '127.0.0.1'))]).toEqual([]);
});
