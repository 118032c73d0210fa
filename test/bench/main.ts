import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus, loadavg, tmpdir, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { ensureBinaries } from '../../samples/control-plane/binaries.ts';
import { KUBERNETES_VERSION } from '../../samples/control-plane/versions.ts';
import { messageOf } from '../../src/errors.ts';
import { changesSince } from './compare.ts';
import { isComplete, keptCaseOf, type Measured, merged } from './kept.ts';
import { readKept, writeKept } from './kept-files.ts';
import { type BenchOptions, helpOf, type KnownSuites, parseBenchOptions, UsageError } from './options.ts';
import { tableOf } from './report.ts';
import type { CaseResult } from './result.ts';
import { runSuite, subjectsAmong } from './runner.ts';
import { caseNamesOf, columnsOf, type Stage, type Suite, sizesText, subjectsOf } from './suite.ts';
import { DEFAULT_SUITE, SUITES } from './suites.ts';

/** `npm run bench`: see options.ts for the flags, suites.ts for what there is to measure. */

const EXIT = { failure: 1, usage: 2, interrupted: 130 } as const;

/** Each opens a stage of its own kind, and no other stage comes near its cases. */
const ALL: Readonly<Record<string, Suite<Stage>>> = SUITES;

const KNOWN: KnownSuites = {
  suites: Object.fromEntries(
    Object.entries(ALL).map(([name, suite]) => {
      const { text, defaults, steps } = suite;
      return [name, { text, defaults, cases: steps.flat(), subjects: columnsOf(subjectsOf(suite)) }];
    }),
  ),
  byDefault: DEFAULT_SUITE,
};

const bornAt = performance.now();

/** Progress goes where errors go: the table alone can be piped. */
function say(line: string): void {
  const seconds = ((performance.now() - bornAt) / 1000).toFixed(0).padStart(4);
  process.stderr.write(`[${seconds} s] ${line}\n`);
}

let stage: Stage | undefined;

/** Later signals change nothing: npm hands a Ctrl-C on that came by itself already. */
function endOnSignals(): void {
  let isEnding = false;
  const end = async (): Promise<void> => {
    if (isEnding) return;
    isEnding = true;
    say('interrupted');
    await stage?.close().catch(() => {});
    process.exit(EXIT.interrupted);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void end());
}

async function run(options: BenchOptions): Promise<void> {
  const suite = ALL[options.suite];
  if (!suite) throw new Error(`no suite ${options.suite}`);
  // A file that cannot be read is told before hours have gone.
  const former = (await readKept(suite.name))?.cases ?? [];
  endOnSignals();
  // No time limit of a case has to hold the build of a control plane.
  await ensureBinaries({ onProgress: say });
  await suite.prepare?.({ subjects: subjectsAmong(subjectsOf(suite), options.subjects), onProgress: say });
  if (options.profile !== undefined) await mkdir(options.profile, { recursive: true });
  const loadBefore = loadavg();
  const startedAt = new Date();
  const results = await runSuite(suite, {
    ...options,
    // The process that writes it may have another working directory.
    profile: options.profile && resolve(options.profile),
    onProgress: say,
    onStage: (opened) => {
      stage = opened;
    },
  });
  const { runs, sizes } = options;
  const measured: Measured = { at: startedAt.toISOString(), machine: machineText(), runs, sizes };
  const tookSeconds = Math.round((Date.now() - startedAt.getTime()) / 1000);
  const path = options.out ?? join(tmpdir(), `bench-${suite.name}-${startedAt.getTime()}.json`);
  const all = { suite: suite.name, ...measured, loadBefore, tookSeconds, cases: results };
  await writeFile(path, `${JSON.stringify(all, null, 2)}\n`);
  const size = `${sizesText(sizes)}, runs: ${runs}, took ${tookSeconds} s on ${availableParallelism()} cores`;
  const now = results.map((result) => keptCaseOf(result, measured));
  const changes = changesSince(former, now);
  const below = changes.length === 0 ? [] : ['', ...changes];
  console.log(
    [
      '',
      `${suite.name}: ${size}`,
      '',
      ...tableOf(results),
      '',
      ...(suite.notes ?? []),
      ...below,
      '',
      `JSON: ${path}`,
    ].join('\n'),
  );
  if (options.keep) await keep(suite, { former, results, measured });
  if (results.some(hasFailed)) process.exitCode = EXIT.failure;
}

interface ToKeep {
  readonly former: Parameters<typeof merged>[0];
  readonly results: readonly CaseResult[];
  readonly measured: Measured;
}

/** A case of which a run is missing keeps its former result. */
async function keep(suite: Suite<Stage>, { former, results, measured }: ToKeep): Promise<void> {
  const complete = results.filter((result) => isComplete(result, measured.runs));
  const now = complete.map((result) => keptCaseOf(result, measured));
  for (const result of results)
    if (!complete.includes(result)) console.log(`NOT KEPT: ${result.name}: a run is missing`);
  if (now.length === 0) return;
  const { name, text, notes } = suite;
  const cases = merged(former, now, caseNamesOf(suite));
  const paths = await writeKept({
    suite: name,
    text,
    ...(notes ? { notes } : {}),
    subjects: columnsOf(subjectsOf(suite)),
    cases,
  });
  console.log(paths.map((path) => `Kept: ${path}`).join('\n'));
}

function machineText(): string {
  const [{ model = '' } = {}] = cpus();
  const memory = `${Math.round(totalmem() / 1024 ** 3)} GiB`;
  const parts = [
    `${availableParallelism()} cores`,
    model.trim(),
    memory,
    `Node ${process.version}`,
    `Kubernetes ${KUBERNETES_VERSION}`,
  ];
  return parts.filter(Boolean).join(', ');
}

function hasFailed({ runs }: CaseResult): boolean {
  return runs.some(({ failure }) => failure !== undefined);
}

try {
  const options = parseBenchOptions(process.argv.slice(2), KNOWN);
  if (options) await run(options);
  else console.log(helpOf(KNOWN));
} catch (error) {
  console.error(error instanceof UsageError ? `${messageOf(error)}\nTry --help.` : error);
  process.exitCode = error instanceof UsageError ? EXIT.usage : EXIT.failure;
}
