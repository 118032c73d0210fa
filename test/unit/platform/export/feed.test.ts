import { EventEmitter } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { ExportTable } from '../../../../src/platform/export/export-table.ts';
import type { Access } from '../../../../src/platform/export/feed-access.ts';
import { feedApp } from '../../../../src/platform/export/feed-app.ts';
import { FeedLists } from '../../../../src/platform/export/feed-lists.ts';
import { FeedWatches, type WatchStream } from '../../../../src/platform/export/feed-watches.ts';
import { ExportWorld, fleet, podOf, serviceOf, TCP_PORT } from './export-world.ts';

const BEAT_MS = 15_000;
const MAX_WATCHES = 500;
const MIB = 1_048_576;

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

/** Reads a stream of lines, as many as are asked for. */
async function readLines(
  response: Response,
  count: number,
): Promise<{ type: string; object?: { serviceName: string } }[]> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (text.split('\n').filter((line) => line !== '').length < count) {
    const { value, done = true } = (await reader?.read()) ?? {};
    if (done) break;
    text += value;
  }
  reader?.releaseLock();
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

/** As a client writes it that does not wait for answers. */
function requestOf(query: string): string {
  return `GET /v1/exportservices?group=external${query} HTTP/1.1\r\nHost: feed\r\n\r\n`;
}

async function serve(world: ExportWorld, access: () => Access = () => 'Allowed') {
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
        asked.push([caller.header, scope]);
        return access();
      },
    },
  });
  const server = createServer(app);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const get = (query: string, headers: Record<string, string> = {}) =>
    fetch(`http://127.0.0.1:${port}/v1/exportservices${query}`, { headers });
  return { get, asked, port, watches, lists };
}

describe('the feed', () => {
  const world = () =>
    new ExportWorld().put(
      serviceOf('shop'),
      serviceOf('cart', { namespace: 't2', ports: [{ port: 1 }] }),
      ...fleet('shop', 2),
    );

  it('is a list of what balancers of the group take', async () => {
    const own = world();
    const { get } = await serve(own);
    const answer = await get('?group=external');
    expect(answer.headers.get('content-type')).toMatch('application/json');
    const expected = [own.table.get('t1/shop')?.view.exported, own.table.get('t2/cart')?.view.exported];
    expect(await answer.json()).toEqual(expected);
    expect(await (await get('?group=other')).json()).toEqual([]);
    expect(await (await get('?group=external&namespace=t2')).json()).toEqual([expected[1]]);
  });

  it('has an ETag that is equal for equal content, on each replica', async () => {
    const own = world();
    const [{ get }, other] = [await serve(own), await serve(world())];
    const etag = (await get('?group=external')).headers.get('etag') ?? '';
    expect((await other.get('?group=external')).headers.get('etag')).toBe(etag);
    expect((await other.get('?group=external', { 'If-None-Match': etag })).status).toBe(304);
    // Away and back.
    own.put(podOf('shop', 'shop-1', { isReady: false }));
    expect((await get('?group=external', { 'If-None-Match': etag })).status).toBe(200);
    own.put(podOf('shop', 'shop-1'));
    expect((await get('?group=external', { 'If-None-Match': etag })).status).toBe(304);
  });

  it.each([
    ['', 400, 'group: is required'],
    ['?group=', 400, 'group: is required'],
    ['?group=a&group=b', 400, 'group: is required'],
    ['?group=a&namespace=', 400, 'namespace: must be given once'],
    ['?group=a&grop=b', 400, 'grop: unknown parameter, use group, namespace, watch'],
    ['/more?group=a', 404, 'only GET /v1/exportservices is served'],
  ])('says what is wrong with %s', async (query, status, text) => {
    const { get, asked } = await serve(world());
    const answer = await get(query);
    expect([answer.status, await answer.text()]).toEqual([status, expect.stringContaining(text)]);
    expect(asked).toEqual([]);
  });

  it.each([
    ['Unauthenticated', 401],
    ['Forbidden', 403],
    ['Busy', 429],
    ['Unknown', 503],
  ] as const)('gives nothing to one who is %s', async (access, status) => {
    const { get } = await serve(world(), () => access);
    const answer = await get('?group=external');
    expect(answer.status).toBe(status);
    expect(await answer.text()).not.toContain('10.0.0');
    const isLater = status === 429 || status === 503;
    expect(answer.headers.get('retry-after')).toBe(isLater ? '1' : null);
    expect(answer.headers.get('www-authenticate')).toBe(status === 401 ? 'Bearer' : null);
  });

  it('keeps no more bodies than a hundred, and answers about all groups', async () => {
    const own = world();
    const { get } = await serve(own);
    const etags = new Set<string | null>();
    for (let index = 0; index <= 101; index++) etags.add((await get(`?group=g${index}`)).headers.get('etag'));
    expect(etags.size).toBe(1);
    expect(await (await get('?group=external')).json()).toHaveLength(2);
  });

  it('asks about the token and the scope', async () => {
    const { get, asked } = await serve(world());
    await get('?group=external&namespace=t1', { Authorization: 'Bearer abc' });
    expect(asked).toEqual([['Bearer abc', { group: 'external', namespace: 't1' }]]);
  });

  it('answers nothing before its caches are whole: an empty list would take all traffic away', async () => {
    const own = new ExportWorld();
    own.services.synced = false;
    const { get } = await serve(own);
    const answer = await get('?group=external');
    expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining('ask another one')]);
    expect((await get('?group=external&watch=1')).status).toBe(503);
  });

  it('counts its answers', async () => {
    const own = world();
    const { get } = await serve(own);
    await (await get('?group=external')).text();
    await (await get('')).text();
    const counted = (await own.metrics.exportRequests.get()).values.map(({ labels, value }) => [labels.code, value]);
    expect(counted).toEqual([
      ['200', 1],
      ['400', 1],
    ]);
  });
});

