import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { messageOf } from '../../src/errors.ts';
import { kernelCpuSeconds } from '../support/cost.ts';
import { withUnit } from './report.ts';
import { type CaseResult, type CaseRun, resultOf } from './result.ts';
import { type BenchCase, columnOf, type Measurement, type Sizes, type Stage, type Suite, subjectsOf } from './suite.ts';
import { rounded, UsageMeter } from './usage.ts';

const PAUSE_RESOLUTION_MS = 10;

export interface RunnerOptions {
  readonly runs: number;
  readonly sizes: Sizes;
  /** Empty: all but the optional ones. */
  readonly cases: readonly string[];
  /** By column; empty: all. */
  readonly subjects: readonly string[];
  /** The folder for CPU profiles; undefined: none are made. */
  readonly profile?: string | undefined;
  readonly onProgress: (line: string) => void;
  /** Whoever interrupts closes it. */
  readonly onStage: (stage: Stage) => void;
}

type Steps<S> = readonly (readonly BenchCase<S>[])[];
type DoneCase<S> = readonly [BenchCase<S>, CaseRun];

/**
 * Runs the cases as often as asked, each run and subject on a new stage.
 * A case that fails ends its stage, neither the other subject's nor the next run.
 */
export async function runSuite<S extends Stage>(suite: Suite<S>, options: RunnerOptions): Promise<CaseResult[]> {
  const steps = stepsWith(suite.steps, ({ name, isOptional }) =>
    options.cases.length === 0 ? !isOptional : options.cases.includes(name),
  );
  const subjects = subjectsOf(suite);
  failOnUnknownSubject(steps, subjects);
  const wanted = subjectsAmong(subjects, options.subjects);
  const runs = new Map<BenchCase<S>, CaseRun[]>(steps.flat().map((benchCase) => [benchCase, []]));
  for (let run = 1; run <= options.runs; run++) {
    for (const subject of orderOf(wanted, run)) {
      const ofSubject = stepsWith(steps, (one) => (one.subjects ?? subjects.slice(0, 1)).includes(subject));
      if (ofSubject.length === 0) continue;
      const done = await runSubject(suite, ofSubject, { ...options, run, subject });
      for (const [benchCase, of] of done) runs.get(benchCase)?.push(of);
    }
  }
  return [...runs].map(([benchCase, of]) => resultOf(benchCase, of, subjects));
}

/** Those that stand under one of the columns; empty: all. */
export function subjectsAmong(subjects: readonly string[], columns: readonly string[]): readonly string[] {
  return subjects.filter((subject) => columns.length === 0 || columns.includes(columnOf(subject)));
}

/**
 * The first subject stands amid those that it is compared with, so that a machine that becomes slower meanwhile does so
 * for both. Alternating, so that whatever one leaves behind on the machine is not always to the same one's cost.
 */
function orderOf(subjects: readonly string[], run: number): readonly string[] {
  const middle = Math.floor((subjects.length - 1) / 2);
  const ordered = subjects.slice(1).toSpliced(middle, 0, ...subjects.slice(0, 1));
  return run % 2 === 1 ? ordered : ordered.toReversed();
}

function stepsWith<S>(steps: Steps<S>, isWanted: (benchCase: BenchCase<S>) => boolean): Steps<S> {
  return steps.map((step) => step.filter(isWanted)).filter((step) => step.length > 0);
}

/** It would never run, and nobody would notice. */
function failOnUnknownSubject<S>(steps: Steps<S>, subjects: readonly string[]): void {
  for (const { name, subjects: wanted = [] } of steps.flat()) {
    const unknown = wanted.find((subject) => !subjects.includes(subject));
    if (unknown !== undefined) throw new Error(`${name} is for '${unknown}', the suite has '${subjects.join(', ')}'`);
  }
}

interface StepOptions {
  readonly run: number;
  readonly subject: string;
  readonly profile?: string | undefined;
  readonly onProgress: (line: string) => void;
}

