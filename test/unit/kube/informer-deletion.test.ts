import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../src/kube/objects.ts';
import { InformerRig } from './support/informer-rig.ts';
import { added, deleted, listEnd, modified, pod } from './support/rig.ts';
import type { Exchange } from './support/scripted-server.ts';

/** No JSON any more, from the place on where nobody has to look. */
function unparsable(object: KubeObject): string {
  return `${JSON.stringify(modified(object)).replace('"spec":{}', '"spec":')}\n`;
}

describe('SharedInformer.expectDeletion', () => {
  let rig: InformerRig;
  let watch: Exchange;
  beforeEach(async () => {
    rig = await InformerRig.start();
    watch = await rig.sync(100, added(pod('a', 98)), added(pod('b', 99)));
    await rig.take(2);
  });
  afterEach(async () => rig.stop());

  it('leaves the event unparsed that ends the grace period', async () => {
    const versions: string[] = [];
    rig.informer.addHandler({ onProgress: (version) => versions.push(version) });
    rig.informer.expectDeletion({ uid: 'uid-a' });
    watch.send(unparsable(pod('a', 101)));
    watch.send(deleted(pod('a', 102)));
    expect(await rig.take(1)).toEqual(['delete a@102']);
    expect(versions).toEqual(['101', '102']);
    expect(await rig.total('informerParseErrors')).toBe(0);
  });

  it('hands on a second change, and those of other objects', async () => {
    rig.informer.expectDeletion({ uid: 'uid-a' });
    watch.send(modified(pod('b', 101)), modified(pod('a', 102)), modified(pod('a', 103)));
    expect(await rig.take(2)).toEqual(['update b@99 b@101', 'update a@98 a@103']);
  });

  it('hands on all changes when the deletion has failed', async () => {
    const deletionFailed = rig.informer.expectDeletion({ uid: 'uid-a' });
    deletionFailed();
    watch.send(modified(pod('a', 101)));
    expect(await rig.take(1)).toEqual(['update a@98 a@101']);
  });

  it('hands on all changes of an object that comes back with its label', async () => {
    rig.informer.expectDeletion({ uid: 'uid-a' });
    watch.send(deleted(pod('a', 101)), added(pod('a', 102)), modified(pod('a', 103)));
    expect(await rig.take(3)).toEqual(['delete a@101', 'add a@102', 'update a@102 a@103']);
  });

  it('hands on all changes after a list', async () => {
    rig.informer.expectDeletion({ uid: 'uid-a' });
    rig.informer.wasRolledBack();
    rig.clock.advance(await rig.interruption());
    const relisted = await rig.server.next();
    relisted.send(added(pod('a', 50)), added(pod('b', 51)), listEnd(52), modified(pod('a', 53)));
    expect(await rig.take(3)).toEqual(['update a@98 a@50', 'update b@99 b@51', 'update a@50 a@53']);
  });
});
