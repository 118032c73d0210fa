import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import type { Access } from '../../../../src/platform/export/feed-access.ts';
import { feedApp } from '../../../../src/platform/export/feed-app.ts';
import { FeedLists } from '../../../../src/platform/export/feed-lists.ts';
import { FeedWatches } from '../../../../src/platform/export/feed-watches.ts';
import type { ExportWorld } from './export-world.ts';

export const BEAT_MS = 15_000;
export const MIB = 1_048_576;
/** What `requestOf` asks for. */
export const SCOPE = { group: 'external', namespace: undefined };

/** Of a watch, without the empty ones. */
export function linesOf(text: string): { type: string; object?: { serviceName: string } }[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

/** Reads a watch until it has that many lines. */
export async function readLines(response: Response, count: number): Promise<ReturnType<typeof linesOf>> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while ((text.match(/.\n/g) ?? []).length < count) {
    const { value, done = true } = (await reader?.read()) ?? {};
    if (done) break;
    text += value;
  }
  reader?.releaseLock();
  return linesOf(text);
}

/** As a client writes it that does not wait for answers. */
export function requestOf(query: string): string {
  return `GET /v1/exportservices?group=external${query} HTTP/1.1\r\nHost: feed\r\n\r\n`;
}

/** The feed of a world on a port of its own, until the test ends; `asked` are the questions about access. */
export async function serve(world: ExportWorld, access: () => Access = () => 'Allowed') {
  const { table, clock, metrics } = world;
  const watches = new FeedWatches({ table, clock, metrics });
  const lists = new FeedLists({ table, clock });
  const asked: unknown[] = [];
  const app = feedApp({
    table,
    watches,
    lists,
    metrics,
    access: {
      of: async (caller, scope) => {
        asked.push([caller.header, scope, ...(caller.isWatching ? ['watching'] : [])]);
        return access();
      },
    },
  });
  const server = createServer(app);
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const get = (query: string, headers: Record<string, string> = {}) =>
    fetch(`http://127.0.0.1:${port}/v1/exportservices${query}`, { headers });
  const head = (query: string) => fetch(`http://127.0.0.1:${port}/v1/exportservices${query}`, { method: 'HEAD' });
  return { get, head, asked, port, watches, lists };
}
