import { describe, expect, it } from 'vitest';
import { settle } from '../../support/fake-clock.ts';
import { InformerRig } from './support/informer-rig.ts';
import { errorEvent, modified, pod, statusOf } from './support/rig.ts';
import { until } from './support/until.ts';

describe('SharedInformer on a server without streaming lists', () => {
  const page = (resourceVersion: number, names: string[], next?: string) => ({
    kind: 'PodList',
    metadata: { resourceVersion: String(resourceVersion), ...(next ? { continue: next } : {}) },
    items: names.map((name, i) => pod(name, i + 1)),
  });

  it.each([400, 422])(
    'falls back to pages after %d, watches from their version, and stays with them',
    async (status) => {
      const rig = await InformerRig.start({ labelSelector: 'a=b' });
      (await rig.server.next()).reply(status, statusOf(status, 'Invalid'));
      expect(await rig.interruption()).toBe(0);
      const first = await rig.server.next();
      expect(first.query).toEqual({ labelSelector: 'a=b', limit: '500' });
      first.reply(200, page(10, ['a', 'b'], 'token/+ 1'));
      const second = await rig.server.next();
      expect(second.query).toEqual({ labelSelector: 'a=b', limit: '500', continue: 'token/+ 1' });
      expect(rig.informer.hasSynced()).toBe(false);
      second.reply(200, page(10, ['c']));
      const watch = await rig.server.next();
      expect(watch.query).toMatchObject({ watch: 'true', resourceVersion: '10' });
      expect(watch.query.sendInitialEvents).toBeUndefined();
      expect(rig.seen).toEqual(['add a@1', 'add b@2', 'add c@1']);
      watch.send(modified(pod('a', 11)), errorEvent(410, 'Expired'));
      expect(await rig.interruption()).toBe(1000);
      rig.clock.advance(1000);
      expect((await rig.server.next()).query).toEqual({ labelSelector: 'a=b', limit: '500' });
      await rig.stop();
    },
  );

  it('reads kinds whose objects may be large by smaller pages', async () => {
    const rig = await InformerRig.start({ pageSize: 50 });
    (await rig.server.next()).reply(400, statusOf(400, 'BadRequest'));
    expect(await rig.interruption()).toBe(0);
    expect((await rig.server.next()).query).toEqual({ limit: '50' });
    await rig.stop();
  });

  it('reads a list by pages that failed twice while it was streamed, and streams the next one again', async () => {
    const rig = await InformerRig.start();
    (await rig.server.next()).send(errorEvent(500, 'InternalError'));
    expect(await rig.interruption()).toBe(200);
    rig.clock.advance(200);
    const second = await rig.server.next();
    expect(second.query).toMatchObject({ sendInitialEvents: 'true' });
    second.send(errorEvent(500, 'InternalError'));
    expect(await rig.interruption()).toBe(0);
    const paged = await rig.server.next();
    expect(paged.query).toEqual({ limit: '500' });
    paged.reply(500, statusOf(500, 'InternalError'));
    expect(await rig.interruption()).toBe(400);
    rig.clock.advance(400);
    (await rig.server.next()).reply(200, page(10, ['a']));
    const watch = await rig.server.next();
    expect(rig.informer.hasSynced()).toBe(true);
    watch.send(errorEvent(410, 'Expired'));
    await rig.interruption();
    rig.clock.advance(1000);
    expect((await rig.server.next()).query).toMatchObject({ sendInitialEvents: 'true' });
    await rig.stop();
  });

  it('lives from the moment when the server takes its watch, though nothing comes of an empty list', async () => {
    const rig = await InformerRig.start();
    (await rig.server.next()).reply(400, statusOf(400, 'BadRequest'));
    expect(await rig.interruption()).toBe(0);
    (await rig.server.next()).reply(200, page(10, []));
    const watch = await rig.server.next();
    expect(rig.informer.lastEventAgeMs()).toBe(Number.POSITIVE_INFINITY);
    watch.send();
    await until(() => rig.informer.lastEventAgeMs() === 0, 'the watch');
    rig.clock.advance(100_000);
    expect(rig.informer.lastEventAgeMs()).toBe(100_000);
    await rig.stop();
  });

  it('waits a minute for a page', async () => {
    const rig = await InformerRig.start();
    (await rig.server.next()).reply(400, statusOf(400, 'BadRequest'));
    expect(await rig.interruption()).toBe(0);
    const first = await rig.server.next();
    rig.clock.advance(59_999);
    await settle();
    expect(first.isClosed).toBe(false);
    rig.clock.advance(1);
    expect(await rig.interruption()).toBe(200);
    await rig.stop();
  });

  it('lists from the first page when the server forgets the list on the way', async () => {
    const rig = await InformerRig.start();
    (await rig.server.next()).reply(400, statusOf(400, 'BadRequest'));
    expect(await rig.interruption()).toBe(0);
    (await rig.server.next()).reply(200, page(10, ['a'], 'next'));
    (await rig.server.next()).reply(410, statusOf(410, 'Expired'));
    expect(await rig.interruption()).toBe(200);
    rig.clock.advance(200);
    const again = await rig.server.next();
    expect(again.query).toEqual({ limit: '500' });
    again.reply(200, page(20, ['b']));
    await rig.informer.whenSynced();
    expect(rig.seen).toEqual(['add b@1']);
    await rig.stop();
  });
});
