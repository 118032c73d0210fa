import { beforeEach, describe, expect, it } from 'vitest';
import { OwnWrites } from '../../../src/kube/watch/own-writes.ts';
import { added, deleted, modified, pod } from './support/rig.ts';

const lineOf = (event: unknown): Buffer => Buffer.from(JSON.stringify(event));
/** As the API server writes a custom resource: fields of metadata by name. */
const customOf = (annotations: Record<string, string>) =>
  lineOf({
    type: 'MODIFIED',
    object: { apiVersion: 'v1', kind: 'Thing', metadata: { annotations, name: 'a', resourceVersion: '7', uid: 'own' } },
  });

describe('OwnWrites', () => {
  let writes: OwnWrites;
  beforeEach(() => {
    writes = new OwnWrites();
    writes.add({ uid: 'uid-a', resourceVersion: '101' });
  });

  it('takes the event of a noted write, once', () => {
    expect(writes.take(lineOf(modified(pod('a', 101))))).toBe('101');
    expect(writes.take(lineOf(modified(pod('a', 101))))).toBeUndefined();
  });

  it.each([
    ['an addition', added(pod('a', 101))],
    ['a deletion', deleted(pod('a', 101))],
    ['another version', modified(pod('a', 102))],
    ['the same version of another object', modified(pod('b', 101))],
    ['an event without metadata', { type: 'MODIFIED', object: { kind: 'Pod' } }],
    ['an event without a version', modified({ kind: 'Pod', metadata: { name: 'a', uid: 'uid-a' } })],
    ['an event without a UID', modified({ kind: 'Pod', metadata: { name: 'a', resourceVersion: '101' } })],
  ])('takes no %s', (_what, event) => {
    expect(writes.take(lineOf(event))).toBeUndefined();
    expect(writes.take(lineOf(modified(pod('a', 101))))).toBe('101');
  });

  it('takes no line that is cut off', () => {
    const line = lineOf(modified(pod('a', 101)));
    for (let length = 0; length < line.indexOf('101"'); length++)
      expect(writes.take(line.subarray(0, length)), `${length} bytes`).toBeUndefined();
  });

  it('believes no annotation that looks like the metadata of an object', () => {
    expect(writes.take(customOf({ name: 'a', resourceVersion: '101', uid: 'uid-a' }))).toBeUndefined();
    const pretended = {
      kind: 'Thing',
      spec: 'x'.repeat(200),
      metadata: { name: 'a', uid: 'uid-a', resourceVersion: '101' },
    };
    expect(writes.take(lineOf({ type: 'MODIFIED', object: pretended }))).toBeUndefined();
  });

  it('forgets all of them', () => {
    writes.clear();
    expect(writes.take(lineOf(modified(pod('a', 101))))).toBeUndefined();
  });
});
