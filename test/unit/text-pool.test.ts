import { describe, expect, it } from 'vitest';
import { TextPool } from '../../src/text-pool.ts';

/** Which copy of equal texts one gets cannot be seen from within the language: only that they are equal, and bounded. */
describe('a pool of texts', () => {
  it('gives equal texts', () => {
    const pool = new TextPool(2);
    for (const text of ['a', 'b', 'a', 'c', 'a', '', 'x'.repeat(1_000)]) expect(pool.share(text)).toBe(text);
    expect(pool.share(undefined)).toBeUndefined();
  });

  it('gives equal fields, and leaves what is no text', () => {
    const fields = { time: '2026-01-01T00:00:00Z', count: 1, none: null, list: ['a'] };
    expect(new TextPool(10).shareIn(fields)).toEqual(fields);
    expect(new TextPool(10).shareIn(fields).list).toBe(fields.list);
  });
});
