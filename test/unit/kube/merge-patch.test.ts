import fc from 'fast-check';
import { expect, it } from 'vitest';
import { mergePatchOf } from '../../../src/kube/merge-patch.ts';
import { merged } from '../../support/fake-objects.ts';

it('a merge patch makes the one value to the other', () => {
  const leaf = fc.oneof(fc.integer(), fc.array(fc.integer()), fc.string());
  const level = fc.dictionary(fc.constantFrom('a', 'b', 'c'), leaf);
  const value = fc.dictionary(fc.constantFrom('x', 'y', 'z', 'constructor'), fc.oneof(leaf, level));
  fc.assert(
    fc.property(value, value, (before, after) => {
      expect(merged(before, mergePatchOf(before, after))).toEqual(after);
    }),
  );
});
