import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { settle } from '../../support/fake-clock.ts';
import { InformerRig } from './support/informer-rig.ts';
import { added, bookmark, deleted, errorEvent, listEnd, modified, pod, statusOf } from './support/rig.ts';
import { until } from './support/until.ts';

describe('SharedInformer after the end of a watch', () => {
  let rig: InformerRig;
  beforeEach(async () => {
    rig = await InformerRig.start();
  });
  afterEach(async () => rig.stop());

  it('resumes at once from the last event or bookmark when the server ends the watch in good order', async () => {
    const watch = await rig.sync(5, added(pod('a', 1)));
    watch.send(modified(pod('a', 7)));
    watch.end();
    const second = await rig.server.next();
    expect(second.query).toEqual({
      watch: 'true',
      allowWatchBookmarks: 'true',
      timeoutSeconds: '600',
      resourceVersion: '7',
    });
    second.send(bookmark(30));
    second.end();
    expect((await rig.server.next()).query.resourceVersion).toBe('30');
    expect(rig.logs).toEqual([]);
  });

  it('waits longer and longer after failures, and starts over after a second of health', async () => {
    let watch = await rig.sync(5);
    for (const delayMs of [200, 400, 800, 1600]) {
      watch.cut();
      expect(await rig.interruption()).toBe(delayMs);
      rig.clock.advance(delayMs - 1);
      await settle();
      rig.clock.advance(1);
      watch = await rig.server.next();
      expect(watch.query.resourceVersion).toBe('5');
    }
    watch.send();
    await rig.opened();
    rig.clock.advance(1_000);
    watch.cut();
    expect(await rig.interruption()).toBe(200);
  });

  it('resumes soon each time when a quiet watch is cut each 5 s', async () => {
    let watch = await rig.sync(5);
    for (let cuts = 0; cuts < 5; cuts++) {
      rig.clock.advance(5_000);
      watch.cut();
      expect(await rig.interruption()).toBe(200);
      rig.clock.advance(200);
      watch = await rig.server.next();
      watch.send();
      await rig.opened();
    }
  });

  it('waits longer and longer for a list that breaks off again and again, however long it took', async () => {
    let watch = await rig.server.next();
    for (const delayMs of [200, 400, 800]) {
      watch.send();
      await rig.opened();
      rig.clock.advance(5_000);
      watch.cut();
      expect(await rig.interruption()).toBe(delayMs);
      rig.clock.advance(delayMs);
      watch = await rig.server.next();
    }
  });

  it('lists ever more rarely while each watch ends as expired, however long its list took', async () => {
    let watch = await rig.sync(5);
    for (const delayMs of [1000, 1000, 1000, 1600, 3200]) {
      watch.send(errorEvent(410, 'Expired'));
      expect(await rig.interruption()).toBe(delayMs);
      rig.clock.advance(delayMs);
      watch = await rig.server.next();
      watch.send();
      await rig.opened();
      rig.clock.advance(5_000);
      watch.send(listEnd(5));
    }
    await until(() => rig.informer.lastEventAgeMs() === 0, 'the last list');
    rig.clock.advance(1_000);
    watch.send(errorEvent(410, 'Expired'));
    expect(await rig.interruption()).toBe(1000);
  });

  it('waits at most 5 s, and as long as Retry-After asks, but no hour', async () => {
    const watch = await rig.sync(5);
    watch.cut();
    for (const expected of [200, 400, 800, 1600, 3200, 5000, 5000]) {
      expect(await rig.interruption()).toBe(expected);
      rig.clock.advance(expected);
      (await rig.server.next()).reply(500, statusOf(500, 'InternalError'));
    }
    for (const [asked, waited] of [
      ['30', 30_000],
      ['3600', 60_000],
    ] as const) {
      rig.clock.advance(await rig.interruption());
      (await rig.server.next()).reply(429, statusOf(429, 'TooManyRequests'), { 'retry-after': asked });
      expect(await rig.interruption()).toBe(waited);
      rig.clock.advance(waited);
      (await rig.server.next()).reply(500, statusOf(500, 'InternalError'));
    }
  });

  it('takes a watch that ends within a second without an event for a failure', async () => {
    const watch = await rig.sync(5);
    rig.clock.advance(60_000);
    watch.end();
    const second = await rig.server.next();
    second.send();
    await rig.opened();
    rig.clock.advance(999);
    second.end();
    expect(await rig.interruption()).toBe(200);
    rig.clock.advance(200);
    const third = await rig.server.next();
    third.send();
    await rig.opened();
    rig.clock.advance(1_000);
    third.end();
    await rig.server.next();
    expect(rig.logs).toEqual([]);
  });

  it('takes a watch whose headers do not come within 30 s for a failure', async () => {
    const watch = await rig.sync(5);
    watch.end();
    const second = await rig.server.next();
    rig.clock.advance(29_999);
    await settle();
    expect(second.isClosed).toBe(false);
    rig.clock.advance(1);
    expect(await rig.interruption()).toBe(200);
    await until(() => second.isClosed, 'the cut');
  });

  it.each([
    [0, '300'],
    [0.999, '599'],
    [1, '600'],
  ])('asks for a watch of 5 to 10 minutes, by chance (%d: %s s)', async (random, timeoutSeconds) => {
    await rig.stop();
    rig = await InformerRig.start({ random: () => random });
    expect((await rig.server.next()).query).toMatchObject({ timeoutSeconds });
  });

  it.each([
    ['answer', 'status'],
    ['event', 'event'],
  ])('lists anew when 410 comes as an %s, and passes on only what changed, deletions last', async (_what, form) => {
    const watch = await rig.sync(5, ...['kept', 'changed', 'gone'].map((name, i) => added(pod(name, i + 1))));
    await rig.take(3);
    if (form === 'event') watch.send(modified(pod('kept', 6)), errorEvent(410, 'Expired'));
    else {
      watch.send(modified(pod('kept', 6)));
      watch.end();
      (await rig.server.next()).reply(410, statusOf(410, 'Expired'));
    }
    expect(await rig.interruption()).toBe(1000);
    expect(await rig.take(1)).toEqual(['update kept@1 kept@6']);
    rig.clock.advance(1000);
    const second = await rig.server.next();
    expect(second.query).toMatchObject({ sendInitialEvents: 'true' });
    expect(second.query.resourceVersion).toBeUndefined();
    second.send(added(pod('changed', 9)), added(pod('kept', 6)), added(pod('new', 10)), listEnd(12));
    expect(await rig.take(3)).toEqual(['update changed@2 changed@9', 'add new@10', 'delete gone@3']);
    expect(await rig.total('informerRelists')).toBe(1);
    second.end();
    expect((await rig.server.next()).query.resourceVersion).toBe('12');
  });

  it('shows a new incarnation of a name as a deletion and an add, after a list and in the stream', async () => {
    const watch = await rig.sync(5, added(pod('a', 1, { uid: 'one' })), added(pod('b', 2, { uid: 'one' })));
    await rig.take(2);
    watch.send(added(pod('b', 6, { uid: 'two' })));
    expect(await rig.take(2)).toEqual(['delete b@2', 'add b@6']);
    watch.send(errorEvent(410, 'Expired'));
    rig.clock.advance(await rig.interruption());
    (await rig.server.next()).send(added(pod('b', 6, { uid: 'two' })), added(pod('a', 8, { uid: 'two' })), listEnd(9));
    expect(await rig.take(2)).toEqual(['delete a@1', 'add a@8']);
  });

  it('ignores the late deletion of an earlier incarnation', async () => {
    const watch = await rig.sync(9, added(pod('a', 8, { uid: 'two' })));
    watch.send(deleted(pod('a', 7, { uid: 'one' })), added(pod('b', 10)));
    expect(await rig.take(2)).toEqual(['add a@8', 'add b@10']);
  });

  it('keeps the cache and its answers when a new list breaks off', async () => {
    const watch = await rig.sync(5, added(pod('a', 1)), added(pod('b', 2)));
    await rig.take(2);
    watch.send(errorEvent(410, 'Expired'));
    rig.clock.advance(await rig.interruption());
    const broken = await rig.server.next();
    broken.send(added(pod('c', 8)));
    await until(() => rig.informer.lastEventAgeMs() === 0, 'a part of the list');
    broken.end();
    expect(await rig.interruption()).toBe(200);
    expect(rig.seen).toEqual([]);
    expect(rig.informer.hasSynced()).toBe(true);
    expect(rig.informer.list().map(({ name }) => name)).toEqual(['a', 'b']);
    rig.clock.advance(200);
    // What the broken list had is void: c is gone meanwhile.
    (await rig.server.next()).send(added(pod('a', 1)), listEnd(11));
    expect(await rig.take(1)).toEqual(['delete b@2']);
  });

  it.each([5, 10])('keeps a write of its own that is newer than a list of version %i', async (version) => {
    const watch = await rig.sync(5, added(pod('a', 1)));
    watch.send(errorEvent(410, 'Expired'));
    rig.clock.advance(await rig.interruption());
    const second = await rig.server.next();
    second.send(added(pod('a', 1)));
    rig.informer.upsert(pod('a', 20));
    second.send(listEnd(version), modified(pod('a', 20)), added(pod('b', 21)));
    expect(await rig.take(3)).toEqual(['add a@1', 'update a@1 a@20', 'add b@21']);
  });

  it('reconnects after a damaged line, from before it', async () => {
    const watch = await rig.sync(5);
    watch.send(added(pod('a', 6)), '{"type":"MODI\n', modified(pod('a', 9)));
    rig.clock.advance(await rig.interruption());
    expect((await rig.server.next()).query.resourceVersion).toBe('6');
    expect(rig.seen).toEqual(['add a@6']);
    expect(await rig.total('informerParseErrors')).toBe(1);
  });
});
