import { describe, expect, it } from 'vitest';
import { effectiveOf, type Parent } from '../../../../../src/platform/catalog/config/effective.ts';
import type { ConfigFormat } from '../../../../../src/platform/catalog/config/formats.ts';

function parentOf(content: string, parent?: string, format: ConfigFormat = 'yaml'): Parent {
  return { format, parent, inForce: { id: 'v1', content } };
}

function effective(
  parents: Readonly<Record<string, Parent>>,
  content = 'a: 1',
  {
    parent,
    format = 'yaml',
    instances = {},
  }: { parent?: string; format?: ConfigFormat; instances?: Record<string, string> } = {},
) {
  const find = (name: string): Parent | undefined => (Object.hasOwn(parents, name) ? parents[name] : undefined);
  const result = effectiveOf({ name: 'child', format, parent, content, instances, find });
  return 'fault' in result ? [result.fault.reason, result.fault.message] : result;
}

const of = (parent: string) => ({ parent });

describe('the effective content', () => {
  it('is the content itself without a parent', () => {
    expect(effective({}, '# comment\na:   1')).toEqual({ content: '# comment\na:   1', parents: [] });
  });

  it('has the keys of the version of the parent that is in force', () => {
    const parents = { p: parentOf('x: 1\na: 2\n', 'root'), root: parentOf('x: 9\nz: 9\n') };
    expect(effective(parents, 'a: 1', of('p'))).toEqual({ content: 'x: 1\na: 1\n', parents: ['p@v1'] });
  });

  it.each([
    ['there is no ModuleConfig p, the parent of child', {}, 'p'],
    ['there is no ModuleConfig q, the parent of p', { p: parentOf('', 'q') }, 'p'],
    ['the parents form a cycle: child > child', {}, 'child'],
    ['the parents form a cycle: child > p > q > child', { p: parentOf('', 'q'), q: parentOf('', 'child') }, 'p'],
    ['the parents form a cycle: p > q > p', { p: parentOf('', 'q'), q: parentOf('', 'p') }, 'p'],
    [
      'ModuleConfig p, the parent of child, has the format json instead of yaml',
      { p: parentOf('', undefined, 'json') },
      'p',
    ],
    [
      'no version of ModuleConfig p is active yet',
      { p: { format: 'yaml', parent: undefined, inForce: undefined } },
      'p',
    ],
    ['ModuleConfig p: ', { p: parentOf('a: [') }, 'p'],
  ] as const)('is refused: %s', (message, parents, parent) => {
    expect(effective(parents, 'a: 1', of(parent))).toEqual(['ParentInvalid', expect.stringContaining(message)]);
  });

  it('has a line of 16 at most', () => {
    const lineOf = (length: number) =>
      Object.fromEntries(
        Array.from({ length }, (_, at) => [`p${at}`, parentOf('b: 1', at === length - 1 ? undefined : `p${at + 1}`)]),
      );
    expect(effective(lineOf(15), 'a: 1', of('p0'))).toMatchObject({ parents: ['p0@v1'] });
    expect(effective(lineOf(16), 'a: 1', of('p0'))).toEqual([
      'ParentInvalid',
      expect.stringContaining('longer than 16'),
    ]);
  });

  it('is refused with the place of a fault', () => {
    expect(effective({}, 'a: 1\na: 2')).toEqual([
      'ContentInvalid',
      'spec.content, line 2, column 1: the key "a" stands here a second time',
    ]);
    expect(effective({}, 'a: 1', { instances: { 0: 'a: 1', base: '- [' } })).toEqual([
      'ContentInvalid',
      expect.stringMatching(/^spec\.instances\[base\], line 1, column 4: /),
    ]);
  });

  it('is refused when merging makes it too large', () => {
    const [a, b] = ['a', 'b'].map((key) => `${key}=${'x'.repeat(500_000)}`);
    const parents = { p: parentOf(a ?? '', undefined, 'properties') };
    expect(effective(parents, b, { parent: 'p', format: 'properties' })).toEqual([
      'ContentInvalid',
      'child merged with p has 1000006 bytes: at most 900000 are possible',
    ]);
  });
});
