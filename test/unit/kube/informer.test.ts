import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { InformerRig } from './support/informer-rig.ts';
import { added, bookmark, deleted, listEnd, modified, pod } from './support/rig.ts';
import { until } from './support/until.ts';

describe('SharedInformer', () => {
  let rig: InformerRig;
  beforeEach(async () => {
    rig = await InformerRig.start({ labelSelector: 'a=b,c in (d)', fieldSelector: 'spec.nodeName!=' });
  });
  afterEach(async () => rig.stop());

  it('asks for a streaming list of what it is to cache, with bookmarks', async () => {
    const watch = await rig.server.next();
    expect(watch.url.pathname).toBe('/api/v1/pods');
    expect(watch.query).toEqual({
      labelSelector: 'a=b,c in (d)',
      fieldSelector: 'spec.nodeName!=',
      watch: 'true',
      allowWatchBookmarks: 'true',
      sendInitialEvents: 'true',
      resourceVersionMatch: 'NotOlderThan',
      timeoutSeconds: '600',
    });
  });

  it('is synced at the marked bookmark and not before, when handlers have seen the list', async () => {
    const watch = await rig.server.next();
    watch.send(added(pod('a', 1)), bookmark(3), added(pod('b', 2)));
    await until(() => rig.informer.lastEventAgeMs() === 0, 'bytes');
    expect(rig.informer.hasSynced()).toBe(false);
    expect(rig.informer.get('ns/a')).toBeUndefined();
    const seenAtSync = rig.informer.whenSynced().then((isSynced) => [isSynced, ...rig.seen]);
    watch.send(listEnd(5));
    expect(await seenAtSync).toEqual([true, 'add a@1', 'add b@2']);
    expect(rig.informer.hasSynced()).toBe(true);
    expect(rig.informer.list()).toHaveLength(2);
  });

  it('passes on changes that come before the list is whole in their last state', async () => {
    await rig.sync(9, added(pod('a', 1)), added(pod('b', 2)), modified(pod('a', 7)), deleted(pod('b', 8)));
    expect(rig.seen).toEqual(['add a@7']);
  });

  it('passes on adds, updates and deletions, and ignores what it has seen', async () => {
    const watch = await rig.sync(5, added(pod('a', 1)));
    watch.send(added(pod('b', 6)), modified(pod('a', 7)), modified(pod('a', 7)), modified(pod('a', 2)));
    watch.send(deleted(pod('a', 8)), deleted(pod('a', 8)), modified(pod('b', 9)));
    expect(await rig.take(5)).toEqual(['add a@1', 'add b@6', 'update a@1 a@7', 'delete a@8', 'update b@6 b@9']);
  });

  it('parses no deletion: the cache has the last state, and the line has its version', async () => {
    const watch = await rig.sync(5, added(pod('a', 1, { nodeName: 'n1' })));
    const last: (string | undefined)[] = [];
    rig.informer.addHandler({ onDelete: ({ resourceVersion, nodeName }) => void last.push(nodeName, resourceVersion) });
    const line = JSON.stringify(deleted(pod('a', 8, { nodeName: 'n2' })));
    watch.send(`${line.slice(0, line.indexOf('"spec"'))}\n`);
    watch.send(added(pod('b', 9)));
    expect(await rig.take(3)).toEqual(['add a@1', 'delete a@8', 'add b@9']);
    expect(last).toEqual(['n1', '8']);
    expect(await rig.total('informerParseErrors')).toBe(0);
  });

  it('reads a deletion where another order of the fields hides what it is about', async () => {
    const watch = await rig.sync(5, added(pod('a', 1)));
    const { metadata, ...rest } = pod('a', 8);
    watch.send(deleted({ metadata, ...rest }));
    expect(await rig.take(2)).toEqual(['add a@1', 'delete a@8']);
  });

  it('finds objects by index as they come, move and go', async () => {
    const nodes = () => ['n1', 'n2'].map((node) => rig.informer.byIndex('node', node).map(({ name }) => name));
    const on = (name: string, version: number, nodeName?: string) => pod(name, version, nodeName ? { nodeName } : {});
    const watch = await rig.sync(5, added(on('a', 1, 'n1')), added(on('b', 2, 'n1')), added(on('c', 3)));
    expect(nodes()).toEqual([['a', 'b'], []]);
    watch.send(modified(on('b', 6, 'n2')), modified(on('c', 7, 'n2')), deleted(on('a', 8, 'n1')));
    await rig.take(6);
    expect(nodes()).toEqual([[], ['b', 'c']]);
    expect(() => rig.informer.byIndex('no-such', 'x')).toThrow(RangeError);
  });

  it('hands the cache to a late handler as adds', async () => {
    await rig.sync(5, added(pod('a', 1)), added(pod('b', 2)));
    const names: string[] = [];
    rig.informer.addHandler({ onAdd: ({ name }) => void names.push(name) });
    expect(names).toEqual(['a', 'b']);
  });

  it('goes on when a handler throws, and counts it', async () => {
    rig.informer.addHandler({
      onAdd: () => {
        throw new Error('bad handler');
      },
    });
    const after: string[] = [];
    rig.informer.addHandler({ onAdd: ({ name }) => void after.push(name) });
    const watch = await rig.sync(5, added(pod('a', 1)));
    watch.send(added(pod('b', 6)));
    await until(() => after.length === 2, 'the handler behind the bad one');
    expect(after).toEqual(['a', 'b']);
    expect(await rig.total('informerHandlerErrors')).toBe(2);
    expect(await rig.total('informerParseErrors')).toBe(0);
  });

  it('resolves whenSynced with false on abort', async () => {
    const abort = new AbortController();
    const synced = rig.informer.whenSynced(abort.signal);
    abort.abort();
    expect(await synced).toBe(false);
    expect(await rig.informer.whenSynced(abort.signal)).toBe(false);
  });

  it('closes its connection when it is stopped', async () => {
    const watch = await rig.sync(5);
    await rig.stop();
    await until(() => watch.isClosed, 'the end of the connection');
  });

  it('tells the age of the last sign of life', async () => {
    expect(rig.informer.lastEventAgeMs()).toBe(Number.POSITIVE_INFINITY);
    const watch = await rig.sync(5);
    rig.clock.advance(42_000);
    expect(rig.informer.lastEventAgeMs()).toBe(42_000);
    const { values } = await rig.metrics.informerLastEventAge.get();
    expect(values).toMatchObject([{ labels: { kind: 'pods' }, value: 40 }]);
    watch.send(bookmark(6));
    await until(() => rig.informer.lastEventAgeMs() === 0, 'the bookmark');
  });
});

