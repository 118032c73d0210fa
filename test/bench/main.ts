import { writeFile } from 'node:fs/promises';
import { availableParallelism, cpus, loadavg, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { ensureBinaries } from '../../samples/control-plane/binaries.ts';
import { KUBERNETES_VERSION } from '../../samples/control-plane/versions.ts';
import { messageOf } from '../../src/errors.ts';
import { type BenchOptions, helpOf, parseBenchOptions, UsageError } from './options.ts';
import { tableOf } from './report.ts';
import type { CaseResult } from './result.ts';
import { runSuite } from './runner.ts';
import { caseNamesOf, type Stage } from './suite.ts';
import { SUITES } from './suites.ts';

/** `npm run bench`: see options.ts for the flags, suites.ts for what there is to measure. */

const EXIT = { failure: 1, usage: 2, interrupted: 130 } as const;

const KNOWN = Object.fromEntries(
  Object.values(SUITES).map((suite) => [
    suite.name,
    { text: suite.text, defaults: suite.defaults, cases: caseNamesOf(suite) },
  ]),
);

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
  endOnSignals();
  // No time limit of a case has to hold the build of a control plane.
  await ensureBinaries({ onProgress: say });
  const loadBefore = loadavg();
  const startedAt = new Date();
  const suite = SUITES[options.suite as keyof typeof SUITES];
  const results = await runSuite(suite, {
    ...options,
    onProgress: say,
    onStage: (opened) => {
      stage = opened;
    },
  });
  const path = options.out ?? join(tmpdir(), `bench-${options.suite}-${startedAt.getTime()}.json`);
  const [{ model = '' } = {}] = cpus();
  const all = {
    suite: options.suite,
    bases: options.bases,
    runs: options.runs,
    startedAt: startedAt.toISOString(),
    tookSeconds: Math.round((Date.now() - startedAt.getTime()) / 1000),
    machine: {
      cores: availableParallelism(),
      model,
      memoryMib: Math.round(totalmem() / 1024 ** 2),
      loadBefore,
      node: process.version,
      kubernetes: KUBERNETES_VERSION,
    },
    cases: results,
  };
  await writeFile(path, `${JSON.stringify(all, null, 2)}\n`);
  const size = `${options.bases} bases, runs: ${options.runs}, took ${all.tookSeconds} s on ${all.machine.cores} cores`;
  console.log(['', `${options.suite}: ${size}`, '', ...tableOf(results), '', `JSON: ${path}`].join('\n'));
  if (results.some(hasFailed)) process.exitCode = EXIT.failure;
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
