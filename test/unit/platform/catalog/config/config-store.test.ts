import { describe, expect, it } from 'vitest';
import type { ConfigMapObject } from '../../../../../src/kube/objects.ts';
import { metaOf } from '../../../../../src/kube/watch/informer-types.ts';
import { ConfigStore, configMapNameOf } from '../../../../../src/platform/catalog/config/config-store.ts';
import { digestOf } from '../../../../../src/platform/catalog/config/version.ts';
import { FakeObjects } from '../../../../support/fake-objects.ts';

const OWNER = { namespace: 't1', name: 'db', uid: 'uid-db' };

function wholeOf(content: string, parents: readonly string[] = [], instances: Record<string, string> = {}) {
  return { content, instances, parents };
}

function versionOf(content: string, { parents = [] as string[], id = '20261128120000-aaaaaaaa' } = {}) {
  return { id, digest: digestOf(wholeOf(content, parents)) };
}

function world({ maxBytes = 1_000 } = {}) {
  const lost = { next: undefined as boolean | undefined };
  const stored = new FakeObjects<ConfigMapObject, ReturnType<typeof metaOf>>({
    project: metaOf,
    onWrite: (isDone) => {
      if (lost.next !== isDone) return;
      lost.next = undefined;
      throw new Error('no answer');
    },
  });
  const client = stored.client(({ metadata }) => stored.remove(metadata.name));
  let reads = 0;
  const get: typeof client.get = (ref) => {
    reads += 1;
    return client.get(ref);
  };
  const store = new ConfigStore({ client: { ...client, get }, permit: () => true, maxBytes });
  return { store, stored, lost, reads: () => reads };
}

