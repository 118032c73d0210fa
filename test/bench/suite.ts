import type { ProfileCalls } from './profiler.ts';
import type { Watched } from './usage.ts';

/** One number that a case measures, and what is promised of it. */
export interface Figure {
  readonly text: string;
  /** `s`, `per minute`, …; '' for a ratio. */
  readonly unit: string;
  /** Promised; a figure without any promise is to be read. */
  readonly atMost?: number;
  /** Promised of a number of which more is better. */
  readonly atLeast?: number;
  /** Promised of the first subject over the floor: ratios within each run, of these the median. */
  readonly timesFloorAtMost?: number;
}

export interface Measurement<Key extends string = string> {
  /** A figure that this subject does not have is left out. One that should have come and did not is NaN. */
  readonly values: Readonly<Partial<Record<Key, number>>>;
  /** What the numbers were made of; goes into the JSON as it is. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Something that is measured, on a stage that it may share with other cases. */
export interface BenchCase<Stage, Key extends string = string> {
  readonly name: string;
  readonly figures: Readonly<Record<Key, Figure>>;
  /** Of those of the suite; absent: only the first. */
  readonly subjects?: readonly string[];
  /** Only when `--case` asks for it: it is heavy. */
  readonly isOptional?: true;
  /** Brings the stage to where the case begins, whatever ran before. Not measured. */
  prepare(stage: Stage): Promise<void>;
  /** Whose CPU time and memory are told too: those that live before and at the end. */
  watched(stage: Stage): readonly Watched[];
  measure(stage: Stage): Promise<Measurement<Key>>;
  /** What comes of it later; measured apart, so that it counts for nothing above. */
  afterwards?(stage: Stage): Promise<Measurement<NoInfer<Key>>>;
  /** After its step, also when it failed. */
  finish?(stage: Stage): Promise<void>;
}

/** Whatever cases run on. `close` ends all that it has started. */
export interface Stage {
  /** Of the process that is measured now; absent: it gives no profile. */
  readonly profiler?: ProfileCalls | undefined;
  close(): Promise<void>;
}

/** What the command line may change. A suite takes only those that it has a default for. */
export interface Sizes {
  readonly bases: number;
  /** On each base. */
  readonly modules?: number;
  readonly replicas?: number;
  /** That are exported. */
  readonly services?: number;
  readonly configs?: number;
  readonly minutes?: number;
  /** How long a burst lasts. */
  readonly seconds?: number;
  /** Changes in each second of a burst. */
  readonly rate?: number;
  /** Of all accidents; 0: any. */
  readonly seed?: number;
}

export interface StageOptions extends Sizes {
  /** One of those of the suite; '' where it compares nothing. */
  readonly subject: string;
  readonly onProgress: (line: string) => void;
}

/** Cases that share a stage. A new one: a file that exports it, and its place in `steps`. */
export interface Suite<S extends Stage> {
  readonly name: string;
  /** For the help. */
  readonly text: string;
  readonly defaults: Sizes & { readonly runs: number };
  /**
   * What is measured, then what it is compared with, the floor first; absent: one, without a name. `floor 4` and
   * `floor 8` are variants of one: of these the best counts, see `result.ts`.
   */
  readonly subjects?: readonly string[];
  /** What a reader of the figures has to know. */
  readonly notes?: readonly string[];
  /** One after the other, on one stage for each run and subject. The cases of one step run side by side. */
  readonly steps: readonly (readonly BenchCase<S>[])[];
  /** What takes long only once on a machine. */
  prepare?(options: { subjects: readonly string[]; onProgress: (line: string) => void }): Promise<void>;
  open(options: StageOptions): S;
}

/** Holds the keys of `measure` to those of `figures`. */
export function benchCase<S, Key extends string>(of: BenchCase<S, Key>): BenchCase<S> {
  return of;
}

export function caseNamesOf<S extends Stage>({ steps }: Suite<S>): string[] {
  return steps.flat().map(({ name }) => name);
}

/** What a subject stands under: a variant, such as `floor 4`, under the name of all of them. */
export function columnOf(subject: string): string {
  return subject.split(' ', 1)[0] ?? '';
}

/** The columns of a comparison: what is measured, the floor, and others. */
export function columnsOf(subjects: readonly string[]): readonly string[] {
  return [...new Set(subjects.map(columnOf))];
}

/** '' is the one without a name. */
export function subjectsOf<S extends Stage>({ subjects = [''] }: Suite<S>): readonly string[] {
  return subjects;
}

export function sizesText({ bases, modules, replicas, services, configs, minutes, seconds, rate }: Sizes): string {
  const parts = [
    counted(bases, 'base'),
    ...(modules === undefined ? [] : [`${counted(modules, 'module')} on each`]),
    ...(replicas === undefined ? [] : [counted(replicas, 'replica')]),
    ...(services === undefined ? [] : [counted(services, 'Service')]),
    ...(configs === undefined ? [] : [counted(configs, 'ModuleConfig')]),
    ...(minutes === undefined ? [] : [counted(minutes, 'minute')]),
    ...(seconds === undefined ? [] : [`${counted(seconds, 'second')} of a burst`]),
    ...(rate === undefined ? [] : [`${counted(rate, 'change')} a second`]),
  ];
  return parts.join(', ');
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
