import { beforeEach, describe, expect, it } from 'vitest';
import { OwnWrites } from '../../../src/kube/watch/own-writes.ts';

describe('OwnWrites', () => {
  let writes: OwnWrites;
  beforeEach(() => {
    writes = new OwnWrites();
    writes.add({ uid: 'uid-a', resourceVersion: '101' });
  });

  it('takes the event of a noted write, once', () => {
    expect(writes.take({ uid: 'uid-a', resourceVersion: '101' })).toBe(true);
    expect(writes.take({ uid: 'uid-a', resourceVersion: '101' })).toBe(false);
  });

  it.each([
    ['another version', { uid: 'uid-a', resourceVersion: '102' }],
    ['the same version of another object', { uid: 'uid-b', resourceVersion: '101' }],
  ])('takes no %s', (_what, event) => {
    expect(writes.take(event)).toBe(false);
    expect(writes.take({ uid: 'uid-a', resourceVersion: '101' })).toBe(true);
  });

  it('takes one event of an object that is being deleted, whatever its version', () => {
    writes.addDeletion('uid-b');
    expect(writes.take({ uid: 'uid-b', resourceVersion: '102' })).toBe(true);
    expect(writes.take({ uid: 'uid-b', resourceVersion: '103' })).toBe(false);
  });

  it('takes the event of a noted write of such an object, and the one of its deletion besides', () => {
    writes.addDeletion('uid-a');
    expect(writes.take({ uid: 'uid-a', resourceVersion: '101' })).toBe(true);
    expect(writes.take({ uid: 'uid-a', resourceVersion: '102' })).toBe(true);
    expect(writes.take({ uid: 'uid-a', resourceVersion: '103' })).toBe(false);
  });

  it('takes none of a deletion that has failed', () => {
    writes.addDeletion('uid-b');
    writes.endDeletion('uid-b');
    expect(writes.take({ uid: 'uid-b', resourceVersion: '102' })).toBe(false);
  });

  it('forgets all of them', () => {
    writes.addDeletion('uid-b');
    writes.clear();
    expect(writes.take({ uid: 'uid-a', resourceVersion: '101' })).toBe(false);
    expect(writes.take({ uid: 'uid-b', resourceVersion: '102' })).toBe(false);
  });
});