describe('a version of a configuration', () => {
  it('is an immutable ConfigMap of its ModuleConfig, and is read once', async () => {
    const { store, stored, reads } = world();
    const version = versionOf('a: 1');
    expect(await store.put(OWNER, version, wholeOf('a: 1'))).toEqual(version);
    const [found] = stored.all;
    expect(found).toMatchObject({
      metadata: {
        name: configMapNameOf('db', version.digest),
        labels: { 'platform.koupleless.io/composed-by': 'ModuleConfig' },
        ownerReferences: [{ kind: 'ModuleConfig', name: 'db', uid: 'uid-db', controller: true }],
      },
      immutable: true,
      data: { content: 'a: 1' },
    });
    expect([await store.get(OWNER, version), reads()]).toEqual([{ content: 'a: 1', instances: {} }, 0]);
  });

  it('has its first id where the first write got no answer', async () => {
    const { store, stored, lost } = world();
    const first = versionOf('a: 1');
    lost.next = true;
    await expect(store.put(OWNER, first, wholeOf('a: 1'))).rejects.toThrow('no answer');
    const again = versionOf('a: 1', { id: '20261128120001-aaaaaaaa' });
    expect(await store.put(OWNER, again, wholeOf('a: 1'))).toEqual(first);
    expect(stored.all).toHaveLength(1);
  });

  it('is another one with other parents', () => {
    const digests = [versionOf('a'), versionOf('a', { parents: ['p1'] }), versionOf('a', { parents: ['p1', 'p2'] })];
    expect(new Set(digests.map(({ digest }) => digest)).size).toBe(3);
    expect(versionOf('["p1"]\na').digest).not.toBe(versionOf('a', { parents: ['p1'] }).digest);
  });

  it.each([
    ['is another object', { labels: {} }, { content: 'a: 1' }],
    ['has another content', { ownerReferences: [{ uid: 'uid-db', controller: true }] }, { content: 'a: 2' }],
    [
      'is of a former ModuleConfig',
      { ownerReferences: [{ uid: 'uid-former', controller: true }] },
      { content: 'a: 1' },
    ],
  ])('is not written where what has the name %s', async (_what, metadata, data) => {
    const { store, stored } = world();
    const version = versionOf('a: 1');
    const name = configMapNameOf('db', version.digest);
    const annotations = { 'platform.koupleless.io/config-version': 'x', 'platform.koupleless.io/config-parents': '[]' };
    stored.put({ metadata: { name, namespace: 't1', annotations, ...metadata }, data } as never);
    await expect(store.put(OWNER, version, wholeOf('a: 1'))).rejects.toThrow('is another object: delete it');
  });

  it('takes the name of a version of a former ModuleConfig of this name', async () => {
    const { store, stored } = world();
    const version = versionOf('a: 1');
    await store.put({ ...OWNER, uid: 'uid-former' }, version, wholeOf('a: 1'));
    const again = { ...version, id: '20261129120000-aaaaaaaa' };
    expect(await store.put(OWNER, again, wholeOf('a: 1'))).toEqual(again);
    expect(stored.all.map(({ metadata }) => metadata.ownerReferences?.map(({ uid }) => uid))).toEqual([['uid-db']]);
  });

  it('is lost where somebody has deleted it, or put something else in its place', async () => {
    const { store, stored } = world({ maxBytes: 0 });
    const [one, two] = [versionOf('a: 1'), versionOf('a: 2')];
    await store.put(OWNER, one, wholeOf('a: 1'));
    await store.put(OWNER, two, wholeOf('a: 2'));
    expect((await store.get(OWNER, one))?.content).toBe('a: 1');
    const [found] = stored.all;
    stored.put({ ...(found as ConfigMapObject), data: { content: 'forged' } });
    await store.get(OWNER, two);
    expect(await store.get(OWNER, one)).toBeUndefined();
    stored.remove(configMapNameOf('db', one.digest));
    expect(await store.get(OWNER, one)).toBeUndefined();
  });

  it('has the parts for single instances, which are part of what it is', async () => {
    const { store, stored, reads } = world({ maxBytes: 0 });
    const whole = wholeOf('a: 1', [], { b1: 'a: 2', constructor: 'a: 3' });
    const version = { id: '20261128120000-aaaaaaaa', digest: digestOf(whole) };
    await store.put(OWNER, version, whole);
    expect(stored.all[0]?.data).toEqual({ content: 'a: 1', 'instance.b1': 'a: 2', 'instance.constructor': 'a: 3' });
    await store.put(OWNER, versionOf('other'), wholeOf('other'));
    expect([await store.get(OWNER, version), reads()]).toEqual([
      { content: 'a: 1', instances: { b1: 'a: 2', constructor: 'a: 3' } },
      1,
    ]);
    const [found] = stored.all;
    stored.put({ ...(found as ConfigMapObject), data: { content: 'a: 1', 'instance.b1': 'a: 2' } });
    await store.get(OWNER, versionOf('other'));
    expect(await store.get(OWNER, version)).toBeUndefined();
  });

  it('is read once for many who ask at the same time', async () => {
    const { store, reads } = world({ maxBytes: 0 });
    await store.put(OWNER, versionOf('a: 1'), wholeOf('a: 1'));
    await store.put(OWNER, versionOf('a: 2'), wholeOf('a: 2'));
    const found = await Promise.all(Array.from({ length: 50 }, () => store.get(OWNER, versionOf('a: 1'))));
    expect([new Set(found.map((one) => one?.content)), reads()]).toEqual([new Set(['a: 1']), 1]);
  });

  it('is removed if it is its own', async () => {
    const { store, stored } = world();
    const version = versionOf('a: 1');
    await store.put(OWNER, version, wholeOf('a: 1'));
    await store.remove({ ...OWNER, uid: 'uid-later' }, version);
    expect(stored.all).toHaveLength(1);
    await store.remove(OWNER, version);
    await store.remove(OWNER, version);
    expect(stored.all).toEqual([]);
  });

  it('is kept in memory up to a size, those used lately before others', async () => {
    const { store, reads } = world({ maxBytes: 10 });
    const texts = ['aaaa', 'bbbb', 'cccc'];
    for (const text of texts.slice(0, 2)) await store.put(OWNER, versionOf(text), wholeOf(text));
    await store.get(OWNER, versionOf('aaaa'));
    await store.put(OWNER, versionOf('cccc'), wholeOf('cccc'));
    for (const text of ['aaaa', 'cccc']) expect((await store.get(OWNER, versionOf(text)))?.content).toBe(text);
    expect(reads()).toBe(0);
    expect((await store.get(OWNER, versionOf('bbbb')))?.content).toBe('bbbb');
    expect(reads()).toBe(1);
  });

  it('has a name that fits, however long that of its ModuleConfig is', () => {
    const name = configMapNameOf('x'.repeat(253), 'f'.repeat(64));
    expect([name.length, name.slice(-11)]).toEqual([253, '-ffffffffff']);
  });
});
