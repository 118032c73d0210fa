import { connect } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import type { Access } from '../../../../src/platform/export/feed-access.ts';
import { FeedWatches, type WatchStream } from '../../../../src/platform/export/feed-watches.ts';
import { ExportWorld, fleet, podOf, serviceOf, TCP_PORT } from './export-world.ts';
import { BEAT_MS, linesOf, MIB, readLines, requestOf, SCOPE, serve } from './feed-server.ts';

const MAX_WATCHES = 500;

async function watchCountOf({ metrics }: ExportWorld): Promise<number | undefined> {
  return (await metrics.exportWatches.get()).values[0]?.value;
}

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
    for (let index = 0; index < MAX_WATCHES; index++)
      watches.open(SCOPE, stream, { isAllowed: async () => true, isBalancer: false });
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

  function watched(own: ExportWorld, scope: { group: string; namespace: string | undefined } = SCOPE) {
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
    const types = linesOf(state.text).map(({ type }) => type);
    expect(types.sort()).toEqual(['ADDED', 'ADDED', 'DELETED', 'DELETED']);
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

  it('gets an empty line every 15 s, by one timer for all', () => {
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
      const close = watches.open(SCOPE, stream, {
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
    await vi.waitFor(async () => expect(await watchCountOf(own)).toBe(1));
    own.clock.advance(BEAT_MS);
    await vi.waitFor(() => expect(asked).toHaveLength(4));
    socket.destroy();
    await vi.waitFor(async () => expect(await watchCountOf(own)).toBe(0));
  });

  it('is refused with 503 while too much is unread', async () => {
    const own = largeWorld();
    const { get, watches } = await serve(own);
    const open = () => watches.open(SCOPE, unreadStreamOf().stream, { isAllowed: async () => true, isBalancer: false });
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
    const watches = new FeedWatches({ table: own.table, clock: own.clock, metrics: own.metrics });
    expect(await watchCountOf(own)).toBe(0);
    const close = watches.open(SCOPE, streamOf().stream, {
      isAllowed: async () => true,
      isBalancer: true,
    });
    expect(await watchCountOf(own)).toBe(1);
    close?.();
    expect(await watchCountOf(own)).toBe(0);
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
