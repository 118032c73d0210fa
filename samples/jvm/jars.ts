import { readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { cacheRootOf, exists, fillDirectory } from '../cache/fill-directory.ts';
import { formatElapsed } from '../cache/progress.ts';
import { ensureBaseProgram } from './base-program.ts';
import { runMaven } from './maven.ts';
import { copySources, fingerprintOf, JAVA_DIRECTORY } from './sources.ts';

/** Both are made of the same sources: only the number differs. */
export const VERSIONS = ['1.0.0', '2.0.0'] as const;
export type Version = (typeof VERSIONS)[number];
/** The sample modules; each is a folder of samples/java. */
export const MODULES = ['shop', 'quote', 'price', 'faulty'] as const;
export type ModuleName = (typeof MODULES)[number];

/** Of the directories of other sources. */
const KEPT = 3;

/** The jars of the sample base and the sample modules, in one directory. */
export interface Jars {
  readonly directory: string;
  /** Path of the base's jar. */
  readonly base: string;
  /** The arguments of `java` that run the same base and start it in half the time. */
  readonly baseProgram: readonly string[];
}

export function moduleJarOf(name: ModuleName, version: Version): string {
  return `${name}-${version}-ark-biz.jar`;
}

/** Builds the jars with Maven if there are none of these sources yet; about a minute the first time on a machine. */
export async function ensureJars(onProgress: (line: string) => void = () => {}): Promise<Jars> {
  const directory = join(cacheRootOf(process.env), 'java', await fingerprintOf(JAVA_DIRECTORY));
  const isComplete = () => exists(directory);
  const what = 'builds the Java samples';
  await fillDirectory({ directory, isComplete, what, onProgress }, async (workDirectory) => {
    await removeOldest(dirname(directory));
    await build(workDirectory, onProgress);
  });
  const base = join(directory, 'base.jar');
  return { directory, base, baseProgram: await ensureBaseProgram({ jar: base, directory, onProgress }) };
}

/** Each change of the sources makes a directory; a few of them may still be in use by other checkouts. */
async function removeOldest(root: string): Promise<void> {
  const names = (await readdir(root)).filter((name) => /^[0-9a-f]+$/.test(name));
  const ages = await Promise.all(names.map(async (name) => ({ name, madeAt: (await stat(join(root, name))).mtimeMs })));
  const old = ages.sort((a, b) => b.madeAt - a.madeAt).slice(KEPT);
  await Promise.all(old.map(({ name }) => rm(join(root, name), { recursive: true, force: true })));
}

async function build(directory: string, onProgress: (line: string) => void): Promise<void> {
  const startedAt = performance.now();
  onProgress('building the Java samples with Maven, once for these sources');
  const sources = join(directory, 'sources');
  await copySources(JAVA_DIRECTORY, sources);
  for (const version of VERSIONS) {
    const what = `version ${version} of the Java samples`;
    await runMaven({ directory: sources, args: ['clean', 'package', `-Drevision=${version}`], what, onProgress });
    for (const name of MODULES) {
      const jar = moduleJarOf(name, version);
      await rename(join(sources, name, 'target', jar), join(directory, jar));
    }
    if (version === VERSIONS[0]) {
      await rename(join(sources, 'base', 'target', `base-${version}.jar`), join(directory, 'base.jar'));
    }
  }
  await rm(sources, { recursive: true });
  onProgress(`built the Java samples in ${formatElapsed(performance.now() - startedAt)}`);
}
