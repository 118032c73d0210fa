import { parseArgs } from 'node:util';
import type { Sizes } from './suite.ts';

export interface BenchOptions {
  readonly suite: string;
  readonly runs: number;
  readonly sizes: Sizes;
  /** In no order; empty: all but the optional ones. */
  readonly cases: readonly string[];
  /** By column; empty: all. */
  readonly subjects: readonly string[];
  /** Later results are compared with this one. */
  readonly keep: boolean;
  /** Where the JSON goes; undefined: to a file with a name of its own. */
  readonly out: string | undefined;
  /** The folder for CPU profiles; undefined: none are made. */
  readonly profile: string | undefined;
}

/** What the command line is checked against. */
export interface KnownSuite {
  readonly text: string;
  readonly defaults: Sizes & { readonly runs: number };
  readonly cases: readonly KnownCase[];
  /** By column. */
  readonly subjects: readonly string[];
}

export interface KnownCase {
  readonly name: string;
  readonly isOptional?: true;
}

export interface KnownSuites {
  readonly suites: Readonly<Record<string, KnownSuite>>;
  /** The one that runs when none is named. */
  readonly byDefault: string;
}

/** Beside the bases: those that not every suite has. */
const SETTINGS = ['modules', 'replicas', 'services', 'configs', 'minutes', 'seconds', 'rate', 'seed'] as const;

/** Wrong use of the command line; the message names the flag. */
export class UsageError extends Error {}

export function helpOf({ suites, byDefault }: KnownSuites): string {
  return `Measures what the project promises, on a real control plane, and says what is kept and what has changed.

Usage: npm run bench -- [suite] [flags]

  --runs N       how often each case is run; the median counts
  --bases N      simulated bases
  --modules N    modules on each base, in a suite that has a default for it
  --replicas N   replicas of the controller, likewise
  --services N   exported Services, likewise
  --configs N    ModuleConfigs, likewise
  --minutes N    how long it lasts, likewise
  --seconds N    how long a burst lasts, likewise
  --rate N       changes in each second of a burst, likewise
  --seed N       makes the same accidents again, likewise (default: any, which is told)
  --case NAME    only this case; may be given more than once
  --subject NAME only this one of what is compared, with all of its variants; may be given more than once
  --keep         write test/bench/results/<suite>.json, which later results are compared with, and its picture;
                 cases that are not run now keep their former result
  --profile DIR  writes a CPU profile of each case, without its preparation, into this folder, where the suite can;
                 open one in the DevTools of Chrome (the profiler is part of the figures then, so not with --keep)
  --out FILE     where the JSON with all details goes (default: a file among the temporary ones)
  --help         this text

Suites, with their defaults; '${byDefault}' when none is named:

${Object.entries(suites).map(helpOfSuite).join('\n')}

Ends with 1 when a case could not be measured. A promise that is not kept is only told: a busy machine keeps none.
`;
}

function helpOfSuite([name, { text, defaults, cases, subjects }]: [string, KnownSuite]): string {
  const namesOf = (isOptional: boolean): string =>
    cases
      .filter((one) => (one.isOptional ?? false) === isOptional)
      .map((one) => one.name)
      .join(', ');
  const optional = namesOf(true);
  const lines = [
    `${name}: ${text}`,
    `  cases: ${namesOf(false)}`,
    ...(optional === '' ? [] : [`  only with --case: ${optional}`]),
    ...(subjects.length > 1 ? [`  subjects: ${subjects.join(', ')}`] : []),
    `  ${Object.entries(defaults)
      .filter(([setting]) => setting !== 'seed')
      .map(([setting, number]) => `${setting}: ${number}`)
      .join(', ')}`,
  ];
  return lines.map((line) => `  ${line}`).join('\n');
}

/** Undefined when help is asked for. */
export function parseBenchOptions(args: readonly string[], known: KnownSuites): BenchOptions | undefined {
  const { values, positionals } = readFlags(args);
  if (values.help) return undefined;
  const { suites, byDefault } = known;
  const [name = byDefault, ...others] = positionals;
  const suite = Object.hasOwn(suites, name) ? suites[name] : undefined;
  if (suite === undefined || others.length > 0) {
    throw new UsageError(`at most one suite of ${Object.keys(suites).join(', ')}, got '${positionals.join(' ')}'`);
  }
  const cases = suite.cases.map((one) => one.name);
  const unknown = values.case.find((one) => !cases.includes(one));
  if (unknown !== undefined) {
    throw new UsageError(`--case must be one of ${cases.join(', ')}, got '${unknown}'`);
  }
  const stranger = values.subject.find((one) => !suite.subjects.includes(one));
  if (stranger !== undefined) {
    throw new UsageError(`--subject must be one of ${suite.subjects.join(', ')}, got '${stranger}'`);
  }
  if (values.keep && values.profile !== undefined) {
    throw new UsageError('--keep and --profile exclude each other: figures with a profiler are no figures to keep');
  }
  const { runs, bases } = suite.defaults;
  return {
    suite: name,
    runs: countOf('--runs', values.runs, runs),
    sizes: {
      bases: countOf('--bases', values.bases, bases),
      ...Object.assign({}, ...SETTINGS.map((setting) => sizeOf(setting, values[setting], { name, ...suite }))),
    },
    cases: values.case,
    subjects: values.subject,
    keep: values.keep,
    out: values.out,
    profile: values.profile,
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
        modules: { type: 'string' },
        replicas: { type: 'string' },
        services: { type: 'string' },
        configs: { type: 'string' },
        minutes: { type: 'string' },
        seconds: { type: 'string' },
        rate: { type: 'string' },
        seed: { type: 'string' },
        case: { type: 'string', multiple: true, default: [] },
        subject: { type: 'string', multiple: true, default: [] },
        keep: { type: 'boolean', default: false },
        out: { type: 'string' },
        profile: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** Nothing where the suite has no default for it. */
function sizeOf(
  setting: (typeof SETTINGS)[number],
  text: string | undefined,
  { name, defaults }: KnownSuite & { readonly name: string },
): Partial<Sizes> {
  const byDefault = defaults[setting];
  if (byDefault !== undefined) return { [setting]: countOf(`--${setting}`, text, byDefault) };
  if (text === undefined) return {};
  throw new UsageError(`--${setting} is nothing that can be set in the suite '${name}'`);
}

function countOf(flag: string, text: string | undefined, byDefault: number): number {
  if (text === undefined) return byDefault;
  if (/^[1-9]\d{0,4}$/.test(text)) return Number(text);
  throw new UsageError(`${flag} must be a whole number from 1 to 99999, got '${text}'`);
}
