import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheRootOf, fillDirectory } from '../../samples/cache/fill-directory.ts';
import { ensureBinaries } from '../../samples/control-plane/binaries.ts';
import { linkFlags, PROGRAM_PACKAGES } from '../../samples/control-plane/build-source.ts';
import { hasAllPrograms } from '../../samples/control-plane/programs.ts';
import { buildWithGo } from '../support/go-tools/build.ts';

/** The oldest Kubernetes that all of `deploy/` works on; `go.mod` pins the same, and a unit test compares the two. */
export const OLDEST_KUBERNETES = 'v1.30.14';

/** A directory with its programs, and the etcd of the other tests; builds them with Go, once for a machine. */
export async function ensureOldest(onProgress: (line: string) => void): Promise<string> {
  const name = `${OLDEST_KUBERNETES}-${process.platform}-${process.arch}`;
  const directory = join(cacheRootOf(process.env), 'control-plane', name);
  const isComplete = (): Promise<boolean> => hasAllPrograms(directory);
  if (await isComplete()) return directory;
  const binaries = await ensureBinaries({ onProgress });
  await fillDirectory({ directory, isComplete, what: 'builds the oldest Kubernetes', onProgress }, async (work) => {
    const { etcd: _, ...programs } = PROGRAM_PACKAGES;
    await buildWithGo({
      what: `Kubernetes ${OLDEST_KUBERNETES}`,
      minutes: 4,
      directory: fileURLToPath(new URL('.', import.meta.url)),
      flags: linkFlags(OLDEST_KUBERNETES),
      packages: Object.values(programs),
      into: work,
      otherwise: 'nothing else has these programs',
      onProgress,
    });
    await copyFile(join(binaries, 'etcd'), join(work, 'etcd'));
  });
  return directory;
}
