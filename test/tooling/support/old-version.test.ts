import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { commitThatAdded } from '../../support/old-version.ts';

const run = promisify(execFile);
const AUTHOR = ['-c', 'user.name=A', '-c', 'user.email=a@example.com', '-c', 'commit.gpgsign=false'];

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'old-version-test-'));
  await git('init', '--quiet');
  await commit('other.txt');
});

afterEach(() => rm(directory, { recursive: true, force: true }));

async function git(...args: string[]): Promise<string> {
  return (await run('git', [...AUTHOR, ...args], { cwd: directory })).stdout.trim();
}

async function commit(file: string, text = file): Promise<string> {
  await writeFile(join(directory, file), text);
  await git('add', file);
  await git('commit', '--quiet', '-m', `a version of ${file}`);
  return git('rev-parse', 'HEAD');
}

describe('the commit that added a file', () => {
  it('is found behind later changes of the file', async () => {
    const first = await commit('a.txt', '1');
    await commit('a.txt', '2');
    await commit('b.txt');
    expect(await commitThatAdded('a.txt', directory)).toBe(first);
  });

  it('is the first one that did, when the file was deleted and added again', async () => {
    const first = await commit('a.txt', '1');
    await git('rm', '--quiet', 'a.txt');
    await git('commit', '--quiet', '-m', 'without it');
    await commit('a.txt', '2');
    expect(await commitThatAdded('a.txt', directory)).toBe(first);
  });

  it('is missing, with a clear message, while the file is not committed', async () => {
    await writeFile(join(directory, 'a.txt'), '1');
    await expect(commitThatAdded('a.txt', directory)).rejects.toThrow('no commit has added a.txt yet: commit it first');
  });

  it('is not guessed in a shallow clone, whose oldest commit seems to add everything', async () => {
    await commit('a.txt', '1');
    await commit('b.txt');
    const clone = join(directory, 'clone');
    await git('clone', '--quiet', '--depth=1', pathToFileURL(directory).href, clone);
    await expect(commitThatAdded('a.txt', clone)).rejects.toThrow('git fetch --unshallow');
  });
});
