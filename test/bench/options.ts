import { parseArgs } from 'node:util';

export interface BenchOptions {
  readonly suite: string;
  readonly runs: number;
  readonly bases: number;
  /** In no order; empty: all. */
  readonly cases: readonly string[];
  /** Where the JSON goes; undefined: to a file with a name of its own. */
  readonly out: string | undefined;
}

/** What the command line is checked against. */
export interface KnownSuite {
  readonly text: string;
  readonly defaults: { readonly runs: number; readonly bases: number };
  readonly cases: readonly string[];
}

/** Wrong use of the command line; the message names the flag. */
export class UsageError extends Error {}

export function helpOf(suites: Readonly<Record<string, KnownSuite>>): string {
  const parts = Object.entries(suites).map(
    ([name, { text, defaults, cases }]) =>
      `  ${name}: ${text}\n    cases: ${cases.join(', ')}\n    runs: ${defaults.runs}, bases: ${defaults.bases}`,
  );
  return `Measures what the README promises, on a real control plane, and says what is kept.

Usage: npm run bench -- <suite> [flags]

  --runs N       how often each case is run; the median counts
  --bases N      simulated bases
  --case NAME    only this case; may be given more than once
  --out FILE     where the JSON goes (default: a file among the temporary ones)
  --help         this text

Suites, with their defaults:

${parts.join('\n')}

Ends with 1 when a case could not be measured. A promise that is not kept is only told: a busy machine keeps none.
`;
}

/** Undefined when help is asked for. */
export function parseBenchOptions(
  args: readonly string[],
  suites: Readonly<Record<string, KnownSuite>>,
): BenchOptions | undefined {
  const { values, positionals } = readFlags(args);
  if (values.help) return undefined;
  const [name = '', ...others] = positionals;
  const suite = Object.hasOwn(suites, name) ? suites[name] : undefined;
  if (suite === undefined || others.length > 0) {
    throw new UsageError(`one suite of ${Object.keys(suites).join(', ')} is needed, got '${positionals.join(' ')}'`);
  }
  const unknown = values.case.find((one) => !suite.cases.includes(one));
  if (unknown !== undefined) {
    throw new UsageError(`--case must be one of ${suite.cases.join(', ')}, got '${unknown}'`);
  }
  return {
    suite: name,
    runs: countOf('--runs', values.runs, suite.defaults.runs),
    bases: countOf('--bases', values.bases, suite.defaults.bases),
    cases: values.case,
    out: values.out,
  };
}

function readFlags(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        runs: { type: 'string' },
        bases: { type: 'string' },
        case: { type: 'string', multiple: true, default: [] },
        out: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function countOf(flag: string, text: string | undefined, byDefault: number): number {
  if (text === undefined) return byDefault;
  if (/^[1-9]\d{0,4}$/.test(text)) return Number(text);
  throw new UsageError(`${flag} must be a whole number from 1 to 99999, got '${text}'`);
}
