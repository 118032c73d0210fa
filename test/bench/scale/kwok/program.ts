import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cacheRootOf, fillDirectory } from '../../../../samples/cache/fill-directory.ts';
import { buildWithGo } from '../../../support/go-tools/build.ts';

/** `build/go.mod` and `build/go.sum` pin it, with all that it is built from; a unit test holds them together. */
export const KWOK_VERSION = 'v0.7.0';
export const KWOK_PACKAGE = 'sigs.k8s.io/kwok/cmd/kwok';

const MODULE_DIRECTORY = fileURLToPath(new URL('./build', import.meta.url));

/** Where the program is. */
export function kwokProgram(env: NodeJS.ProcessEnv = process.env): string {
  return join(directoryOf(env), 'kwok');
}

/** Builds it into the cache with Go, once for a machine. */
export async function ensureKwok(onProgress: (line: string) => void): Promise<void> {
  const directory = directoryOf(process.env);
  const isComplete = () => isProgram(kwokProgram());
  if (await isComplete()) return;
  await fillDirectory({ directory, isComplete, what: 'builds kwok', onProgress }, async (workDirectory) => {
    await buildWithGo({
      what: `kwok ${KWOK_VERSION}`,
      minutes: 3,
      directory: MODULE_DIRECTORY,
      flags: ['-ldflags=-s -w'],
      packages: [KWOK_PACKAGE],
      into: workDirectory,
      otherwise: 'leave kwok out: --subject controller --subject floor',
      onProgress,
    });
    const { stdout } = await promisify(execFile)(join(workDirectory, 'kwok'), ['--version']);
    if (!stdout.includes(KWOK_VERSION)) throw new Error(`kwok calls itself "${stdout.trim()}", not ${KWOK_VERSION}`);
  });
}

/** One directory a version, so that an update never meets the program of another one. */
function directoryOf(env: NodeJS.ProcessEnv): string {
  return join(cacheRootOf(env), 'kwok', `${KWOK_VERSION}-${process.platform}-${process.arch}`);
}

function isProgram(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
