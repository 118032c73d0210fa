import { randomInt } from 'node:crypto';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { messageOf } from '../../src/errors.ts';
import { seededRandom } from '../support/api-fault-proxy.ts';
import { Compiler } from './compiler.ts';
import { Court, type Runner } from './court.ts';
import { type Mutant, mutantsOf, mutatedText, probedText } from './mutants.ts';
import { HELP, MAX_SEED, type MutantOptions, parseMutantOptions, UsageError } from './options.ts';
import { killOf, lineOf, ratePercent, survivorsText, tableText, type Verdict } from './report.ts';
import { PROBE, type TrialResult } from './trial.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const SOURCES = ['src/**/*.ts', 'tunnels/**/*.ts'];
/** A machine under load is no fault: a test may take this much longer than it took alone, and these ms more. */
const PATIENCE = { factor: 5, testMs: 10_000, fileMs: 30_000 } as const;

/** A trial is repeated so often while its control fails. */
const MAX_TRIES = 3;

/** What a test file did with unchanged code. */
interface Measured {
  /** Relative to the root. */
  readonly testFile: string;
  readonly ms: number;
  readonly slowestTestMs: number;
  readonly mutants: ReadonlySet<number>;
}

async function main(): Promise<number> {
  const options = parseMutantOptions(process.argv.slice(2), () => randomInt(MAX_SEED));
  if (options === undefined) {
    console.log(HELP);
    return 0;
  }
  console.log(`seed ${options.seed}`);
  const mutants = draw(options);
  const directory = mkdtempSync(join(tmpdir(), 'mutants-'));
  const court = new Court(directory);
  const clear = (): void => {
    court.close();
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  };
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    process.once(signal, () => {
      clear();
      process.exit(code);
    });
  }
  try {
    await court.open(options.workers);
    const measured = await measure(court, mutants, options);
    const verdicts = await judge(court, mutants, measured);
    console.log(`\n${survivorsText(verdicts, readSource)}\n\n${tableText(verdicts)}\n`);
    const rate = ratePercent(verdicts);
    console.log(`seed ${options.seed}: ${rate.toFixed(1)} % killed, wanted ${options.atLeast} %`);
    return rate < options.atLeast ? 1 : 0;
  } finally {
    clear();
  }
}

/** Drawn one by one from all that could be, until enough of them compile. */
function draw({ seed, count, only, operators }: MutantOptions): Mutant[] {
  const compiler = new Compiler(ROOT);
  try {
    const paths = globSync(SOURCES, { cwd: ROOT })
      .filter((path) => only.length === 0 || only.some((part) => path.includes(part)))
      .sort();
    const left = paths
      .flatMap((path) => mutantsOf(compiler.parse(resolve(ROOT, path)), path))
      .filter(({ operator }) => operators.length === 0 || operators.includes(operator));
    const places = left.length;
    const random = seededRandom(seed);
    const drawn: Mutant[] = [];
    let refused = 0;
    while (drawn.length < count && left.length > 0) {
      const [mutant] = left.splice(Math.floor(random() * left.length), 1);
      if (mutant === undefined) break;
      if (compiler.accepts(resolve(ROOT, mutant.path), mutatedText(readSource(mutant.path), mutant)))
        drawn.push(mutant);
      else refused++;
    }
    if (drawn.length === 0) throw new UsageError('there is nothing to change in these files');
    console.log(`${drawn.length} mutants of ${places} places; ${refused} more do not compile and were drawn again`);
    return drawn;
  } finally {
    compiler.close();
  }
}

/** Runs every test file with unchanged code, and probes at the places of the mutants: who runs which. */
async function measure(court: Court, mutants: readonly Mutant[], { tests }: MutantOptions): Promise<Measured[]> {
  const sources = Object.fromEntries(
    [...new Set(mutants.map(({ path }) => path))].map((path) => {
      const own = [...mutants.entries()].filter(([, mutant]) => mutant.path === path);
      return [resolve(ROOT, path), probedText(readSource(path), own, PROBE)];
    }),
  );
  const files = court.testFiles.filter((path) => tests.length === 0 || tests.some((part) => path.includes(part)));
  console.log(`runs ${files.length} test files with unchanged code`);
  const startedAt = performance.now();
  const measured: Measured[] = [];
  await court.forEach(files, async (testFile, run) => {
    const result = await run({ testFile, sources, testTimeoutMs: 60_000 }, 300_000);
    const name = relative(ROOT, testFile);
    if (result.outcome !== 'passed') throw new Error(`${name} fails with unchanged code: ${result.failure}`);
    measured.push({
      testFile: name,
      ms: result.ms,
      slowestTestMs: result.slowestTestMs,
      mutants: new Set(result.probes),
    });
  });
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  console.log(`all pass, in ${seconds} s`);
  return measured;
}

async function judge(court: Court, mutants: readonly Mutant[], measured: readonly Measured[]): Promise<Verdict[]> {
  const verdicts: Verdict[] = [];
  await court.forEach([...mutants.entries()], async ([index, mutant], run) => {
    const files = measured
      .filter((one) => one.mutants.has(index))
      .sort((a, b) => distance(mutant.path, a.testFile) - distance(mutant.path, b.testFile) || a.ms - b.ms);
    let verdict: Verdict = { mutant, outcome: files.length === 0 ? 'not run' : 'survived' };
    for (const file of files) {
      const kill = killOf(mutant, file.testFile, await resultOf(mutant, file, run));
      if (kill === undefined) continue;
      verdict = kill;
      break;
    }
    verdicts.push(verdict);
    console.log(`${String(verdicts.length).padStart(4)} ${lineOf(verdict)}`);
  });
  return verdicts;
}

/** A failure counts when the unchanged code passes right after it: a busy machine, or a flaky test, kills no mutant. */
async function resultOf(mutant: Mutant, { testFile, ms, slowestTestMs }: Measured, run: Runner): Promise<TrialResult> {
  const trial = {
    testFile: resolve(ROOT, testFile),
    sources: { [resolve(ROOT, mutant.path)]: mutatedText(readSource(mutant.path), mutant) },
    testTimeoutMs: Math.ceil(PATIENCE.testMs + PATIENCE.factor * slowestTestMs),
  };
  const limitMs = Math.ceil(PATIENCE.fileMs + PATIENCE.factor * ms);
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const result = await run(trial, limitMs);
    if (result.outcome === 'passed') return result;
    const control = await run({ ...trial, sources: {} }, limitMs);
    if (control.outcome === 'passed') return result;
  }
  throw new Error(
    `${testFile} passes with unchanged code and then fails: the machine is too busy, or the test is flaky`,
  );
}

/** The test that is named after the file first, then those of its folder: they most often kill. */
function distance(path: string, testFile: string): number {
  const isOfFolder = dirname(path).replace(/^src\//, '') === dirname(testFile).replace(/^test\/unit\//, '');
  if (!isOfFolder) return 2;
  return basename(testFile).startsWith(`${basename(path, '.ts')}.`) ? 0 : 1;
}

const texts = new Map<string, string>();

function readSource(path: string): string {
  const text = texts.get(path) ?? readFileSync(resolve(ROOT, path), 'utf8');
  texts.set(path, text);
  return text;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof UsageError ? error.message : `cannot go on: ${messageOf(error)}`);
  process.exitCode = 2;
}
