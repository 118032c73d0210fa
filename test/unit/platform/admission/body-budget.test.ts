import { describe, expect, it } from 'vitest';
import { BodyBudget } from '../../../../src/platform/admission/body-budget.ts';

const MIB = 1024 * 1024;

describe('bodies that are read at the same time', () => {
  it('have 64 MiB together, and 16 MiB of one source', () => {
    const budget = new BodyBudget();
    for (const source of ['a', 'b', 'c', 'd']) {
      expect(budget.take(source, 16 * MIB)).toBeDefined();
      expect(budget.take(source, 1)).toBeUndefined();
    }
    expect(budget.take('e', 1)).toBeUndefined();
  });

  it('leave room for others when they have been read', () => {
    const budget = new BodyBudget();
    const releases = ['a', 'b', 'c', 'd'].map((source) => budget.take(source, 16 * MIB));
    releases[0]?.();
    expect(budget.take('e', 9 * MIB)).toBeDefined();
    expect(budget.take('a', 8 * MIB)).toBeUndefined();
    expect(budget.take('a', 7 * MIB)).toBeDefined();
  });
});
