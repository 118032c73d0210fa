import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  FILE_PREFIX,
  FOREIGN_ADDRESSES,
  HONEST_ADDRESSES,
  isAllowedBelow,
  PREFIX,
  randomAddress,
  staysBelow,
} from '../support/image-addresses.ts';

const PREFIXES = [PREFIX, FILE_PREFIX];

it('the rule for addresses of jars takes honest ones', () => {
  expect(HONEST_ADDRESSES.filter((address) => !isAllowedBelow(PREFIXES, address))).toEqual([]);
});

it('the rule for addresses of jars refuses what some program takes for the jar of somebody else', () => {
  expect(FOREIGN_ADDRESSES.filter((address) => isAllowedBelow(PREFIXES, address))).toEqual([]);
});

it('an address that the rule takes stays below its prefix, for the parser of browsers and for a lenient server', () => {
  let allowed = 0;
  fc.assert(
    fc.property(randomAddress, (address) => {
      if (!isAllowedBelow(PREFIXES, address)) return;
      allowed++;
      const prefix = PREFIXES.find((one) => address.startsWith(one)) ?? '';
      expect([address, staysBelow(prefix, address)]).toEqual([address, true]);
    }),
    { numRuns: 5_000 },
  );
  expect(allowed).toBeGreaterThan(100);
});
