import { access, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { withLock } from './lock.ts';
import { everyFewSeconds } from './progress.ts';

export interface FillOptions {
  /** Made, complete and checked, or not at all. */
  directory: string;
  /** Whether `directory` holds all that it should. */
  isComplete: () => Promise<boolean>;
  /** Completes the sentence "waiting for another process that …". */
  what: string;
  onProgress: (line: string) => void;
}

/** Where what took long to make is kept: `XDG_CACHE_HOME`, or `~/.cache`, and below it a directory of ours. */
export function cacheRootOf(env: NodeJS.ProcessEnv): string {
  return join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'module-controller');
}

/** For `isComplete`, where one file or the directory itself shows that. */
export function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/**
 * Calls `make` with a directory beside the wanted one, and moves that into place. One process of the machine at a time;
 * the others wait and then find it done. What a killed process left never counts, and is removed by the next one.
 */
export async function fillDirectory(
  { directory, isComplete, what, onProgress }: FillOptions,
  make: (workDirectory: string) => Promise<void>,
): Promise<void> {
  const onWait = everyFewSeconds(() => onProgress(`waiting for another process that ${what}`));
  await withLock({ path: `${directory}.lock`, isDone: isComplete, onWait }, async () => {
    const prefix = `${basename(directory)}.partial-`;
    await removeLeftovers(dirname(directory), prefix);
    const workDirectory = await mkdtemp(join(dirname(directory), prefix));
    try {
      await make(workDirectory);
      await rm(directory, { recursive: true, force: true }); // incomplete, else isComplete
      await rename(workDirectory, directory);
    } finally {
      await rm(workDirectory, { recursive: true, force: true });
    }
  });
}

async function removeLeftovers(directory: string, prefix: string): Promise<void> {
  const names = (await readdir(directory)).filter((name) => name.startsWith(prefix));
  await Promise.all(names.map((name) => rm(join(directory, name), { recursive: true, force: true })));
}
