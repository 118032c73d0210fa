import { execFile } from 'node:child_process';
import { access, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { exists, fillDirectory } from '../cache/fill-directory.ts';
import { JvmBase } from './jvm-base.ts';
import { jdkProgram } from './jvm-process.ts';

const run = promisify(execFile);

const MAIN_CLASS = 'com.example.base.BaseApplication';
const INDEX = 'classpath.idx';
const ARCHIVE = 'classes.jsa';

export interface BaseProgramOptions {
  /** Path of the base's jar. */
  readonly jar: string;
  /** Where what is made stays. */
  readonly directory: string;
  readonly onProgress: (line: string) => void;
}

/**
 * Returns the arguments of `java` that run a base in half the CPU time of `java -jar`: its jar is unpacked, as Spring Boot
 * advises, and the JVM loads an archive of classes that were read and checked before (class data sharing). Made once. A
 * JVM of another version ignores the archive. If the archive cannot be made, bases start without it.
 */
export async function ensureBaseProgram({
  jar,
  directory,
  onProgress,
}: BaseProgramOptions): Promise<readonly string[]> {
  const parts = join(directory, 'base');
  // Of these very files: it goes with them.
  const archive = join(parts, 'archive');
  await fillDirectory(
    {
      directory: parts,
      isComplete: () => exists(join(parts, INDEX)),
      what: 'takes the jar of the base apart',
      onProgress,
    },
    (workDirectory) => takeApart(jar, workDirectory),
  );
  const program = ['-cp', await classPathOf(parts), MAIN_CLASS];
  try {
    await fillDirectory(
      {
        directory: archive,
        isComplete: () => exists(join(archive, ARCHIVE)),
        what: 'archives the classes',
        onProgress,
      },
      (workDirectory) => {
        onProgress('archiving the classes of the base');
        return archiveClasses(program, workDirectory);
      },
    );
  } catch (error) {
    onProgress(`bases start more slowly: their classes could not be archived: ${error}`);
    return program;
  }
  return [`-XX:SharedArchiveFile=${join(archive, ARCHIVE)}`, ...program];
}

/** Only classes of plain jars go into an archive: neither those of jars in a jar nor those of a directory. */
async function takeApart(jar: string, directory: string): Promise<void> {
  const contents = join(directory, 'contents');
  await mkdir(contents);
  await run(jdkProgram('jar'), ['--extract', '--file', jar], { cwd: contents });
  const application = join(contents, 'BOOT-INF');
  await rename(join(application, 'lib'), join(directory, 'lib'));
  await rename(join(application, INDEX), join(directory, INDEX));
  const packing = ['--create', '--file', join(directory, 'application.jar'), '-C', join(application, 'classes'), '.'];
  await run(jdkProgram('jar'), packing);
  await rm(contents, { recursive: true });
}

/** In the order of the jar. The archive holds for this class path alone. */
async function classPathOf(directory: string): Promise<string> {
  const index = await readFile(join(directory, INDEX), 'utf8');
  const names = [...index.matchAll(/^- "BOOT-INF\/lib\/(.+)"$/gm)].map(([, name]) => name ?? '');
  return [join(directory, 'application.jar'), ...names.map((name) => join(directory, 'lib', name))].join(':');
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