/** All steps on one stage, as far as they go. */
async function runSubject<S extends Stage>(
  suite: Suite<S>,
  steps: Steps<S>,
  { run, subject, runs, sizes, profile, onStage, onProgress: say }: RunnerOptions & StepOptions,
): Promise<DoneCase<S>[]> {
  const onProgress = (line: string): void => say(`${[`run ${run}/${runs}`, subject].join(' ').trimEnd()}: ${line}`);
  const stage = suite.open({ ...sizes, subject, onProgress });
  onStage(stage);
  const all: DoneCase<S>[] = [];
  try {
    for (const step of steps) {
      const done = await runStep(step, stage, { run, subject, profile, onProgress });
      all.push(...done);
      if (done.some(([, { failure }]) => failure !== undefined)) break;
    }
  } finally {
    await stage.close();
  }
  return all;
}

async function runStep<S extends Stage>(
  step: readonly BenchCase<S>[],
  stage: S,
  options: StepOptions,
): Promise<DoneCase<S>[]> {
  try {
    await prepareAll(step, stage, options);
    return await Promise.all(step.map(async (one) => [one, await runCase(one, stage, options)] as const));
  } catch (error) {
    options.onProgress(`FAILED: ${messageOf(error)}`);
    return step.map((one) => [one, failedRun(options, error)]);
  } finally {
    for (const benchCase of step) await benchCase.finish?.(stage);
  }
}

async function prepareAll<S>(step: readonly BenchCase<S>[], stage: S, { onProgress }: StepOptions): Promise<void> {
  // One that fails leaves the others to their end: the stage is not closed under their hands.
  const prepared = await Promise.allSettled(
    step.map((benchCase) => {
      onProgress(`${benchCase.name}: preparing`);
      return benchCase.prepare(stage);
    }),
  );
  const failed = prepared.find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
}

async function runCase<S extends Stage>(benchCase: BenchCase<S>, stage: S, options: StepOptions): Promise<CaseRun> {
  const { run, subject, onProgress } = options;
  const { name, figures } = benchCase;
  onProgress(`${name}: measuring`);
  const meter = new UsageMeter(benchCase.watched(stage));
  const pauses = monitorEventLoopDelay({ resolution: PAUSE_RESOLUTION_MS });
  pauses.enable();
  const endProfile = await profiling(stage, name, options);
  const [startedAt, kernelBefore] = [performance.now(), kernelCpuSeconds()];
  try {
    const measured = await benchCase.measure(stage);
    const tookSeconds = Math.round((performance.now() - startedAt) / 100) / 10;
    const usage = meter.read(benchCase.watched(stage));
    await endProfile();
    const kernelSeconds = rounded(kernelCpuSeconds() - kernelBefore);
    const pauseMs = Math.round(pauses.max / 1e6) - PAUSE_RESOLUTION_MS;
    const later = await benchCase.afterwards?.(stage);
    const values = { ...measured.values, ...later?.values };
    const details = { ...measured.details, ...later?.details };
    onProgress(`${name}: ${wordsOf(figures, values)}`);
    return { run, subject, tookSeconds, values, details, usage, pauseMs, kernelCpuSeconds: kernelSeconds };
  } catch (error) {
    onProgress(`${name} FAILED: ${messageOf(error)}`);
    return failedRun(options, error);
  } finally {
    pauses.disable();
  }
}

/** Begins a profile where one is wanted, and returns what ends it. A case is measured also without one. */
async function profiling(
  stage: Stage,
  name: string,
  { profile, run, subject, onProgress }: StepOptions,
): Promise<() => Promise<void>> {
  if (profile === undefined) return async () => {};
  const path = join(profile, `${[name, subject, run].join(' ').replaceAll(/\W+/g, '-')}.cpuprofile`);
  const none = (error: unknown): void => onProgress(`${name}: no profile: ${messageOf(error)}`);
  try {
    const { profiler } = stage;
    if (profiler === undefined) throw new Error('nothing here gives one');
    await profiler.startProfile();
    return () => profiler.writeProfile(path).then(() => onProgress(`${name}: profile: ${path}`), none);
  } catch (error) {
    none(error);
    return async () => {};
  }
}

function failedRun({ run, subject }: StepOptions, error: unknown): CaseRun {
  const nothing = { tookSeconds: 0, values: {}, details: {}, usage: [], pauseMs: 0, kernelCpuSeconds: 0 };
  return { run, subject, ...nothing, failure: messageOf(error) };
}

function wordsOf(figures: BenchCase<never>['figures'], values: Measurement['values']): string {
  const known = Object.entries(figures).filter(([key]) => values[key] !== undefined);
  return known.map(([key, { text, unit }]) => `${text} ${withUnit(values[key], unit)}`).join('; ');
}
