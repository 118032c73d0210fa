import { once } from 'node:events';
import { type AddressInfo, createConnection, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TcpProxy } from '../../support/cluster/tcp-proxy.ts';

let server: Server;
let proxy: TcpProxy;
/** What reached the server. */
let received: string;
let serverSockets: Socket[];
let clients: Socket[];

beforeEach(async () => {
  received = '';
  serverSockets = [];
  clients = [];
  server = createServer((socket) => {
    serverSockets.push(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      received += chunk;
      socket.write(`echo ${chunk}`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  proxy = await TcpProxy.start((server.address() as AddressInfo).port);
});

afterEach(async () => {
  for (const client of clients) client.destroy();
  await proxy.stop();
  for (const socket of serverSockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

async function connect(): Promise<Socket> {
  const client = createConnection({ port: proxy.port, host: '127.0.0.1' });
  clients.push(client);
  client.on('error', () => {});
  await once(client, 'connect');
  return client;
}

async function ask(client: Socket, text: string): Promise<string> {
  client.write(text);
  const [answer] = await once(client, 'data');
  return String(answer);
}

/** A round trip past the proxy, begun now, has come back: what goes through it would have, too. */
async function aWhile(): Promise<void> {
  const other = createConnection({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' });
  clients.push(other);
  for (let round = 0; round < 10; round++) await ask(other, ' ');
}

function closed(client: Socket): Promise<unknown> {
  return once(client, 'close');
}

describe('a TCP proxy', () => {
  it('passes bytes and the end of a connection, both ways', async () => {
    const client = await connect();
    expect(await ask(client, 'one')).toBe('echo one');
    client.end();
    await closed(client);
    expect(serverSockets[0]?.readableEnded).toBe(true);
    const second = await connect();
    await ask(second, 'two');
    serverSockets[1]?.end();
    await closed(second);
  });

  it('passes a reset by the server', async () => {
    const client = await connect();
    await ask(client, 'one');
    const failed = once(client, 'error');
    serverSockets[0]?.resetAndDestroy();
    expect(await failed).toMatchObject([{ code: 'ECONNRESET' }]);
  });

  it('as a black hole loses bytes of old and new connections, tells nobody, and resets them in the end', async () => {
    const old = await connect();
    await ask(old, 'before');
    await proxy.become('blackhole');
    const heard: string[] = [];
    old.on('data', (chunk) => heard.push(String(chunk)));
    old.write('lost');
    serverSockets[0]?.write('lost');
    const fresh = await connect();
    fresh.on('data', (chunk) => heard.push(String(chunk)));
    fresh.write('lost too');
    // Its end is not told either.
    const ended = await connect();
    ended.end();
    await aWhile();
    expect({ received: received.trim(), heard }).toEqual({ received: 'before', heard: [] });
    expect([old.destroyed, fresh.destroyed, serverSockets[0]?.destroyed]).toEqual([false, false, false]);

    const ends = Promise.all([old, fresh].map((client) => once(client, 'error')));
    await proxy.become('pass');
    expect((await ends).map(([error]) => error.code)).toEqual(['ECONNRESET', 'ECONNRESET']);
    expect(await ask(await connect(), 'after')).toBe('echo after');
    expect(received.replaceAll(' ', '')).toBe('beforeafter');
  });

  it('refuses new connections and resets old ones, and takes the same port again', async () => {
    const old = await connect();
    await ask(old, 'one');
    const reset = once(old, 'error');
    await proxy.become('refuse');
    expect((await reset)[0].code).toBe('ECONNRESET');
    await expect(connect()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await proxy.become('pass');
    expect(await ask(await connect(), 'two')).toBe('echo two');
    expect(proxy.connectionCount).toBe(2);
  });

  it('goes from black hole to refusing', async () => {
    await proxy.become('blackhole');
    const held = await connect();
    const reset = once(held, 'error');
    await proxy.become('refuse');
    expect((await reset)[0].code).toBe('ECONNRESET');
    await expect(connect()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });
});
