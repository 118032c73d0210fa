import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Pool } from 'undici';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { keepWatching } from '../../bench/scale/http-pool.ts';

/** What is written into each watch, one after the other; more of them are refused. */
const WATCHES = [
  [
    '{"type":"ADDED","object":{"metadata":{"resourceVersion":"7"}}}\n{"type":"MODI',
    'FIED","object":{"metadata":{"resourceVersion":"9"}}}\n',
  ],
  [],
  ['{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12"}}}\n'],
];

let server: Server;
let pool: Pool;
const asked: URLSearchParams[] = [];

beforeEach(async () => {
  server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://localhost');
    const chunks = WATCHES[asked.length];
    asked.push(searchParams);
    if (chunks === undefined) response.statusCode = 410;
    for (const chunk of chunks ?? []) response.write(chunk);
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  pool = new Pool(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { connections: 1 });
});

afterEach(async () => {
  await pool.destroy();
  server.close();
});

it('a watch that ends goes on behind its last line, until it is refused', async () => {
  const types: string[] = [];
  let opened = 0;
  const watching = keepWatching(pool, {
    path: '/api/v1/pods?labelSelector=bench',
    onOpen: () => {
      opened += 1;
    },
    onLine: (line) => types.push(JSON.parse(line.toString()).type),
  });
  await expect(watching).rejects.toThrow('watch of /api/v1/pods?labelSelector=bench: 410');
  expect(types).toEqual(['ADDED', 'MODIFIED', 'BOOKMARK']);
  expect(opened).toBe(WATCHES.length);
  expect(asked.map((query) => query.get('resourceVersion'))).toEqual([null, '9', '9', '12']);
  expect(asked.every((query) => query.get('labelSelector') === 'bench' && query.get('watch') === 'true')).toBe(true);
});
