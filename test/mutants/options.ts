import { parseArgs } from 'node:util';
import { OPERATORS, type Operator } from './mutants.ts';

export interface MutantOptions {
  readonly seed: number;
  readonly count: number;
  /** Per cent that the tests have to kill. */
  readonly atLeast: number;
  readonly workers: number;
  /** Parts of paths; empty: all. */
  readonly only: readonly string[];
  readonly tests: readonly string[];
  /** Empty: all. */
  readonly operators: readonly Operator[];
}

/** Wrong use of the command line; the message names every fault, one a line. */
export class UsageError extends Error {}

export const HELP = `Changes single tokens of the sources, in memory, and reports which changes no unit test notices.

Usage: npm run test:mutants -- [flags]

  --seed N         draws the same mutants again (default: any, which is printed)
  --count N        how many mutants are drawn; all, when there are fewer (default: 100)
  --only PART      only in files whose path contains this; may be given more than once
  --operator NAME  only this operator, likewise: a whole class of faults
  --tests PART     only test files whose path contains this, likewise: quick while you write one of them
  --at-least N     ends with 1 when fewer per cent are killed (default: 90)
  --workers N      how many test files run at a time (default: 2)
  --help           this text

Every place in src and tunnels has the same chance, and is changed by one of these operators:

${Object.entries(OPERATORS)
  .map(([name, text]) => `  ${name.padEnd(12)} ${text}`)
  .join('\n')}

Texts, comments, types and calls of a logger are never changed, nor the boundary of 'a > b ? a : b' and of the order
'a < b ? -1 : 1', nor '{ once: true }': nothing would differ.
A mutant that the compiler refuses is drawn again. One that a test waits or loops for ever on is killed, and counted
apart; one that no unit test runs survives.
`;

export const MAX_SEED = 2 ** 31 - 1;

const FLAGS = {
  seed: { type: 'string' },
  count: { type: 'string' },
  'at-least': { type: 'string' },
  workers: { type: 'string' },
  only: { type: 'string', multiple: true },
  tests: { type: 'string', multiple: true },
  operator: { type: 'string', multiple: true },
  help: { type: 'boolean' },
} as const;

/** Undefined when help is asked for. */
export function parseMutantOptions(args: readonly string[], anySeed: () => number): MutantOptions | undefined {
  const { texts, faults } = readFlags(args);
  if (texts.has('help')) return undefined;
  const number = (flag: string, byDefault: number, from: number, to: number): number => {
    const text = texts.get(flag)?.at(-1);
    if (text === undefined) return byDefault;
    if (/^\d+$/.test(text) && Number(text) >= from && Number(text) <= to) return Number(text);
    faults.push(`--${flag} must be a whole number from ${from} to ${to}, got '${text}'`);
    return byDefault;
  };
  const operators = texts.get('operator') ?? [];
  for (const name of operators.filter((one) => !isOperator(one))) {
    faults.push(`--operator must be one of ${Object.keys(OPERATORS).join(', ')}, got '${name}'`);
  }
  const options = {
    seed: number('seed', anySeed(), 0, MAX_SEED),
    count: number('count', 100, 1, 100_000),
    atLeast: number('at-least', 90, 0, 100),
    workers: number('workers', 2, 1, 64),
    only: texts.get('only') ?? [],
    tests: texts.get('tests') ?? [],
    operators: operators.filter(isOperator),
  };
  if (faults.length > 0) throw new UsageError(faults.join('\n'));
  return options;
}

/** The strict mode of `parseArgs` would stop at the first fault. */
function readFlags(args: readonly string[]): { texts: Map<string, string[]>; faults: string[] } {
  const texts = new Map<string, string[]>();
  const faults: string[] = [];
  const { tokens } = parseArgs({
    args: [...args],
    options: FLAGS,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind === 'positional') faults.push(`'${token.value}' is no flag`);
    if (token.kind !== 'option') continue;
    if (!Object.hasOwn(FLAGS, token.name)) faults.push(`${token.rawName} is no flag`);
    else if (token.name !== 'help' && !token.value) faults.push(`${token.rawName} needs a value`);
    else texts.set(token.name, [...(texts.get(token.name) ?? []), token.value ?? '']);
  }
  return { texts, faults };
}

function isOperator(name: string): name is Operator {
  return Object.hasOwn(OPERATORS, name);
}