describe('a list of the feed', () => {
  const SCOPE = { group: 'external', namespace: undefined };
  const TEN_MIB = Buffer.alloc(10 * MIB);

  /** Entries whose list has this many bytes. */
  function entriesOf(bytes: number) {
    return [{ view: { json: ' '.repeat(bytes - 2) } }] as unknown as ReturnType<ExportTable['entriesOf']>;
  }

  /** An answer that nobody takes. */
  function answerOf() {
    const stream = Object.assign(new EventEmitter(), { destroy: vi.fn(() => stream.emit('close')) });
    return stream;
  }

  describe.each([
    ['others', false, 3],
    ['balancers', true, 6],
  ] as const)('of %s', (_kind, isBalancer, count) => {
    it('is refused while too much is unread, until one is taken', () => {
      const own = new ExportWorld();
      const lists = new FeedLists({ table: own.table, clock: own.clock });
      const answers = Array.from({ length: count }, answerOf);
      for (const answer of answers) expect(lists.hold(answer, TEN_MIB, isBalancer)).toBe(true);
      expect(lists.hold(answerOf(), TEN_MIB, isBalancer)).toBe(false);
      expect(lists.hold(answerOf(), TEN_MIB, !isBalancer)).toBe(true);
      answers[0]?.emit('close');
      expect(lists.hold(answerOf(), TEN_MIB, isBalancer)).toBe(true);
      expect(lists.hold(answerOf(), TEN_MIB, isBalancer)).toBe(false);
    });
  });

  it('has room alone, however long it is', () => {
    const own = new ExportWorld();
    const lists = new FeedLists({ table: own.table, clock: own.clock });
    expect(lists.hold(answerOf(), Buffer.alloc(33 * MIB), false)).toBe(true);
    expect(lists.hold(answerOf(), Buffer.alloc(1), false)).toBe(false);
  });

  it('is cut off when it is not taken in 60 s', () => {
    const own = new ExportWorld();
    const lists = new FeedLists({ table: own.table, clock: own.clock });
    const [slow, taken] = [answerOf(), answerOf()];
    for (const answer of [slow, taken]) lists.hold(answer, TEN_MIB, false);
    taken.emit('close');
    own.clock.advance(59_999);
    expect(slow.destroy).not.toHaveBeenCalled();
    own.clock.advance(1);
    expect(slow.destroy).toHaveBeenCalledOnce();
    expect(taken.destroy).not.toHaveBeenCalled();
    expect(own.clock.pending).toBe(0);
  });

  it('is refused with 503 while too much is unread, but not the answer that nothing has changed', async () => {
    const own = new ExportWorld();
    const { get, lists } = await serve(own);
    const etag = (await get('?group=external')).headers.get('etag') ?? '';
    lists.hold(answerOf(), Buffer.alloc(32 * MIB), false);
    const answer = await get('?group=external');
    expect([answer.status, answer.headers.get('retry-after'), answer.headers.get('etag')]).toEqual([503, '1', null]);
    expect(await answer.text()).toContain('too much of the lists is unread');
    expect((await get('?group=external', { 'If-None-Match': etag })).status).toBe(304);
    // A watch is no list.
    expect((await get('?group=external&watch=1')).status).toBe(200);
  });

  it('counts until it is taken', async () => {
    const own = new ExportWorld().put(serviceOf('shop'));
    const { get, lists } = await serve(own);
    const hold = vi.spyOn(lists, 'hold');
    await (await get('?group=external')).text();
    expect(hold.mock.calls[0]?.[1]).toBe(lists.of(SCOPE).bytes);
    await vi.waitFor(() => expect(own.clock.pending).toBe(0));
    expect(lists.hold(answerOf(), Buffer.alloc(32 * MIB), false)).toBe(true);
  });

  it('that nobody reads counts until its connection is cut off', async () => {
    const own = new ExportWorld();
    const { get, port, lists } = await serve(own);
    // More than the buffers of the kernel.
    vi.spyOn(own.table, 'entriesOf').mockReturnValue(entriesOf(64 * MIB));
    const socket = connect(port, '127.0.0.1', () => socket.pause().write(requestOf('')));
    const closed = new Promise((resolve) => socket.on('error', () => {}).once('close', resolve));
    await vi.waitFor(() => expect(own.clock.pending).toBe(1));
    expect((await get('?group=external')).status).toBe(503);
    expect(lists.hold(answerOf(), Buffer.alloc(1), false)).toBe(false);
    own.clock.advance(60_000);
    await vi.waitFor(() => expect(lists.hold(answerOf(), Buffer.alloc(32 * MIB), false)).toBe(true));
    socket.resume();
    await closed;
  });

  it('is refused behind another request on the same connection', async () => {
    const own = new ExportWorld().put(serviceOf('shop'));
    let access: Access = 'Allowed';
    const { port, asked } = await serve(own, () => access);
    let text = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(requestOf('&watch=1') + requestOf('').repeat(2)));
    socket.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
    });
    await vi.waitFor(() => expect(text).toContain('SYNCED'));
    await vi.waitFor(() => expect(asked).toHaveLength(3));
    // The watch ends, so that the answers behind it come.
    access = 'Forbidden';
    own.clock.advance(BEAT_MS);
    await vi.waitFor(() =>
      expect(text.match(/HTTP\/1.1 \d+/g)).toEqual(['200', '400', '400'].map((code) => `HTTP/1.1 ${code}`)),
    );
    expect(text.match(/must not be pipelined/g)).toHaveLength(2);
    socket.destroy();
  });

  it('is kept while all together have 32 MiB, the oldest ones are dropped first', () => {
    const own = new ExportWorld();
    const lists = new FeedLists({ table: own.table, clock: own.clock });
    const scopes = ['a', 'b', 'c', 'd'].map((group) => ({ group, namespace: undefined }));
    vi.spyOn(own.table, 'entriesOf').mockReturnValue(entriesOf(10 * MIB));
    const first = scopes.map((scope) => lists.of(scope));
    const again = [...scopes]
      .reverse()
      .map((scope) => lists.of(scope))
      .reverse();
    expect(again.map((list, index) => list === first[index])).toEqual([false, true, true, true]);
  });
});

