import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { settle } from '../../support/fake-clock.ts';
import { InformerRig } from './support/informer-rig.ts';
import { added, bookmark, deleted, listEnd, modified, pod } from './support/rig.ts';
import { until } from './support/until.ts';

describe('SharedInformer on a silent watch', () => {
  let rig: InformerRig;
  beforeEach(async () => {
    rig = await InformerRig.start();
  });
  afterEach(async () => rig.stop());

  it.each([1, 60_000])('cuts it after 120 s without a byte and resumes at once (last byte at %i ms)', async (ms) => {
    const watch = await rig.sync(5);
    rig.clock.advance(ms);
    watch.send(bookmark(8));
    await until(() => rig.informer.lastEventAgeMs() === 0, 'the bookmark');
    rig.clock.advance(119_999);
    await settle();
    expect(rig.logs).toEqual([]);
    rig.clock.advance(1);
    await until(() => rig.logs.length > 0, 'the line about it');
    expect(rig.logs).toMatchObject([{ err: { message: 'no data for 120 s' } }]);
    expect(await rig.interruption()).toBe(0);
    await until(() => watch.isClosed, 'the cut');
    expect((await rig.server.next()).query.resourceVersion).toBe('8');
  });

  it('lists anew after two silent watches in a row, and takes the older state of a restored cluster', async () => {
    const [same, other] = [pod('same', 100), pod('again', 50, { uid: 'one' })];
    await rig.sync(500, added(pod('a', 400)), added(pod('b', 450)), added(same), added(other));
    await rig.take(4);
    rig.clock.advance(120_000);
    expect(await rig.interruption()).toBe(0);
    const second = await rig.server.next();
    second.send();
    await rig.opened();
    rig.clock.advance(120_000);
    expect(await rig.interruption()).toBe(1000);
    rig.clock.advance(1000);
    const third = await rig.server.next();
    expect(third.query.sendInitialEvents).toBe('true');
    const forgotten: unknown[] = [];
    rig.informer.addHandler({ onDelete: ({ name }, isForgotten) => forgotten.push([name, isForgotten]) });
    third.send(added(pod('a', 300)), added(same), added(pod('again', 50, { uid: 'two' })), listEnd(310));
    expect(await rig.take(4)).toEqual(['update a@400 a@300', 'delete again@50', 'add again@50', 'delete b@450']);
    third.send(modified(pod('a', 311)), deleted(pod('a', 312)));
    expect(await rig.take(2)).toEqual(['update a@300 a@311', 'delete a@312']);
    expect(forgotten).toEqual([
      ['again', true],
      ['b', true],
      ['a', false],
    ]);
  });

  it('lists anew when another request has shown that the cluster went back, and believes the list, once a minute', async () => {
    await rig.sync(500, added(pod('a', 400)));
    await rig.take(1);
    rig.informer.wasRolledBack();
    expect(await rig.interruption()).toBe(1000);
    rig.clock.advance(1000);
    const second = await rig.server.next();
    expect(second.query.sendInitialEvents).toBe('true');
    // Told again while it lists. So much was written since that the list has a later version than the watch had.
    rig.informer.wasRolledBack();
    second.send(added(pod('a', 300)), listEnd(600));
    expect(await rig.take(1)).toEqual(['update a@400 a@300']);
    rig.clock.advance(58_999);
    rig.informer.wasRolledBack();
    expect(await rig.total('informerRelists')).toBe(1);
    rig.clock.advance(1);
    rig.informer.wasRolledBack();
    await until(async () => (await rig.total('informerRelists')) === 2, 'the second list');
  });

  it('lists when the cluster went back while no watch was open', async () => {
    const watch = await rig.sync(500, added(pod('a', 400)));
    await rig.take(1);
    watch.cut();
    const delayMs = await rig.interruption();
    rig.informer.wasRolledBack();
    rig.clock.advance(delayMs);
    const second = await rig.server.next();
    expect(second.query.sendInitialEvents).toBe('true');
    second.send(added(pod('a', 300)), listEnd(310));
    expect(await rig.take(1)).toEqual(['update a@400 a@300']);
  });

  it.each([
    [14_999, 0],
    [15_000, 1],
  ])('lists anew after the process was stopped, and not after a busy while: %i ms', async (ms, relists) => {
    const watch = await rig.sync(5, added(pod('a', 1)));
    await rig.take(1);
    rig.clock.stopFor(ms);
    rig.clock.advance(0);
    await settle();
    if (relists === 0) {
      expect(await rig.total('informerRelists')).toBe(0);
      watch.send(modified(pod('a', 6)));
      expect(await rig.take(1)).toEqual(['update a@1 a@6']);
      return;
    }
    rig.clock.advance(await rig.interruption());
    expect(await rig.total('informerRelists')).toBe(1);
    const second = await rig.server.next();
    expect(second.query.sendInitialEvents).toBe('true');
    second.send(added(pod('b', 9)), listEnd(12));
    expect(await rig.take(2)).toEqual(['add b@9', 'delete a@1']);
  });

  it('does not take two silent watches for a restored cluster when one between them had a sign of life', async () => {
    await rig.sync(5);
    rig.clock.advance(120_000);
    expect(await rig.interruption()).toBe(0);
    const second = await rig.server.next();
    second.send(bookmark(6));
    await until(() => rig.informer.lastEventAgeMs() === 0, 'the bookmark');
    rig.clock.advance(120_000);
    expect(await rig.interruption()).toBe(0);
    expect((await rig.server.next()).query.resourceVersion).toBe('6');
  });

  it('goes on after a bookmark of the version that was seen: nothing has happened', async () => {
    const watch = await rig.sync(500);
    watch.send(bookmark(500), added(pod('a', 501)));
    expect(await rig.take(1)).toEqual(['add a@501']);
    expect(await rig.total('informerRelists')).toBe(0);
  });

  it('lists anew when a bookmark is older than what was seen', async () => {
    const watch = await rig.sync(500);
    watch.send(bookmark(300));
    expect(await rig.interruption()).toBe(1000);
    rig.clock.advance(1000);
    expect((await rig.server.next()).query.sendInitialEvents).toBe('true');
  });
});
