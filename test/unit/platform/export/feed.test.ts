import { EventEmitter, once } from 'node:events';
import { get as getPlain } from 'node:http';
import { connect } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it, vi } from 'vitest';
import type { ExportTable } from '../../../../src/platform/export/export-table.ts';
import type { Access } from '../../../../src/platform/export/feed-access.ts';
import { FeedLists } from '../../../../src/platform/export/feed-lists.ts';
import { ExportWorld, fleet, podOf, serviceOf } from './export-world.ts';
import { BEAT_MS, MIB, readLines, requestOf, SCOPE, serve } from './feed-server.ts';

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

  it('answers HEAD as GET without a body, also about a watch, which it does not open', async () => {
    const own = world();
    const { get, head } = await serve(own);
    const etag = (await get('?group=external')).headers.get('etag');
    expect((await head('?group=external')).headers.get('etag')).toBe(etag);
    const answer = await head('?group=external&watch=1');
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/x-ndjson']);
    expect(await answer.text()).toBe('');
    expect(await own.metrics.registry.metrics()).not.toMatch(/export_watches\S* [1-9]/);
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

  it('has a strong ETag where it is too short for gzip', async () => {
    const { get } = await serve(world());
    const accepting = { 'Accept-Encoding': 'gzip' };
    const etag = (await get('?group=external', accepting)).headers.get('etag') ?? '';
    expect(etag).toMatch(/^"/);
    const again = await get('?group=external', { ...accepting, 'If-None-Match': etag });
    expect([again.status, again.headers.get('etag')]).toEqual([304, etag]);
  });

  it('is a list with `watch=0` and `watch=false`', async () => {
    const { get } = await serve(world());
    for (const query of ['?group=external&watch=0', '?group=external&watch=false'])
      expect((await get(query)).headers.get('content-type')).toContain('application/json');
  });

  it('is compressed for who takes gzip, once for each version, and has a weak ETag then', async () => {
    const own = world().put(...fleet('shop', 40));
    const { port, lists } = await serve(own);
    const ask = async (headers: Record<string, string>) => {
      const asked = getPlain({ port, host: '127.0.0.1', path: '/v1/exportservices?group=external', headers });
      const [response] = await once(asked, 'response');
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk);
      const { etag, vary, 'content-encoding': encoding } = response.headers;
      return { status: response.statusCode, etag, vary, encoding, bytes: Buffer.concat(chunks) };
    };
    const plain = await ask({});
    expect([plain.encoding, plain.vary]).toEqual([undefined, 'Authorization, Accept-Encoding']);
    for (const accepted of ['identity', 'br', 'gzip;q=0'])
      expect(await ask({ 'accept-encoding': accepted })).toEqual(plain);
    const first = lists.compressedOf(SCOPE);
    const compressed = await ask({ 'accept-encoding': 'gzip, deflate, br' });
    expect(lists.compressedOf(SCOPE)).toBe(first);
    expect(compressed).toMatchObject({ encoding: 'gzip', etag: `W/${plain.etag}`, vary: plain.vary });
    expect(compressed.bytes.length).toBeLessThan(plain.bytes.length / 2);
    expect(gunzipSync(compressed.bytes)).toEqual(plain.bytes);
    const known = { 'if-none-match': compressed.etag ?? '', 'accept-encoding': 'gzip' };
    expect(await ask(known)).toMatchObject({ status: 304, etag: compressed.etag, vary: plain.vary });
    const knownPlain = { 'if-none-match': compressed.etag ?? '' };
    expect(await ask(knownPlain)).toMatchObject({ status: 304, etag: plain.etag, vary: plain.vary });
    own.put(podOf('shop', 'shop-1', { isReady: false }));
    const changed = await ask({ 'accept-encoding': 'gzip' });
    expect(gunzipSync(changed.bytes)).toEqual((await ask({})).bytes);
    expect(gunzipSync(changed.bytes)).not.toEqual(plain.bytes);
  });

  it.each([
    ['', 400, 'group: is required'],
    ['?group=', 400, 'group: is required'],
    ['?group=a&group=b', 400, 'group: must be given once'],
    ['?group=a&namespace=No_Such', 400, 'namespace: must be given once, and must be the name of a namespace'],
    ['?group=a&namespace=', 400, 'namespace: must be given once'],
    ['?group=a&grop=b', 400, 'grop: unknown parameter, use group, namespace, watch'],
    ['?group=a&watch=2', 400, 'watch: must be one of 1, true, 0, false'],
    ['?group=a&watch=yes', 400, 'watch: must be one of 1, true, 0, false'],
    ['?group=a&watch=', 400, 'watch: must be one of 1, true, 0, false'],
    ['?group=a&watch=1&watch=1', 400, 'watch: must be one of 1, true, 0, false, and given once'],
    ['?group=a&Watch=1', 400, 'Watch: unknown parameter, use group, namespace, watch'],
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

  it('answers 405 to a method that it does not serve', async () => {
    const { port } = await serve(world());
    const answer = await fetch(`http://127.0.0.1:${port}/v1/exportservices?group=external`, { method: 'POST' });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
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

  it('asks about the owner of a watch again and again, as of one who has a watch', async () => {
    const own = world();
    const { get, asked } = await serve(own);
    const response = await get('?group=external&watch=1', { Authorization: 'Bearer t' });
    await readLines(response, 2);
    own.clock.advance(BEAT_MS);
    const question = ['Bearer t', SCOPE];
    expect(asked).toEqual([question, [...question, 'watching']]);
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
