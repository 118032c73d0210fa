import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { MavenProgress, runMaven } from '../../../samples/jvm/maven.ts';

describe('what Maven prints', () => {
  it('tells which project it is at, and how many files it has downloaded', () => {
    const progress = new MavenProgress();
    expect(progress.describe()).toBe('starting Maven');
    progress.take('[INFO] Building koupleless-sample 1.0.0                                    [1/6]');
    expect(progress.describe()).toBe('at koupleless-sample');
    progress.take('[INFO] Downloading from central: https://repo.example.com/a.pom');
    progress.take('[INFO] Downloaded from central: https://repo.example.com/a.pom (4.5 kB at 12 kB/s)');
    progress.take('[INFO] Building jar: /tmp/base/target/base.jar');
    expect(progress.describe()).toBe('at koupleless-sample, 1 files downloaded');
  });
});

describe('Maven', () => {
  let directory: string;
  const run = (args: readonly string[]) => runMaven({ directory, args, what: 'a test', onProgress: () => {} });

  /** A program of that name, the only one on the PATH. */
  const withMaven = async (script: string): Promise<void> => {
    await writeFile(join(directory, 'mvn'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    vi.stubEnv('PATH', directory);
  };

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'maven-'));
    return async () => rm(directory, { recursive: true });
  });

  afterAll(() => {
    vi.unstubAllEnvs();
  });

  it('that is not installed is asked for', async () => {
    vi.stubEnv('PATH', directory);
    await expect(run(['package'])).rejects.toThrow('there is no "mvn" on the PATH: install a JDK 17');
  });

  it('that fails is quoted, without its downloads', async () => {
    await withMaven('echo "[INFO] Downloading from central: x"; echo "[ERROR] cannot find symbol"; exit 1');
    const failure = run(['package', '-Drevision=1.0.0']);
    await expect(failure).rejects.toThrow(
      /^mvn package -Drevision=1\.0\.0 failed with exit code 1:\n\[ERROR\] cannot find symbol$/,
    );
  });

  it('that succeeds is enough', async () => {
    await withMaven('exit 0');
    await expect(run(['package'])).resolves.toBeUndefined();
  });
});
