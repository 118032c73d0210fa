import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { settle } from '../../support/fake-clock.ts';
import { InformerRig } from './support/informer-rig.ts';
import { added, bookmark, listEnd, modified, pod } from './support/rig.ts';
import { until } from './support/until.ts';

describe('the progress of a SharedInformer', () => {
  let rig: InformerRig;
  /** Events and progress in the order in which handlers heard of them. */
  let heard: string[];

  beforeEach(async () => {
    rig = await InformerRig.start({ silenceMs: 15_000 });
    heard = [];
    rig.informer.addHandler({
      onAdd: ({ name }) => heard.push(`add ${name}`),
      onUpdate: (_old, { name }) => heard.push(`update ${name}`),
      onProgress: (resourceVersion) => heard.push(`up to ${resourceVersion}`),
    });
  });
  afterEach(() => rig.stop());

  it('is told after the whole list, never within it, and then after each event and bookmark', async () => {
    const watch = await rig.server.next();
    watch.send(added(pod('b', 4)), added(pod('a', 3)));
    await settle();
    expect(heard).toEqual([]);
    watch.send(listEnd(5));
    await until(() => heard.includes('up to 5'), 'the list');
    expect(heard).toEqual(['add b', 'add a', 'up to 5']);
    watch.send(modified(pod('a', 7)), bookmark(9));
    await until(() => heard.includes('up to 9'), 'the bookmark');
    expect(heard.slice(3)).toEqual(['update a', 'up to 7', 'up to 9']);
  });

  it('is told after a second list too, when all of it was handed over', async () => {
    const watch = await rig.sync(5, added(pod('a', 3)));
    watch.send({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } });
    await rig.interruption();
    rig.clock.advance(1_000);
    heard.length = 0;
    const second = await rig.server.next();
    second.send(added(pod('a', 8)), added(pod('c', 6)), listEnd(10));
    await until(() => heard.includes('up to 10'), 'the second list');
    expect(heard).toEqual(['update a', 'add c', 'up to 10']);
  });

  it('is not told for the answer to a write of our own', async () => {
    await rig.sync(5, added(pod('a', 3)));
    heard.length = 0;
    rig.informer.upsert(pod('a', 8));
    expect(heard).toEqual(['update a']);
  });

  it('ends with a watch on which nothing comes for as long as is said', async () => {
    const watch = await rig.sync(5);
    rig.clock.advance(14_999);
    await settle();
    expect(watch.isClosed).toBe(false);
    rig.clock.advance(1);
    await until(() => watch.isClosed, 'the cut');
    expect((await rig.server.next()).query.resourceVersion).toBe('5');
  });
});
