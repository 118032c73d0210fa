import { resolve } from 'node:path';
import { createVitest, type TestModule, type Vitest } from 'vitest/node';
import { UNIT } from '../../vitest.config.ts';
import type { JudgeMessage, Trial, TrialResult } from './trial.ts';
import type {} from './worker-setup.ts';

/**
 * A process that runs test files of the unit project, one at a time, with other texts of some sources.
 * The texts are given to the bundler in memory: no file is written. One process runs many trials, so that what
 * did not change is read and translated once.
 */

const ROOT = resolve(import.meta.dirname, '../..');

class Judge {
  readonly #vitest: Vitest;
  readonly #sources: Map<string, string>;

  private constructor(vitest: Vitest, sources: Map<string, string>) {
    this.#vitest = vitest;
    this.#sources = sources;
  }

  static async start(cacheDir: string): Promise<Judge> {
    const sources = new Map<string, string>();
    const vitest = await createVitest(
      'test',
      {
        ...UNIT,
        // No trial finds what an earlier one has loaded.
        isolate: true,
        config: false,
        root: ROOT,
        watch: false,
        // Its key is the text on the disk.
        fsModuleCache: false,
        bail: 1,
        maxWorkers: 1,
        setupFiles: [resolve(import.meta.dirname, 'worker-setup.ts')],
        reporters: [{}],
        // What a test that fails leaves behind as text is of no use to anyone.
        silent: true,
      },
      {
        cacheDir,
        plugins: [{ name: 'other-sources', enforce: 'pre', load: (id) => sources.get(id) }],
      },
    );
    await vitest.standalone();
    return new Judge(vitest, sources);
  }

  async testFiles(): Promise<string[]> {
    return (await this.#vitest.globTestSpecifications()).map((one) => one.moduleId);
  }

  async run({ testFile, sources, testTimeoutMs }: Trial): Promise<TrialResult> {
    const changed = new Set([...this.#sources.keys(), ...Object.keys(sources)]);
    this.#sources.clear();
    for (const [path, text] of Object.entries(sources)) this.#sources.set(path, text);
    for (const path of changed) this.#vitest.invalidateFile(path);
    this.#vitest.provide('testTimeoutMs', testTimeoutMs);
    const startedAt = performance.now();
    const { testModules, unhandledErrors } = await this.#vitest.runTestSpecifications([
      this.#vitest.getRootProject().createSpecification(testFile),
    ]);
    // The others are of earlier trials.
    const module = testModules.find((one) => one.moduleId === testFile);
    if (module === undefined) throw new Error(`${testFile} was not run`);
    return resultOf(module, unhandledErrors, performance.now() - startedAt);
  }
}

function resultOf(module: TestModule, unhandledErrors: readonly unknown[], ms: number): TrialResult {
  const failure = failuresOf(module, unhandledErrors)[0];
  if (failure === undefined && module.state() !== 'passed') throw new Error(`${module.moduleId} is ${module.state()}`);
  const times = [...module.children.allTests()].map((test) => test.diagnostic()?.duration ?? 0);
  return {
    outcome: failure === undefined ? 'passed' : /timed out in/.test(failure) ? 'timed out' : 'failed',
    failure: failure ?? '',
    ms,
    slowestTestMs: Math.max(0, ...times),
    probes: module.meta().probes ?? [],
  };
}

/** Of tests, of files that cannot be loaded, and of promises that nobody awaited. */
function failuresOf(module: TestModule, unhandledErrors: readonly unknown[]): string[] {
  return [
    ...[...module.children.allTests('failed')].map(
      (test) => `${test.fullName}: ${test.result().errors?.[0]?.message ?? 'failed'}`,
    ),
    ...[...module.children.allSuites()].flatMap((suite) => suite.errors().map(({ message }) => message)),
    ...module.errors().map(({ message }) => message),
    ...unhandledErrors.map((error) => (error instanceof Error ? error.message : JSON.stringify(error))),
  ];
}

function send(message: JudgeMessage): void {
  process.send?.(message);
}

// The parent is gone: nothing of this process group may stay, a worker in an endless loop neither.
process.on('disconnect', () => process.kill(-process.pid, 'SIGKILL'));

const [cacheDir] = process.argv.slice(2);
if (cacheDir === undefined) throw new Error('needs a directory for its cache');
const judge = await Judge.start(cacheDir);
process.on('message', async (trial: Trial) => send({ kind: 'result', result: await judge.run(trial) }));
send({ kind: 'ready', testFiles: await judge.testFiles() });
