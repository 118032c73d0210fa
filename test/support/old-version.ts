import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** All that a controller reads at its start, except its dependencies. */
const PROGRAM = ['src', 'tunnels', 'package.json'];

/**
 * The commit that added the file, and first did so if it was deleted since. `directory`: of a git repository, and what
 * `path` is relative to. Rejects when no commit has the file yet, and when the history is not complete: the oldest commit
 * of a shallow clone looks as if it had added every file.
 */
export async function commitThatAdded(path: string, directory: string): Promise<string> {
  const git = async (...args: string[]): Promise<string> => (await run('git', args, { cwd: directory })).stdout.trim();
  if ((await git('rev-parse', '--is-shallow-repository')) !== 'false') {
    throw new Error(`the commit that added ${path} needs the history of this clone: git fetch --unshallow`);
  }
  const added = await git('log', '--diff-filter=A', '--format=%H', '--', path);
  const commit = added.split('\n').at(-1);
  if (!commit) throw new Error(`no commit has added ${path} yet: commit it first`);
  return commit;
}

/** The program of a former commit, in a temporary directory. */
export interface OldVersion {
  readonly commit: string;
  /** For `Replica.start`. */
  readonly root: URL;
  remove(): Promise<void>;
}

/** The program as it was in the commit that added `path`. It runs with the dependencies that are installed now. */
export async function extractVersionThatAdded(path: string): Promise<OldVersion> {
  const present = fileURLToPath(new URL('../../', import.meta.url));
  const commit = await commitThatAdded(path, present);
  const directory = await mkdtemp(join(tmpdir(), 'old-version-'));
  const remove = (): Promise<void> => rm(directory, { recursive: true, force: true });
  try {
    const archive = join(directory, 'tree.tar');
    await run('git', ['archive', '--format=tar', `--output=${archive}`, commit, ...PROGRAM], { cwd: present });
    await run('tar', ['-xf', archive, '-C', directory]);
    await symlink(join(present, 'node_modules'), join(directory, 'node_modules'));
  } catch (error) {
    await remove();
    throw error;
  }
  return { commit, root: pathToFileURL(`${directory}/`), remove };
}
