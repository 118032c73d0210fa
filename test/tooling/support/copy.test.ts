import { expect, it } from 'vitest';
import { copyOf } from '../../support/copy.ts';

it('a copy of an object shares nothing with it and is equal to it', () => {
  const object = {
    a: [{ b: 1 }, null, undefined],
    c: { d: 'text', e: undefined },
    at: new Date(7),
    map: new Map([[1, {}]]),
  };
  const copy = copyOf(object);
  expect(copy).toStrictEqual(object);
  copy.a[0] = { b: 2 };
  copy.c.d = 'changed';
  copy.at.setTime(8);
  copy.map.clear();
  expect(object).toStrictEqual({
    a: [{ b: 1 }, null, undefined],
    c: { d: 'text', e: undefined },
    at: new Date(7),
    map: new Map([[1, {}]]),
  });
});
