import { readFileSync } from 'node:fs';

const FILE = new URL('durations.json', import.meta.url);

/** Seconds that each test file took when it was last recorded, by its path from the root. */
export type Durations = Readonly<Record<string, number>>;

/** The part of Vitest's JSON report that is read. */
export interface Report {
  readonly testResults: readonly {
    /** Absolute. */
    readonly name: string;
    readonly status: string;
    readonly startTime: number;
    readonly endTime: number;
  }[];
}

export function recordedDurations(): Durations {
  return JSON.parse(readFileSync(FILE, 'utf8')) as Durations;
}

/**
 * The record after a run. A file that runs in several projects keeps its longest time. Files that the report does not
 * have, or that failed, keep the time they had; files that no longer exist leave the record.
 */
export function updatedDurations(
  former: Durations,
  { testResults }: Report,
  { root, exists }: { root: string; exists: (path: string) => boolean },
): Durations {
  const measured = new Map<string, number>();
  for (const { name, status, startTime, endTime } of testResults) {
    if (status !== 'passed' || !name.startsWith(root)) continue;
    const path = name.slice(root.length);
    measured.set(path, Math.max(measured.get(path) ?? 0, Math.round((endTime - startTime) / 1000)));
  }
  const all = Object.entries({ ...former, ...Object.fromEntries(measured) }).filter(([path]) => exists(path));
  return Object.fromEntries(all.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The text of `durations.json`. */
export function textOf(durations: Durations): string {
  return `${JSON.stringify(durations, undefined, 2)}\n`;
}

/** A test file of a run. */
export interface PlannedFile {
  readonly project: string;
  /** From the root. */
  readonly path: string;
  /** Files of a project without isolation share processes with the modules that they have loaded. */
  readonly isIsolated: boolean;
}

/** A file that starts later than its duration says. */
export interface LateStart {
  readonly project: string;
  readonly path: string;
  /** The file starts when this share of the work of files that share processes is done. */
  readonly afterShare: number;
}

/**
 * The order in which files that run at the same time start: those that take longest first, and before them those
 * without a record. Files that share processes come last and project by project, the project with most work first: Vitest
 * ends a process when the next file belongs to another project.
 */
export function startOrder<File extends PlannedFile>(
  files: readonly File[],
  durations: Durations,
  lateStarts: readonly LateStart[],
): File[] {
  const lateStartOf = (file: File): LateStart | undefined =>
    lateStarts.find(({ project, path }) => file.project === project && file.path === path);
  const secondsOf = ({ path }: File): number => durations[path] ?? Number.POSITIVE_INFINITY;
  const longestFirst = (all: readonly File[]): File[] =>
    all.toSorted((a, b) => (secondsOf(a) === secondsOf(b) ? 0 : secondsOf(b) - secondsOf(a)));

  const onTime = files.filter((file) => lateStartOf(file) === undefined);
  const isolated = longestFirst(onTime.filter(({ isIsolated }) => isIsolated));
  const workOf = (all: readonly File[]): number => all.reduce((sum, { path }) => sum + (durations[path] ?? 0), 0);
  const byProject = Map.groupBy(
    onTime.filter(({ isIsolated }) => !isIsolated),
    ({ project }) => project,
  );
  const sharing = [...byProject.values()].sort((a, b) => workOf(b) - workOf(a)).flatMap(longestFirst);
  const late = files.flatMap((file) => lateStartOf(file) ?? []).toSorted((a, b) => a.afterShare - b.afterShare);

  const work = workOf(sharing);
  const order = [...isolated];
  let done = 0;
  const startLate = (isDue: (start: LateStart) => boolean): void => {
    while (late[0] !== undefined && isDue(late[0])) {
      const start = late.shift();
      order.push(...files.filter((file) => lateStartOf(file) === start));
    }
  };
  for (const file of sharing) {
    startLate(({ afterShare }) => done >= afterShare * work);
    order.push(file);
    done += durations[file.path] ?? 0;
  }
  startLate(() => true);
  return order;
}
