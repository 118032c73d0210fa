import { spawnSync } from 'node:child_process';
import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isStale, type LockObservation, withLock } from '../../../samples/cache/lock.ts';

describe('isStale', () => {
  const holder = { token: 't', host: 'here', pid: 1 };
  const observation: LockObservation = { holder, ageMs: 1_000, thisHost: 'here', isAlive: () => true };

  it.each<[string, Partial<LockObservation>, boolean]>([
    ['a living holder', {}, false],
    ['a dead holder', { isAlive: () => false }, true],
    [
      'a holder that has not touched the file for long: its process id may be another program now',
      { ageMs: 90_000 },
      true,
    ],
    ['a holder on another machine, whose processes cannot be seen', { thisHost: 'there', isAlive: () => false }, false],
    ['a holder on another machine that is silent', { thisHost: 'there', ageMs: 90_000 }, true],
    ['a file that is being written', { holder: undefined }, false],
    ['a file that was never written to its end', { holder: undefined, ageMs: 90_000 }, true],
  ])('%s', (_case, change, expected) => {
    expect(isStale({ ...observation, ...change })).toBe(expected);
  });
});

describe('withLock', () => {
  let directory: string;
  let path: string;
  const base = { isDone: async () => false, onWait: () => {} };

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'lock-test-'));
    path = join(directory, 'lock');
  });

  afterEach(() => rm(directory, { recursive: true }));

  it('never lets two work at once, and leaves no file', async () => {
    let working = 0;
    let mostAtOnce = 0;
    const work = async () => {
      mostAtOnce = Math.max(mostAtOnce, ++working);
      await new Promise(setImmediate);
      working--;
    };
    await Promise.all([withLock({ path, ...base }, work), withLock({ path, ...base }, work)]);
    expect(mostAtOnce).toBe(1);
    expect(await readdir(directory)).toEqual([]);
  });

  it('gives up waiting when what it wanted is there', async () => {
    let isBuilt = false;
    const holding = Promise.withResolvers<void>();
    const waiting = Promise.withResolvers<void>();
    const first = withLock({ path, ...base }, async () => {
      holding.resolve();
      await waiting.promise;
      isBuilt = true;
      return 'first';
    });
    await holding.promise;
    const second = withLock(
      { path, isDone: async () => isBuilt, onWait: () => waiting.resolve() },
      async () => 'second',
    );
    expect(await Promise.all([first, second])).toEqual(['first', undefined]);
  });

  it('takes over from a holder that has died', async () => {
    const { pid } = spawnSync(process.execPath, ['-e', '']);
    await writeFile(path, JSON.stringify({ token: 'old', host: hostname(), pid }));
    expect(await withLock({ path, ...base }, async () => 'done')).toBe('done');
    expect(await readdir(directory)).toEqual([]);
  });

  it('takes over a file that nobody has touched for long', async () => {
    await writeFile(path, '');
    await utimes(path, new Date(0), new Date(0));
    expect(await withLock({ path, ...base }, async () => 'done')).toBe('done');
  });

  it('frees the lock when the work fails', async () => {
    const failing = withLock({ path, ...base }, async () => {
      throw new Error('no space left');
    });
    await expect(failing).rejects.toThrow('no space left');
    expect(await readdir(directory)).toEqual([]);
  });
});
