import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { basename, delimiter, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { cacheDirectoryOf, ensureBinaries, firstOf } from '../../../samples/control-plane/binaries.ts';
import { buildFlags, buildIntoCache, PROGRAM_PACKAGES } from '../../../samples/control-plane/build-source.ts';
import { COMPONENT_NAMES, ETCD_VERSION, KUBERNETES_VERSION } from '../../../samples/control-plane/versions.ts';
import { OLDEST_KUBERNETES } from '../../oldest/programs.ts';

const goMod = await readFile(new URL('../../../samples/control-plane/build/go.mod', import.meta.url), 'utf8');

/** Builds at once programs that only know their version; each build is a line in a file. */
const FAKE_GO = `#!/bin/sh
set -e
case "$1" in
  list) for package in a b c; do echo $package; done ;;
  build)
    echo build >> "$FAKE_GO_LOG"
    if [ -n "$FAKE_GO_FAILURE" ]; then echo "$FAKE_GO_FAILURE" >&2; exit 1; fi
    while [ "$1" != -o ]; do shift; done
    for name in server kube-apiserver kube-controller-manager kube-scheduler; do
      printf '#!/bin/sh\\necho %s\\n' "$FAKE_GO_VERSIONS" > "$2$name"
      chmod +x "$2$name"
    done ;;
esac
`;

let directory: string;
let cacheDirectory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'binaries-test-'));
  vi.stubEnv('XDG_CACHE_HOME', join(directory, 'cache'));
  cacheDirectory = cacheDirectoryOf(process.env);
  await mkdir(join(directory, 'bin'));
  await writeFile(join(directory, 'bin', 'go'), FAKE_GO);
  await chmod(join(directory, 'bin', 'go'), 0o755);
  vi.stubEnv('PATH', `${join(directory, 'bin')}${delimiter}${process.env.PATH}`);
  vi.stubEnv('CONTROL_PLANE_BIN_DIR', '');
  // Nobody listens there, as on a machine without a network.
  vi.stubEnv('CONTROL_PLANE_MIRROR', 'http://127.0.0.1:1');
  for (const name of ['HTTP_PROXY', 'http_proxy']) vi.stubEnv(name, '');
  vi.stubEnv('FAKE_GO_LOG', join(directory, 'go.log'));
  vi.stubEnv('FAKE_GO_VERSIONS', `${KUBERNETES_VERSION} ${ETCD_VERSION}`);
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true });
});

const buildCount = async () => (await readFile(join(directory, 'go.log'), 'utf8')).trim().split('\n').length;

describe('versions', () => {
  it('are those of go.mod', () => {
    const libraryVersion = KUBERNETES_VERSION.replace('v1.', 'v0.');
    expect(goMod).toContain(`k8s.io/kubernetes ${KUBERNETES_VERSION}`);
    expect(goMod).toContain(`${PROGRAM_PACKAGES.etcd} v${ETCD_VERSION}`);
    const replaced = [...goMod.matchAll(/=> (k8s\.io\/\S+) (\S+)/g)].map(([, , version]) => version);
    expect(new Set(replaced)).toEqual(new Set([libraryVersion]));
  });

  it('of the oldest Kubernetes are those of its go.mod, of the chart and of the README', async () => {
    const [oldest = '', chart = '', readme = ''] = await Promise.all(
      ['test/oldest/go.mod', 'deploy/helm/module-controller/Chart.yaml', 'README.md'].map((path) =>
        readFile(new URL(`../../../${path}`, import.meta.url), 'utf8'),
      ),
    );
    expect(oldest).toContain(`k8s.io/kubernetes ${OLDEST_KUBERNETES}`);
    const replaced = [...oldest.matchAll(/=> (k8s\.io\/\S+) (\S+)/g)].map(([, , version]) => version);
    expect(new Set(replaced)).toEqual(new Set([OLDEST_KUBERNETES.replace('v1.', 'v0.')]));
    expect(chart).toContain(`kubeVersion: ">=${OLDEST_KUBERNETES.replace(/^v(\d+\.\d+)\..*/, '$1')}.0-0"`);
    expect(readme).toContain(OLDEST_KUBERNETES);
  });

  it('are stamped into the programs', () => {
    const flags = buildFlags().join(' ');
    expect(flags).toContain(`-X k8s.io/component-base/version.gitVersion=${KUBERNETES_VERSION}`);
    expect(flags).toContain('version.gitMajor=1');
  });
});

