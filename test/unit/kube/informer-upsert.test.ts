import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { InformerRig } from './support/informer-rig.ts';
import { added, deleted, listEnd, modified, pod } from './support/rig.ts';
import type { Exchange } from './support/scripted-server.ts';

describe('SharedInformer.upsert', () => {
  let rig: InformerRig;
  let watch: Exchange;
  beforeEach(async () => {
    rig = await InformerRig.start();
    watch = await rig.sync(100, added(pod('a', 99)));
    await rig.take(1);
  });
  afterEach(async () => rig.stop());

  it('stores a newer version at once, and the watch brings no second update', async () => {
    rig.informer.upsert(pod('a', 101));
    expect(rig.seen).toEqual(['update a@99 a@101']);
    expect(rig.informer.get('ns/a')?.resourceVersion).toBe('101');
    watch.send(modified(pod('a', 100)), modified(pod('a', 101)), modified(pod('a', 102)));
    expect(await rig.take(2)).toEqual(['update a@99 a@101', 'update a@101 a@102']);
  });

  it('compares versions as numbers', () => {
    rig.informer.upsert(pod('a', 100));
    rig.informer.upsert(pod('a', 99));
    expect(rig.seen).toEqual(['update a@99 a@100']);
  });

  it.each([
    ['an older version', pod('a', 98)],
    ['the same version', pod('a', 99)],
    ['another incarnation', pod('a', 101, { uid: 'other' })],
    ['an object that is not cached', pod('b', 101)],
  ])('ignores %s', (_what, raw) => {
    rig.informer.upsert(raw);
    expect(rig.seen).toEqual([]);
    expect(rig.informer.list()).toMatchObject([{ name: 'a', resourceVersion: '99' }]);
  });

  it('does not bring back what was deleted', async () => {
    watch.send(deleted(pod('a', 101)));
    await rig.take(1);
    rig.informer.upsert(pod('a', 100));
    expect(rig.informer.list()).toEqual([]);
  });

  it('hands on the version of its own event, without reading it again', async () => {
    const versions: string[] = [];
    rig.informer.addHandler({ onProgress: (version) => versions.push(version) });
    rig.informer.upsert(pod('a', 101));
    // No JSON any more, from the place on where nobody has to look.
    const line = JSON.stringify(modified(pod('a', 101))).replace('"spec":{}', '"spec":');
    watch.send(`${line}\n`);
    watch.send(added(pod('b', 102)));
    expect(await rig.take(2)).toEqual(['update a@99 a@101', 'add b@102']);
    expect(versions).toEqual(['101', '102']);
  });

  it('is forgotten with its event, also with one whose line has to be parsed, as that of a CustomResource', async () => {
    rig.informer.upsert(pod('a', 101));
    const { apiVersion, kind, metadata } = pod('a', 101);
    const event = { type: 'MODIFIED', object: { apiVersion, kind, metadata } };
    watch.send(`${JSON.stringify(event)}\n`);
    // Nobody sends that version once more: whether this line is parsed shows whether the write is still remembered.
    const line = JSON.stringify(modified(pod('a', 101))).replace('"spec":{}', '"spec":');
    watch.send(`${line}\n`);
    await rig.interruption();
    expect(await rig.total('informerParseErrors')).toBe(1);
  });

  it('is forgotten where a list comes between: a cluster that went back gives the version to another change', async () => {
    rig.informer.upsert(pod('a', 101));
    rig.informer.wasRolledBack();
    rig.clock.advance(await rig.interruption());
    const relisted = await rig.server.next();
    relisted.send(added(pod('a', 50)), listEnd(50), modified(pod('a', 101)));
    expect(await rig.take(3)).toEqual(['update a@99 a@101', 'update a@101 a@50', 'update a@50 a@101']);
  });

  it('is followed by a deletion of the very version that it stored', async () => {
    rig.informer.upsert(pod('a', 101));
    watch.send(deleted(pod('a', 101)));
    expect(await rig.take(2)).toEqual(['update a@99 a@101', 'delete a@101']);
  });

  it('is followed by a deletion that is older: the object had lost its label before, and nothing else would show it', async () => {
    rig.informer.upsert(pod('a', 101));
    watch.send(deleted(pod('a', 100)), added(pod('b', 102)));
    expect(await rig.take(3)).toEqual(['update a@99 a@101', 'delete a@101', 'add b@102']);
    expect(rig.informer.get('ns/a')).toBeUndefined();
  });

  it('is seen again where the object comes back with its label', async () => {
    rig.informer.upsert(pod('a', 103));
    watch.send(deleted(pod('a', 100)), added(pod('a', 102)), modified(pod('a', 103)));
    expect(await rig.take(4)).toEqual(['update a@99 a@103', 'delete a@103', 'add a@102', 'update a@102 a@103']);
  });

  it('is not removed by a deletion of an earlier life', async () => {
    watch.send(deleted(pod('a', 100)), added(pod('a', 101, { uid: 'second' })));
    await rig.take(2);
    rig.informer.upsert(pod('a', 105, { uid: 'second' }));
    watch.send(deleted(pod('a', 103)), added(pod('b', 106)));
    expect(await rig.take(2)).toEqual(['update a@101 a@105', 'add b@106']);
  });

  it('does not move the point where the watch resumes', async () => {
    rig.informer.upsert(pod('a', 150));
    watch.end();
    const resumed = await rig.server.next();
    expect(resumed.query.resourceVersion).toBe('100');
    resumed.send(added(pod('b', 120)), modified(pod('a', 150)), modified(pod('b', 151)));
    expect(await rig.take(3)).toEqual(['update a@99 a@150', 'add b@120', 'update b@120 b@151']);
  });
});
