import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { withLock } from './build-lock.ts';
import { hasAllPrograms } from './programs.ts';
import { COMPONENT_NAMES, ETCD_VERSION, KUBERNETES_VERSION } from './versions.ts';

export const REPORT_EVERY_MS = 5_000;

export interface FillOptions {
  /** Made, complete and checked, or not at all. */
  cacheDirectory: string;
  onProgress: (line: string) => void;
}

/**
 * Calls `make` with a directory beside the cache that it is to put the programs into, checks what they say of
 * themselves, and moves the directory into place. One process of the machine at a time; the others wait and then find
 * it done. What a killed process left never counts, and is removed by the next one.
 */
export async function fillCache(
  { cacheDirectory, onProgress }: FillOptions,
  make: (directory: string) => Promise<void>,
): Promise<void> {
  const isDone = () => hasAllPrograms(cacheDirectory);
  const onWait = everyFewSeconds(() => onProgress('waiting for another process that fetches the control plane'));
  await withLock({ path: `${cacheDirectory}.lock`, isDone, onWait }, async () => {
    const prefix = `${basename(cacheDirectory)}.partial-`;
    await removeLeftovers(dirname(cacheDirectory), prefix);
    const workDirectory = await mkdtemp(join(dirname(cacheDirectory), prefix));
    try {
      await make(workDirectory);
      await verifyVersions(workDirectory);
      await rm(cacheDirectory, { recursive: true, force: true }); // incomplete, else isDone
      await rename(workDirectory, cacheDirectory);
    } finally {
      await rm(workDirectory, { recursive: true, force: true });
    }
  });
}

async function removeLeftovers(directory: string, prefix: string): Promise<void> {
  const names = (await readdir(directory)).filter((name) => name.startsWith(prefix));
  await Promise.all(names.map((name) => rm(join(directory, name), { recursive: true, force: true })));
}

async function verifyVersions(directory: string): Promise<void> {
  for (const name of COMPONENT_NAMES) {
    const { stdout } = await promisify(execFile)(join(directory, name), ['--version']);
    const wanted = name === 'etcd' ? ETCD_VERSION : KUBERNETES_VERSION;
    if (!stdout.includes(wanted)) throw new Error(`${name} calls itself "${stdout.trim()}", not ${wanted}`);
  }
}

function everyFewSeconds(act: () => void): () => void {
  let lastAt = Number.NEGATIVE_INFINITY;
  return () => {
    if (performance.now() - lastAt < REPORT_EVERY_MS) return;
    lastAt = performance.now();
    act();
  };
}
