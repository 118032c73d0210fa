import { describe, expect, it } from 'vitest';
import { HELP, parseMutantOptions, UsageError } from '../../mutants/options.ts';

const anySeed = (): number => 7;

function faultsOf(...args: string[]): string[] {
  try {
    parseMutantOptions(args, anySeed);
  } catch (error) {
    if (error instanceof UsageError) return error.message.split('\n');
    throw error;
  }
  return [];
}

describe('flags of test:mutants', () => {
  it('have defaults', () => {
    expect(parseMutantOptions([], anySeed)).toEqual({
      seed: 7,
      count: 100,
      atLeast: 90,
      workers: 2,
      only: [],
      tests: [],
      operators: [],
    });
  });

  it('are read', () => {
    const args = ['--seed', '5', '--count=40', '--at-least', '0', '--workers', '1', '--only', 'a', '--only', 'b'];
    expect(parseMutantOptions([...args, '--tests', 'c', '--operator', 'call'], anySeed)).toEqual({
      seed: 5,
      count: 40,
      atLeast: 0,
      workers: 1,
      only: ['a', 'b'],
      tests: ['c'],
      operators: ['call'],
    });
  });

  it('are all checked before one fault is reported', () => {
    expect(
      faultsOf('--seed', 'x', '--count', '0', '--at-least', '101', '--only=', '--what=ever', 'else', '--only'),
    ).toEqual([
      '--only needs a value',
      '--what is no flag',
      "'else' is no flag",
      '--only needs a value',
      "--seed must be a whole number from 0 to 2147483647, got 'x'",
      "--count must be a whole number from 1 to 100000, got '0'",
      "--at-least must be a whole number from 0 to 100, got '101'",
    ]);
  });

  it('ask for help, whatever else is wrong', () => {
    expect(parseMutantOptions(['--help', '--count', '0'], anySeed)).toBeUndefined();
    expect(HELP).toContain('--at-least N');
    expect(HELP).toContain('boundary');
  });
});
