import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { PollingClient } from '../../../samples/jvm/polling-client.ts';

const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.closeAllConnections();
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/version`;
}

/** Resolves when the client has told this; fails with the test's time. */
function told(fits: (line: string) => boolean) {
  const lines: string[] = [];
  let seen: () => void = () => {};
  const done = new Promise<void>((resolve) => {
    seen = resolve;
  });
  const onLine = (line: string): void => {
    lines.push(line.replace(/^ *[\d.]+ s {2}/, ''));
    if (fits(line)) seen();
  };
  return { lines, done, onLine };
}

describe('a client that calls all the time', () => {
  it('tells each change of an answer once, and counts what failed', async () => {
    const texts = ['1.0.0', '1.0.0', 'broken'];
    const url = await serve((_, response) => {
      const text = texts.shift() ?? '2.0.0';
      response.writeHead(text === 'broken' ? 500 : 200).end(text);
    });
    const { lines, done, onLine } = told((line) => line.endsWith('2.0.0'));
    const client = new PollingClient({ targets: () => [{ base: 'b1', url }], onLine });
    await done;
    await client.stop();
    expect(lines).toEqual(['b1 answers 1.0.0', 'b1 answers 500 broken', 'b1 answers 2.0.0']);
    expect(client.failures).toEqual([{ base: 'b1', atMs: expect.any(Number), status: 500, text: 'broken' }]);
    expect(client.count).toBeGreaterThanOrEqual(4);
  });

  it('says that a base is not called any more', async () => {
    const url = await serve((_, response) => response.end('1.0.0'));
    let targets = [{ base: 'b1', url }];
    const { lines, done, onLine } = told((line) => line.includes('not called'));
    const client = new PollingClient({
      targets: () => targets,
      onLine: (line) => {
        onLine(line);
        targets = [];
      },
    });
    await done;
    await client.stop();
    expect(lines).toEqual(['b1 answers 1.0.0', 'b1 is not called any more']);
    expect(client.answers().size).toBe(0);
    expect(client.failures).toEqual([]);
  });

  it('counts a refused connection as a failure, with its reason', async () => {
    const { done, onLine } = told((line) => line.includes('ECONNREFUSED'));
    const url = await serve(() => {});
    servers.pop()?.close();
    const client = new PollingClient({ targets: () => [{ base: 'b1', url }], onLine });
    await done;
    await client.stop();
    expect(client.failures[0]).toMatchObject({ status: 0, text: expect.stringContaining('ECONNREFUSED') });
  });
});
