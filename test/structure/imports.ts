import { ARROWS, areaOf } from '../unit/docs/architecture.ts';
import type { SourceFile } from '../unit/docs/sources.ts';

export interface ImportCounts {
  readonly values: number;
  readonly types: number;
}

/** Imports between files of the repository: those that run, and those that only types need. */
export function importCounts(files: readonly SourceFile[]): ImportCounts {
  const all = files.flatMap(({ imports }) => imports).filter(({ isOfRepository }) => isOfRepository);
  const types = all.filter(({ isTypeOnly }) => isTypeOnly).length;
  return { values: all.length - types, types };
}

/** Groups of files that import each other, directly or through others, also when only their types do. */
export function importCircles(files: readonly SourceFile[]): string[][] {
  const targets = new Map(
    files.map(({ path, imports }) => [
      path,
      imports.filter((found) => found.isOfRepository).map((found) => found.target),
    ]),
  );
  const reached = new Map([...targets.keys()].map((path) => [path, reachableFrom(path, targets)]));
  const circles = new Map<string, string[]>();
  for (const [path, others] of reached) {
    if (!others.has(path)) continue;
    const circle = [...others].filter((other) => reached.get(other)?.has(path)).sort();
    circles.set(circle.join(' '), circle);
  }
  return [...circles.values()];
}

function reachableFrom(path: string, targets: ReadonlyMap<string, readonly string[]>): Set<string> {
  const reached = new Set<string>();
  const open = [...(targets.get(path) ?? [])];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (reached.has(next)) continue;
    reached.add(next);
    open.push(...(targets.get(next) ?? []));
  }
  return reached;
}

/** Imports that no arrow allows. */
export function importsUp(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, imports }) => {
    const from = areaOf(path);
    const allowed = [from, ...(ARROWS[from] ?? [])];
    return imports
      .filter(
        ({ isOfRepository, target }) => isOfRepository && !allowed.includes('*') && !allowed.includes(areaOf(target)),
      )
      .map(({ target }) => `${path} -> ${target}`);
  });
}
