import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fillDirectory } from '../cache/fill-directory.ts';
import { hasAllPrograms } from './programs.ts';
import { COMPONENT_NAMES, ETCD_VERSION, KUBERNETES_VERSION } from './versions.ts';

export interface FillOptions {
  /** Made, complete and checked, or not at all. */
  cacheDirectory: string;
  onProgress: (line: string) => void;
}

/** Calls `make` with a directory that it is to put the programs into, and checks what they say of themselves. */
export async function fillCache(
  { cacheDirectory, onProgress }: FillOptions,
  make: (directory: string) => Promise<void>,
): Promise<void> {
  const isComplete = () => hasAllPrograms(cacheDirectory);
  const what = 'fetches the control plane';
  await fillDirectory({ directory: cacheDirectory, isComplete, what, onProgress }, async (directory) => {
    await make(directory);
    await verifyVersions(directory);
  });
}

async function verifyVersions(directory: string): Promise<void> {
  for (const name of COMPONENT_NAMES) {
    const { stdout } = await promisify(execFile)(join(directory, name), ['--version']);
    const wanted = name === 'etcd' ? ETCD_VERSION : KUBERNETES_VERSION;
    if (!stdout.includes(wanted)) throw new Error(`${name} calls itself "${stdout.trim()}", not ${wanted}`);
  }
}
