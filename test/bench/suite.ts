import type { Watched } from './usage.ts';

/** One number that a case measures, and what is promised of it. */
export interface Figure {
  readonly text: string;
  /** `s`, `per minute`, …; '' for a ratio. */
  readonly unit: string;
  /** Promised; absent: the number is to be read. */
  readonly atMost?: number;
}

export interface Measurement<Key extends string = string> {
  readonly values: Readonly<Record<Key, number>>;
  /** What the numbers were made of; goes into the JSON as it is. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Something that is measured, on a stage that it may share with other cases. */
export interface BenchCase<Stage, Key extends string = string> {
  readonly name: string;
  readonly figures: Readonly<Record<Key, Figure>>;
  /** Brings the stage to where the case begins, whatever ran before. Not measured. */
  prepare(stage: Stage): Promise<void>;
  /** Whose CPU time and memory are told too: those that live before and at the end. */
  watched(stage: Stage): readonly Watched[];
  measure(stage: Stage): Promise<Measurement<Key>>;
  /** After its step, also when it failed. */
  finish?(stage: Stage): Promise<void>;
}

/** Whatever cases run on. `close` ends all that it has started. */
export interface Stage {
  close(): Promise<void>;
}

export interface StageOptions {
  readonly bases: number;
  readonly onProgress: (line: string) => void;
}

/** Cases that share a stage. A new one: a file that exports it, and its place in `steps`. */
export interface Suite<S extends Stage> {
  readonly name: string;
  /** For the help. */
  readonly text: string;
  readonly defaults: { readonly runs: number; readonly bases: number };
  /** One after the other, on one stage for each run. The cases of one step run side by side. */
  readonly steps: readonly (readonly BenchCase<S>[])[];
  open(options: StageOptions): S;
}

/** Holds the keys of `measure` to those of `figures`. */
export function benchCase<S, Key extends string>(of: BenchCase<S, Key>): BenchCase<S> {
  return of;
}

export function caseNamesOf<S extends Stage>({ steps }: Suite<S>): string[] {
  return steps.flat().map(({ name }) => name);
}