describe('a watch of the feed', () => {
  it('begins with all, and goes on with changes in order', async () => {
    const own = new ExportWorld().put(serviceOf('shop'), ...fleet('shop', 1));
    const { get } = await serve(own);
    const answer = await get('?group=external&watch=1');
    own.put(podOf('shop', 'shop-1', { isReady: false }));
    own.put(serviceOf('cart', { ports: [{ port: 1 }] }));
    own.remove(serviceOf('shop'));
    const lines = await readLines(answer, 5);
    expect(lines.map(({ type, object }) => `${type} ${object?.serviceName ?? ''}`)).toEqual([
      'ADDED shop',
      'SYNCED ',
      'MODIFIED shop',
      'ADDED cart',
      'DELETED shop',
    ]);
  });

  it('is refused with 503 when there are too many', async () => {
    const own = new ExportWorld();
    const { get, watches } = await serve(own);
    const { stream } = streamOf();
    const scope = { group: 'external', namespace: undefined };
    for (let index = 0; index < MAX_WATCHES; index++)
      watches.open(scope, stream, { isAllowed: async () => true, isBalancer: false });
    const answer = await get('?group=external&watch=true');
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await answer.text()).toContain('too many watches');
  });

  it.each([
    ['Allowed', true],
    ['Busy', true],
    ['Unknown', true],
    ['Forbidden', false],
    ['Unauthenticated', false],
  ] as const)('whose token is found to be %s later on goes on: %s', async (later, goesOn) => {
    const own = new ExportWorld();
    let access: Access = 'Allowed';
    const { get, asked } = await serve(own, () => access);
    const answer = await get('?group=external&watch=1');
    access = later;
    own.clock.advance(BEAT_MS);
    await vi.waitFor(() => expect(asked).toHaveLength(2));
    if (goesOn) {
      own.clock.advance(BEAT_MS);
      await vi.waitFor(() => expect(asked).toHaveLength(3));
      own.put(serviceOf('shop'));
    }
    const lines = await readLines(answer, 2);
    expect(lines.map(({ type }) => type)).toEqual(goesOn ? ['SYNCED', 'ADDED'] : ['SYNCED']);
  });

  it('ends when this replica is cut off: balancers go to another one', async () => {
    const own = new ExportWorld();
    const { state } = watched(own);
    own.clock.advance(BEAT_MS);
    expect(state.isEnded).toBe(false);
    own.pods.eventAgeMs = 150_000;
    own.clock.advance(BEAT_MS);
    expect(state.isEnded).toBe(true);
  });

  function streamOf() {
    const state = { text: '', isEnded: false, isDestroyed: false };
    const stream: WatchStream & { writableLength: number } = {
      write: (text) => {
        state.text += text;
      },
      end: () => {
        state.isEnded = true;
      },
      destroy: () => {
        state.isDestroyed = true;
      },
      writableLength: 0,
    };
    return { state, stream };
  }

  function watched(own: ExportWorld, scope = { group: 'external', namespace: undefined as string | undefined }) {
    const watches = new FeedWatches({ table: own.table, clock: own.clock, metrics: own.metrics });
    const access = { isAllowed: true };
    const { state, stream } = streamOf();
    const close = watches.open(scope, stream, { isAllowed: async () => access.isAllowed, isBalancer: true });
    return { watches, state, stream, access, close: close ?? (() => {}), scope };
  }

  it('shows a Service that loses a conflict as one that goes, and comes back', () => {
    const own = new ExportWorld().put(serviceOf('shop', { createdAt: '2026-01-02T00:00:00Z' }));
    const { state } = watched(own);
    state.text = '';
    own.put(serviceOf('older'));
    own.remove(serviceOf('older'));
    const types = state.text.split('\n').map((line) => (line === '' ? '' : JSON.parse(line).type));
    expect(types.filter((type) => type !== '').sort()).toEqual(['ADDED', 'ADDED', 'DELETED', 'DELETED']);
  });

  it('sees its own namespace and group only', () => {
    const own = new ExportWorld().put(serviceOf('shop'));
    const { state } = watched(own, { group: 'external', namespace: 't2' });
    own.put(...fleet('shop', 1));
    expect(state.text).toBe('{"type":"SYNCED"}\n');
  });

  it('goes on when another one of the same scope ends', () => {
    const own = new ExportWorld();
    const { watches, state, scope } = watched(own);
    watches.open(scope, streamOf().stream, { isAllowed: async () => true, isBalancer: true })?.();
    own.put(serviceOf('shop'));
    expect(state.text).toContain('ADDED');
  });

  it('is told from time to time that it lives, by one timer for all', () => {
    const own = new ExportWorld();
    const { watches, state, close, scope } = watched(own);
    const second = watches.open(scope, streamOf().stream, { isAllowed: async () => true, isBalancer: true });
    expect(own.clock.pending).toBe(1);
    state.text = '';
    own.clock.advance(BEAT_MS - 1);
    expect(state.text).toBe('');
    own.clock.advance(1);
    expect(state.text).toBe('\n');
    own.clock.advance(BEAT_MS);
    expect(state.text).toBe('\n\n');
    close();
    second?.();
    expect(own.clock.pending).toBe(0);
  });

  it('ends when its token may not read any more', async () => {
    const own = new ExportWorld();
    const { state, access } = watched(own);
    own.clock.advance(BEAT_MS);
    await vi.waitFor(() => expect(state.isEnded).toBe(false));
    access.isAllowed = false;
    own.clock.advance(BEAT_MS);
    await vi.waitFor(() => expect(state.isEnded).toBe(true));
  });

  it('is cut off when nobody reads it', () => {
    const own = new ExportWorld().put(serviceOf('shop'));
    const { state, stream } = watched(own);
    stream.writableLength = 8_388_608;
    own.put(...fleet('shop', 1));
    expect(state.isDestroyed).toBe(false);
    stream.writableLength = 8_388_609;
    state.text = '';
    own.put(podOf('shop', 'shop-1', { isReady: false }));
    expect(state).toMatchObject({ isDestroyed: true, text: '' });
  });

  /** A stream that nobody reads. */
  function unreadStreamOf() {
    const { state, stream } = streamOf();
    stream.write = (text) => {
      stream.writableLength += text.length;
      state.text = String(text);
    };
    return { state, stream };
  }

  /** A world whose feed is some hundred KiB long, and watches of it that nobody reads. */
  function unread(own = largeWorld()) {
    const watches = new FeedWatches({ table: own.table, clock: own.clock, metrics: own.metrics });
    const open = (isBalancer: boolean) => {
      const { state, stream } = unreadStreamOf();
      const close = watches.open({ group: 'external', namespace: undefined }, stream, {
        isAllowed: async () => true,
        isBalancer,
      });
      return close && { state, stream, close };
    };
    const openAll = (isBalancer: boolean) => {
      const opened: NonNullable<ReturnType<typeof open>>[] = [];
      for (let one = open(isBalancer); one !== undefined; one = open(isBalancer)) opened.push(one);
      return opened;
    };
    return { own, watches, open, openAll };
  }

  function largeWorld() {
    const ports = Array.from({ length: 20 }, (_, index) => ({ ...TCP_PORT, name: `p${index}`, port: 1_000 + index }));
    return new ExportWorld().put(serviceOf('shop', { ports }), ...fleet('shop', 240));
  }

  const sumOf = (opened: readonly { stream: WatchStream }[]) =>
    opened.reduce((sum, { stream }) => sum + stream.writableLength, 0);

  it('is refused while others leave 32 MiB unread, until they read', () => {
    const { open, openAll } = unread();
    const opened = openAll(false);
    const [first] = opened;
    const length = first?.stream.writableLength ?? 0;
    expect(length).toBeGreaterThan(MIB / 4);
    expect(opened).toHaveLength(Math.floor((32 * MIB) / length));
    // Balancers have room of their own.
    expect(open(true)).toBeDefined();
    expect(open(false)).toBeUndefined();
    if (first) first.stream.writableLength = 0;
    expect(open(false)).toBeDefined();
    expect(open(false)).toBeUndefined();
    opened[1]?.close();
    expect(open(false)).toBeDefined();
  });

  it('is not refused however much was read', () => {
    const { open } = unread();
    for (let index = 0; index < 200; index++) {
      const one = open(false);
      expect(one).toBeDefined();
      if (one) one.stream.writableLength = 0;
    }
  });

  it('is refused behind another one on the same connection, where nothing could cut it off', async () => {
    const own = new ExportWorld();
    const { port, asked } = await serve(own);
    const socket = connect(port, '127.0.0.1', () => socket.write(requestOf('&watch=1').repeat(3)));
    await vi.waitFor(() => expect(asked).toHaveLength(3));
    const count = async () => (await own.metrics.exportWatches.get()).values[0]?.value;
    await vi.waitFor(async () => expect(await count()).toBe(1));
    own.clock.advance(BEAT_MS);
    await vi.waitFor(() => expect(asked).toHaveLength(4));
    socket.destroy();
    await vi.waitFor(async () => expect(await count()).toBe(0));
  });

  it('is refused with 503 while too much is unread', async () => {
    const own = largeWorld();
    const { get, watches } = await serve(own);
    const scope = { group: 'external', namespace: undefined };
    const open = () => watches.open(scope, unreadStreamOf().stream, { isAllowed: async () => true, isBalancer: false });
    while (open() !== undefined);
    const answer = await get('?group=external&watch=1');
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await answer.text()).toContain('too much of them is unread');
    // The list is no watch.
    expect((await get('?group=external')).status).toBe(200);
  });

  describe.each([
    ['others', false, 32],
    ['balancers', true, 128],
  ] as const)('of %s', (_kind, isBalancer, max) => {
    it('is cut when a change would make too much unread: the one with the most first', () => {
      const { own, open, openAll } = unread();
      const opened = openAll(isBalancer);
      const other = open(!isBalancer);
      const [oldest, reader, , most] = opened;
      const newest = opened.at(-1);
      if (!oldest || !reader || !most || !newest || !other) throw new Error('too few watches');
      reader.stream.writableLength = 0;
      most.stream.writableLength += 10;
      // What the reader took is room for a small change.
      own.put(serviceOf('cart', { ports: [{ port: 1 }] }));
      expect(opened.filter(({ state }) => state.isDestroyed)).toEqual([]);
      own.put(podOf('shop', 'shop-1', { isReady: false }));
      expect([most, newest].map(({ state }) => state.isDestroyed)).toEqual([true, true]);
      expect([reader, oldest, other].map(({ state }) => state.isDestroyed)).toEqual([false, false, false]);
      const left = opened.filter(({ state }) => !state.isDestroyed);
      expect(left.every(({ state }) => state.text.includes('MODIFIED'))).toBe(true);
      expect(opened.filter(({ state }) => state.isDestroyed && state.text.includes('MODIFIED'))).toEqual([]);
      expect(sumOf(left)).toBeLessThanOrEqual(max * MIB);
      // No more than needed.
      expect(sumOf(left)).toBeGreaterThan(max * MIB - 3 * reader.stream.writableLength);
    });
  });

  it('that nobody reads gets no empty lines: each would take memory', () => {
    const own = new ExportWorld();
    const { state, stream } = watched(own);
    state.text = '';
    stream.writableLength = 1;
    own.clock.advance(BEAT_MS);
    expect(state.text).toBe('');
    stream.writableLength = 0;
    own.clock.advance(BEAT_MS);
    expect(state.text).toBe('\n');
  });

  it('that has ended gets nothing more, and is cut off when nobody reads the rest', async () => {
    const own = new ExportWorld();
    const { state, access, stream } = watched(own);
    stream.writableLength = 1;
    access.isAllowed = false;
    state.text = '';
    own.clock.advance(BEAT_MS);
    await vi.waitFor(() => expect(state.isEnded).toBe(true));
    own.put(serviceOf('shop'));
    expect(state).toMatchObject({ text: '', isDestroyed: false });
    own.clock.advance(BEAT_MS);
    expect(state).toMatchObject({ text: '', isDestroyed: true });
    expect(own.clock.pending).toBe(0);
  });

  it('is counted while it lasts', async () => {
    const own = new ExportWorld();
    const count = async () => (await own.metrics.exportWatches.get()).values[0]?.value;
    const watches = new FeedWatches({ table: own.table, clock: own.clock, metrics: own.metrics });
    expect(await count()).toBe(0);
    const close = watches.open({ group: 'external', namespace: undefined }, streamOf().stream, {
      isAllowed: async () => true,
      isBalancer: true,
    });
    expect(await count()).toBe(1);
    close?.();
    expect(await count()).toBe(0);
  });

  it('is refused when there are too many, until one ends', () => {
    const own = new ExportWorld();
    const { watches, close, scope } = watched(own);
    const open = () => watches.open(scope, streamOf().stream, { isAllowed: async () => true, isBalancer: true });
    for (let index = 1; index < MAX_WATCHES; index++) expect(open()).toBeDefined();
    expect(open()).toBeUndefined();
    close();
    // Once only.
    close();
    expect(open()).toBeDefined();
    expect(open()).toBeUndefined();
  });

  it('is refused to none of the balancers because others watch too much', () => {
    const own = new ExportWorld();
    const { watches, scope } = watched(own);
    const openAs = (isBalancer: boolean) =>
      watches.open(scope, streamOf().stream, { isAllowed: async () => true, isBalancer });
    for (let index = 0; index < MAX_WATCHES; index++) openAs(false);
    expect(openAs(false)).toBeUndefined();
    expect(openAs(true)).toBeDefined();
  });
});
