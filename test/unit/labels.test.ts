import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { identityFault, identityOf, labelValueOf, nodeNameOf } from '../../src/labels.ts';

/** Kubernetes' own rules: a label value, and a DNS-1123 subdomain. */
const LABEL_VALUE = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/;
const NODE_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

describe('an identity', () => {
  it.each(['b1', '192.0.2.2', 'a-b.c-d', '0', 'x'.repeat(57)])('may be %s', (identity) => {
    expect(identityFault(identity)).toBeUndefined();
  });

  it.each([
    ['', 'is empty'],
    ['x'.repeat(58), 'has 58 characters, 57 are allowed'],
    ['B1', 'RFC 1123'],
    ['a_b', 'RFC 1123'],
    ['-a', 'RFC 1123'],
    ['a-', 'RFC 1123'],
    ['a..b', 'RFC 1123'],
    ['.a', 'RFC 1123'],
    ['a.', 'RFC 1123'],
    ['a.-b', 'RFC 1123'],
    ['2001:db8::2', 'RFC 1123'],
    ['a\n', 'RFC 1123'],
    ['a/../b', 'RFC 1123'],
  ])('must not be %j', (identity, why) => {
    expect(identityFault(identity)).toContain(why);
  });

  it('that is accepted makes a valid Node name that is also a label value', () => {
    const identity = fc.oneof(fc.string({ unit: fc.constantFrom(...'ab0-.'), maxLength: 60 }), fc.string());
    fc.assert(
      fc.property(identity, (text) => {
        if (identityFault(text) !== undefined) return;
        expect(nodeNameOf(text)).toMatch(NODE_NAME);
        expect(nodeNameOf(text).length).toBeLessThanOrEqual(63);
        expect(identityOf(nodeNameOf(text))).toBe(text);
      }),
    );
  });

  it('is not found in the name of another Node', () => {
    expect(identityOf('worker-1')).toBeUndefined();
  });
});

describe('a label value', () => {
  it('is valid whatever the base calls itself', () => {
    const text = fc.oneof(
      fc.string(),
      fc.string({ unit: 'grapheme' }),
      fc.string({ unit: fc.constantFrom('a', 'Z', '9', '-', '_', '.', ' ', '中'), maxLength: 90 }),
    );
    fc.assert(
      fc.property(text, (value) => {
        expect(labelValueOf(value)).toMatch(LABEL_VALUE);
        expect(labelValueOf(value).length).toBeLessThanOrEqual(63);
      }),
    );
  });

  it('stays as it is where Kubernetes takes it', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/), (value) => {
        expect(labelValueOf(value)).toBe(value);
      }),
    );
  });

  it.each([
    ['my base', 'my_base'],
    ['1.0.0-SNAPSHOT', '1.0.0-SNAPSHOT'],
    ['_x_', 'x'],
    ['', ''],
    [`${'x'.repeat(62)}--y`, 'x'.repeat(62)],
  ])('of %j is %j', (text, value) => {
    expect(labelValueOf(text)).toBe(value);
  });
});
