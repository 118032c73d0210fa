import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CachedObject, metaOf } from '../../../../../src/kube/watch/informer-types.ts';
import { ConfigUses } from '../../../../../src/platform/catalog/config/config-uses.ts';
import { FakeClock } from '../../../../support/fake-clock.ts';
import { FakeInformer } from '../../../../support/fake-informer.ts';

interface User extends CachedObject {
  readonly used: Readonly<Record<string, readonly string[]>>;
}

function world() {
  const project = (raw: { metadata: object }) => ({ ...metaOf(raw as never), used: (raw as never as User).used });
  const informer = new FakeInformer<User>(new FakeClock(), project as never);
  const uses = new ConfigUses();
  const changed: string[] = [];
  uses.onChange((key) => changed.push(key));
  const configsOf = ({ used }: User) =>
    new Map(Object.entries(used).map(([name, versions]) => [name, new Set(versions)]));
  uses.watch({ informer, kind: 'Module', configsOf });
  let version = 0;
  const put = (name: string, used: User['used'], uid = name, namespace = 't1') =>
    informer.deliver({
      type: 'PUT',
      object: { metadata: { namespace, name, uid, resourceVersion: String(++version) }, used } as never,
    });
  const remove = (name: string, uid = name) =>
    informer.deliver({
      type: 'DELETED',
      object: { metadata: { namespace: 't1', name, uid, resourceVersion: String(++version) }, used: {} } as never,
    });
  const usersOf = (key: string) => uses.of(key).map(({ name, versions }) => `${name}:${[...versions].sort()}`);
  return { informer, uses, changed, put, remove, usersOf };
}

describe('users of a ModuleConfig', () => {
  it('are found by its key, with the versions that they need', () => {
    const { put, usersOf, uses, changed } = world();
    put('b', { db: ['v1', 'v2'], cache: ['c1'] });
    put('a', { db: ['v2'] });
    put('other', { db: ['x'] }, 'other', 't2');
    expect(usersOf('t1/db')).toEqual(['a:v2', 'b:v1,v2']);
    expect([...uses.versionsOf('t1/db')].sort()).toEqual(['v1', 'v2']);
    expect(usersOf('t1/none')).toEqual([]);
    expect(changed).toEqual(['t1/db', 't1/cache', 't1/db', 't2/db']);
  });

  it('are reported when they change, and not else', () => {
    const { put, remove, usersOf, changed } = world();
    put('a', { db: ['v1'] });
    put('a', { db: ['v1'] });
    expect(changed.splice(0)).toEqual(['t1/db']);
    put('a', { cache: ['c1'] });
    expect(changed.splice(0)).toEqual(['t1/db', 't1/cache']);
    remove('a');
    expect([usersOf('t1/db'), usersOf('t1/cache'), changed]).toEqual([[], [], ['t1/cache']]);
  });

  it('are those that a look at all objects finds, after any changes', () => {
    const used = fc.dictionary(fc.constantFrom('db', 'cache'), fc.uniqueArray(fc.constantFrom('v1', 'v2', 'v3')));
    const step = fc.record({
      name: fc.constantFrom('a', 'b', 'c'),
      uid: fc.constantFrom('1', '2'),
      used: fc.option(used, { freq: 3, nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const { informer, put, remove, usersOf } = world();
        for (const { name, uid, used: next } of steps) {
          if (next === undefined) remove(name);
          else put(name, next, `${name}-${uid}`);
        }
        for (const config of ['db', 'cache']) {
          const expected = informer
            .list()
            .flatMap(({ name, used: { [config]: versions } }) => (versions ? `${name}:${[...versions].sort()}` : []));
          expect(usersOf(`t1/${config}`)).toEqual(expected.sort());
        }
      }),
    );
  });
});
