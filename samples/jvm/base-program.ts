import { execFile } from 'node:child_process';
import { access, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fillDirectory } from '../cache/fill-directory.ts';
import { JvmBase } from './jvm-base.ts';

const run = promisify(execFile);

const MAIN_CLASS = 'com.example.base.BaseApplication';
const ARCHIVE = 'classes.jsa';

export interface BaseProgramOptions {
  /** Path of the base's jar. */
  readonly jar: string;
  /** Where what is made stays. */
  readonly directory: string;
  readonly onProgress: (line: string) => void;
}

/**
 * What `java` is told to run a base that starts in half the CPU time of `java -jar`: the jar taken apart, as Spring Boot
 * advises, and an archive of the classes that the JVM has read and checked before (class data sharing). Made once. A JVM
 * of another version ignores the archive.
 */
export async function ensureBaseProgram({
  jar,
  directory,
  onProgress,
}: BaseProgramOptions): Promise<readonly string[]> {
  const parts = join(directory, 'base');
  const archive = join(directory, 'base-archive');
  await fillDirectory(
    { directory: parts, isComplete: () => exists(parts), what: 'takes the jar of the base apart', onProgress },
    (workDirectory) => takeApart(jar, workDirectory),
  );
  const program = ['-cp', await classPathOf(parts), MAIN_CLASS];
  await fillDirectory(
    { directory: archive, isComplete: () => exists(join(archive, ARCHIVE)), what: 'archives the classes', onProgress },
    (workDirectory) => {
      onProgress('archiving the classes of the base');
      return archiveClasses(program, workDirectory);
    },
  );
  return [`-XX:SharedArchiveFile=${join(archive, ARCHIVE)}`, ...program];
}

/** Only classes of plain jars go into an archive: neither those of jars in a jar nor those of a directory. */
async function takeApart(jar: string, directory: string): Promise<void> {
  const contents = join(directory, 'contents');
  await mkdir(contents);
  await run('jar', ['--extract', '--file', jar], { cwd: contents });
  await rename(join(contents, 'BOOT-INF', 'lib'), join(directory, 'lib'));
  const classes = join(contents, 'BOOT-INF', 'classes');
  await run('jar', ['--create', '--file', join(directory, 'application.jar'), '-C', classes, '.']);
  await rm(contents, { recursive: true });
}

/** The archive holds for this class path alone, in this order. */
async function classPathOf(directory: string): Promise<string> {
  const lib = join(directory, 'lib');
  const libraries = (await readdir(lib)).sort().map((name) => join(lib, name));
  return [join(directory, 'application.jar'), ...libraries].join(':');
}

/** A base that nobody hears starts and ends: the classes that it has used by then are archived. */
async function archiveClasses(program: readonly string[], directory: string): Promise<void> {
  const jvmFlags = [`-XX:ArchiveClassesAtExit=${join(directory, ARCHIVE)}`];
  const base = await JvmBase.prepare({ program, identity: 'archive', directory, jvmFlags });
  try {
    await base.run();
    await base.stop();
  } finally {
    await base.close();
  }
  await access(join(directory, ARCHIVE));
  await rm(join(directory, 'archive'), { recursive: true });
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
