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

/** Files that import each other, directly or through others, also when only their types do. */
export function importCircles(files: readonly SourceFile[]): string[] {
  let left = files.map(({ path, imports }) => ({ path, targets: imports.map(({ target }) => target) }));
  // A file that imports nobody who is left, or that nobody imports, is in no circle.
  for (let before = -1; before !== left.length; ) {
    before = left.length;
    const paths = new Set(left.map(({ path }) => path));
    const imported = new Set(left.flatMap(({ targets }) => targets));
    left = left.filter(({ path, targets }) => imported.has(path) && targets.some((target) => paths.has(target)));
  }
  return left.map(({ path }) => path);
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
