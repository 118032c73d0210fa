import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheRootOf, fillDirectory } from '../../samples/cache/fill-directory.ts';
import { everyFewSeconds } from '../../samples/cache/progress.ts';
import { ensureBinaries } from '../../samples/control-plane/binaries.ts';
import { buildFlags, PROGRAM_PACKAGES } from '../../samples/control-plane/build-source.ts';
import { runGo } from '../../samples/control-plane/go.ts';
import { hasAllPrograms } from '../../samples/control-plane/programs.ts';

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
    onProgress(`building Kubernetes ${OLDEST_KUBERNETES} with Go, once for this machine: about 4 minutes on 2 cores`);
    let packages = 0;
    const report = everyFewSeconds(() => onProgress(`building the oldest Kubernetes: ${packages} packages compiled`));
    const { etcd: _, ...programs } = PROGRAM_PACKAGES;
    await runGo(['build', ...buildFlags(OLDEST_KUBERNETES), '-o', `${work}/`, ...Object.values(programs)], {
      directory: fileURLToPath(new URL('.', import.meta.url)),
      otherwise: 'nothing else has these programs',
      onErrorLine: () => {
        packages += 1;
        report();
      },
    });
    await copyFile(join(binaries, 'etcd'), join(work, 'etcd'));
  });
  return directory;
}