describe('SharedInformer with an object that project cannot handle', () => {
  it('leaves that one out and counts it', async () => {
    const rig = await InformerRig.start({
      project: (raw) => {
        if (raw.metadata.name === 'bad') throw new TypeError('no spec');
        const { name, uid = '', resourceVersion = '' } = raw.metadata;
        return { namespace: '', name, uid, resourceVersion, nodeName: undefined };
      },
    });
    await rig.sync(5, added(pod('bad', 1)), added(pod('good', 2)));
    expect(rig.informer.list().map(({ name }) => name)).toEqual(['good']);
    expect(rig.informer.get('good')).toBeDefined();
    expect(await rig.total('informerHandlerErrors')).toBe(1);
    await rig.stop();
  });

  it('removes that one when it is deleted', async () => {
    let isBad = false;
    const rig = await InformerRig.start({
      project: (raw) => {
        if (isBad) throw new TypeError('no spec');
        const { namespace = '', name, uid = '', resourceVersion = '' } = raw.metadata;
        return { namespace, name, uid, resourceVersion, nodeName: undefined };
      },
    });
    const watch = await rig.sync(5, added(pod('bad', 1)));
    expect(rig.informer.get('ns/bad')).toBeDefined();
    isBad = true;
    watch.send(deleted(pod('bad', 6)));
    await until(() => rig.informer.get('ns/bad') === undefined, 'the deletion');
    await rig.stop();
  });
});
