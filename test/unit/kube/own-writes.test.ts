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

  it('forgets all of them', () => {
    writes.clear();
    expect(writes.take({ uid: 'uid-a', resourceVersion: '101' })).toBe(false);
  });
});
