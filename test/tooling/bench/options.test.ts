import { describe, expect, it } from 'vitest';
import { helpOf, type KnownSuites, parseBenchOptions, UsageError } from '../../bench/options.ts';

const KNOWN: KnownSuites = {
  suites: {
    first: {
      text: 'something',
      defaults: { runs: 5, bases: 300 },
      cases: [{ name: 'one' }, { name: 'two' }],
      subjects: [''],
    },
    second: {
      text: 'something else',
      defaults: { runs: 3, bases: 500, modules: 4, replicas: 2, seconds: 60, rate: 100 },
      cases: [{ name: 'three' }, { name: 'huge', isOptional: true }],
      subjects: ['own', 'floor'],
    },
  },
  byDefault: 'second',
};

describe('the flags of the bench', () => {
  it('have the defaults of the suite', () => {
    expect(parseBenchOptions(['first'], KNOWN)).toEqual({
      suite: 'first',
      runs: 5,
      sizes: { bases: 300 },
      cases: [],
      subjects: [],
      keep: false,
      out: undefined,
      profile: undefined,
    });
    expect(parseBenchOptions(['second'], KNOWN)).toMatchObject({
      runs: 3,
      sizes: { bases: 500, modules: 4, replicas: 2, seconds: 60, rate: 100 },
    });
  });

  it('name a folder for profiles', () => {
    expect(parseBenchOptions(['first', '--profile', 'profiles'], KNOWN)?.profile).toBe('profiles');
  });

  it('need no suite: one is the default', () => {
    expect(parseBenchOptions([], KNOWN)?.suite).toBe('second');
    expect(parseBenchOptions(['--case', 'three'], KNOWN)).toMatchObject({ suite: 'second', cases: ['three'] });
  });

  it('are read', () => {
    const args = ['--runs', '1', 'first', '--bases', '30', '--case', 'one', '--case', 'two', '--out', 'a.json'];
    expect(parseBenchOptions([...args, '--keep'], KNOWN)).toEqual({
      suite: 'first',
      runs: 1,
      sizes: { bases: 30 },
      cases: ['one', 'two'],
      subjects: [],
      keep: true,
      out: 'a.json',
      profile: undefined,
    });
    expect(
      parseBenchOptions(['second', '--modules', '7', '--replicas', '3', '--seconds', '10', '--rate', '20'], KNOWN)
        ?.sizes,
    ).toEqual({
      bases: 500,
      modules: 7,
      replicas: 3,
      seconds: 10,
      rate: 20,
    });
  });

  it('can ask for some of what is compared', () => {
    const args = ['--subject', 'own', '--subject', 'floor'];
    expect(parseBenchOptions(args, KNOWN)?.subjects).toEqual(['own', 'floor']);
  });

  it('can ask for a case that else does not run', () => {
    expect(parseBenchOptions(['second', '--case', 'huge'], KNOWN)?.cases).toEqual(['huge']);
  });

  it('are all in the help, and what there is to measure', () => {
    expect(parseBenchOptions(['--help'], KNOWN)).toBeUndefined();
    const flags = [
      '--runs',
      '--bases',
      '--modules',
      '--replicas',
      '--seconds',
      '--rate',
      '--case',
      '--subject',
      '--keep',
      '--profile',
      '--out',
      '--help',
    ];
    const suites = [
      'first: something\n    cases: one, two\n    runs: 5, bases: 300',
      'cases: three\n    only with --case: huge\n    subjects: own, floor\n    runs: 3, bases: 500, modules: 4, replicas: 2, seconds: 60, rate: 100',
      "'second' when none is named",
    ];
    for (const text of [...flags, ...suites]) expect(helpOf(KNOWN)).toContain(text);
  });

  it.each([
    [['third'], /one suite of first, second, got 'third'/],
    [['toString'], /got 'toString'/],
    [['first', 'second'], /got 'first second'/],
    [['first', '--case', 'three'], /--case must be one of one, two, got 'three'/],
    [['second', '--subject', 'peer'], /--subject must be one of own, floor, got 'peer'/],
    [['first', '--runs', '0'], /--runs must be a whole number from 1 to 99999, got '0'/],
    [['first', '--bases', '1.5'], /--bases/],
    [['second', '--modules', '0'], /--modules must be a whole number/],
    [['second', '--replicas', 'many'], /--replicas must be a whole number/],
    [['first', '--modules', '2'], /--modules is nothing that can be set in the suite 'first'/],
    [['first', '--seconds', '2'], /--seconds is nothing that can be set in the suite 'first'/],
    [['first', '--replicas', '2'], /--replicas is nothing that can be set in the suite 'first'/],
    [['first', '--keep', '--profile', 'a'], /--keep and --profile exclude each other/],
    [['first', '--fast'], /--fast/],
  ])('%j is refused with the reason', (args, message) => {
    expect(() => parseBenchOptions(args, KNOWN)).toThrow(UsageError);
    expect(() => parseBenchOptions(args, KNOWN)).toThrow(message);
  });
});
