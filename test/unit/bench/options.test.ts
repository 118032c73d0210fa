import { describe, expect, it } from 'vitest';
import { helpOf, parseBenchOptions, UsageError } from '../../bench/options.ts';

const SUITES = {
  first: { text: 'something', defaults: { runs: 5, bases: 300 }, cases: ['one', 'two'] },
  second: { text: 'something else', defaults: { runs: 3, bases: 500 }, cases: ['three'] },
};

describe('the flags of the bench', () => {
  it('have the defaults of the suite', () => {
    expect(parseBenchOptions(['first'], SUITES)).toEqual({
      suite: 'first',
      runs: 5,
      bases: 300,
      cases: [],
      out: undefined,
    });
    expect(parseBenchOptions(['second'], SUITES)).toMatchObject({ runs: 3, bases: 500 });
  });

  it('are read', () => {
    const args = ['--runs', '1', 'first', '--bases', '30', '--case', 'one', '--case', 'two', '--out', 'a.json'];
    expect(parseBenchOptions(args, SUITES)).toEqual({
      suite: 'first',
      runs: 1,
      bases: 30,
      cases: ['one', 'two'],
      out: 'a.json',
    });
  });

  it('are all in the help, and what there is to measure', () => {
    expect(parseBenchOptions(['--help'], SUITES)).toBeUndefined();
    const texts = ['--runs', '--bases', '--case', '--out', 'first', 'second', 'one, two', 'three'];
    for (const text of texts) expect(helpOf(SUITES)).toContain(text);
  });

  it.each([
    [[], /one suite of first, second is needed/],
    [['third'], /got 'third'/],
    [['toString'], /got 'toString'/],
    [['first', 'second'], /got 'first second'/],
    [['first', '--case', 'three'], /--case must be one of one, two, got 'three'/],
    [['first', '--runs', '0'], /--runs must be a whole number from 1 to 99999, got '0'/],
    [['first', '--bases', '1.5'], /--bases/],
    [['first', '--fast'], /--fast/],
  ])('%j is refused with the reason', (args, message) => {
    expect(() => parseBenchOptions(args, SUITES)).toThrow(UsageError);
    expect(() => parseBenchOptions(args, SUITES)).toThrow(message);
  });
});