describe('cacheDirectoryOf', () => {
  it('is below XDG_CACHE_HOME or ~/.cache, one a version and platform', () => {
    const name = `${KUBERNETES_VERSION}-etcd${ETCD_VERSION}-${process.platform}-${process.arch}`;
    expect(cacheDirectoryOf({ XDG_CACHE_HOME: '/c' })).toBe(`/c/module-controller/control-plane/${name}`);
    expect(cacheDirectoryOf({})).toBe(join(homedir(), '.cache/module-controller/control-plane', name));
  });
});

describe('firstOf', () => {
  const source = (name: string, directory?: string) => ({ name, tryGet: async () => directory });

  it('takes the first source that has the programs', async () => {
    expect(await firstOf([source('a'), source('b', '/b'), source('c', '/c')])).toBe('/b');
  });

  it('names them all when none has', async () => {
    await expect(firstOf([source('a'), source('b')])).rejects.toThrow('from any of: a, b');
  });

  const failing = (name: string, mayFail: boolean) => ({
    name,
    mayFail,
    tryGet: async () => {
      throw new Error(`${name} is broken`);
    },
  });

  it('goes on after a source that may fail, and tells of it', async () => {
    const lines: string[] = [];
    expect(await firstOf([failing('a', true), source('b', '/b')], (line) => lines.push(line))).toBe('/b');
    expect(lines).toEqual(['a failed: a is broken']);
  });

  it('ends with a source that may not fail', async () => {
    await expect(firstOf([failing('a', false), source('b', '/b')])).rejects.toThrow('a is broken');
  });

  it('says at the end what each one that failed has said', async () => {
    const none = firstOf([failing('a', true), failing('b', true)]);
    await expect(none).rejects.toThrow('from any of: a, b\na failed: a is broken\nb failed: b is broken');
  });
});

describe('ensureBinaries', () => {
  it('builds once when several ask at once, and never again', async () => {
    const directories = await Promise.all([ensureBinaries(), ensureBinaries(), ensureBinaries()]);
    expect(new Set([...directories, await ensureBinaries()])).toEqual(new Set([cacheDirectory]));
    expect(await buildCount()).toBe(1);
    expect((await readdir(cacheDirectory)).sort()).toEqual([...COMPONENT_NAMES]);
    expect(await readdir(dirname(cacheDirectory))).toEqual([basename(cacheDirectory)]);
  });

  it('takes the directory that the user names, and refuses one that is not complete', async () => {
    await ensureBinaries();
    vi.stubEnv('CONTROL_PLANE_BIN_DIR', cacheDirectory);
    expect(await ensureBinaries()).toBe(cacheDirectory);
    await rm(join(cacheDirectory, 'kube-scheduler'));
    await expect(ensureBinaries()).rejects.toThrow(
      `CONTROL_PLANE_BIN_DIR=${cacheDirectory} has no executable kube-scheduler`,
    );
  });

  it('goes to the build when there is nothing to download from, and says why', async () => {
    const lines: string[] = [];
    await ensureBinaries({ onProgress: (line) => lines.push(line) });
    expect(lines[0]).toMatch(/^downloading http:\/\/127\.0\.0\.1:1\/.*tar\.gz$/);
    expect(lines[1]).toMatch(/^download failed: http:.*ECONNREFUSED/);
    expect(lines[2]).toMatch(/^building /);
  });

  it('says what to do when Go is missing and the download failed', async () => {
    vi.stubEnv('PATH', join(directory, 'empty'));
    await expect(ensureBinaries()).rejects.toThrow(
      /download failed: .*ECONNREFUSED.*build failed: .*install Go .* or set CONTROL_PLANE_BIN_DIR/s,
    );
  });
});

describe('buildIntoCache', () => {
  const build = () => buildIntoCache({ cacheDirectory, onProgress: () => {} });

  it('shows what Go said and leaves nothing behind when the build fails', async () => {
    vi.stubEnv('FAKE_GO_FAILURE', 'no space left on device');
    await expect(build()).rejects.toThrow('no space left on device');
    expect(await readdir(dirname(cacheDirectory))).toEqual([]);
  });

  it('keeps no programs of another version', async () => {
    vi.stubEnv('FAKE_GO_VERSIONS', 'v0.0.0-master');
    await expect(build()).rejects.toThrow(`calls itself "v0.0.0-master"`);
    expect(await readdir(dirname(cacheDirectory))).toEqual([]);
  });

  it('replaces an incomplete cache and removes what killed processes left', async () => {
    await mkdir(cacheDirectory, { recursive: true });
    await writeFile(join(cacheDirectory, 'etcd'), 'half');
    await mkdir(`${cacheDirectory}.partial-abc`);
    await build();
    expect(await readdir(dirname(cacheDirectory))).toEqual([basename(cacheDirectory)]);
    expect((await readdir(cacheDirectory)).sort()).toEqual([...COMPONENT_NAMES]);
  });
});
