import { describe, expect, it } from 'vitest';
import { readEventLine } from '../../../src/kube/watch/event-line.ts';
import { added, bookmark, deleted, errorEvent, modified, pod } from './support/rig.ts';

const lineOf = (event: unknown): Buffer => Buffer.from(JSON.stringify(event));
const read = (event: unknown) => readEventLine(lineOf(event));
/** As the API server writes a custom resource: fields of metadata by name. */
const customOf = (annotations: Record<string, string>) => ({
  type: 'DELETED',
  object: { apiVersion: 'v1', kind: 'Thing', metadata: { annotations, name: 'a', resourceVersion: '7', uid: 'own' } },
});

describe('readEventLine', () => {
  it.each([
    ['MODIFIED', modified(pod('a', 101))],
    ['DELETED', deleted(pod('a', 101))],
  ])('reads what a line of type %s is about', (type, event) => {
    expect(read(event)).toEqual({ type, namespace: 'ns', name: 'a', uid: 'uid-a', resourceVersion: '101' });
  });

  it('reads an object of a controller that generates names, and one that has no namespace', () => {
    const generated = { name: 'a-x7', generateName: 'a-', namespace: 'ns', uid: 'u', resourceVersion: '1', labels: {} };
    expect(read(deleted({ kind: 'Pod', apiVersion: 'v1', metadata: generated }))).toMatchObject({
      name: 'a-x7',
      uid: 'u',
    });
    const node = { name: 'n1', uid: 'u', resourceVersion: '1', annotations: { namespace: 'x' } };
    expect(read(modified({ kind: 'Node', apiVersion: 'v1', metadata: node }))).toMatchObject({
      name: 'n1',
      namespace: '',
    });
  });

  it('reads the longest names that there are', () => {
    const metadata = {
      name: 'n'.repeat(253),
      generateName: 'g'.repeat(253),
      namespace: 's'.repeat(63),
      uid: 'u'.repeat(36),
      resourceVersion: '9'.repeat(20),
    };
    const { generateName: _, ...read253 } = metadata;
    expect(read(deleted({ kind: 'Pod', apiVersion: 'v1', metadata }))).toEqual({ type: 'DELETED', ...read253 });
  });

  it.each([
    ['an addition', added(pod('a', 101))],
    ['a bookmark', bookmark(101)],
    ['an error', errorEvent(410, 'Expired')],
    ['an event without metadata', { type: 'MODIFIED', object: { kind: 'Pod', apiVersion: 'v1' } }],
    ['an event without a version', modified({ kind: 'Pod', apiVersion: 'v1', metadata: { name: 'a', uid: 'uid-a' } })],
    [
      'an event without a UID',
      modified({ kind: 'Pod', apiVersion: 'v1', metadata: { name: 'a', resourceVersion: '101' } }),
    ],
    ['a name with a character that JSON escapes', deleted(pod('a"b', 101))],
    ['a name with a character of several bytes', deleted(pod('aé', 101))],
  ])('reads no %s', (_what, event) => {
    expect(read(event)).toBeUndefined();
  });

  it('reads no line that is cut off', () => {
    const line = lineOf(modified(pod('a', 101)));
    for (let length = 0; length < line.indexOf('101"') + 4; length++)
      expect(readEventLine(line.subarray(0, length)), `${length} bytes`).toBeUndefined();
  });

  it('believes no annotation that looks like the metadata of an object', () => {
    expect(read(customOf({ name: 'a', resourceVersion: '101', uid: 'uid-a' }))).toBeUndefined();
    const pretended = { kind: 'Thing', apiVersion: 'v1', spec: 'x', metadata: pod('a', 101).metadata };
    expect(read({ type: 'MODIFIED', object: pretended })).toBeUndefined();
  });
});
