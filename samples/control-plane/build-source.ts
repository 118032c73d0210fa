import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { formatElapsed, REPORT_EVERY_MS } from '../cache/progress.ts';
import { BuildProgress } from './build-progress.ts';
import { type FillOptions, fillCache } from './fill-cache.ts';
import { type GoOptions, runGo } from './go.ts';
import { type ComponentName, ETCD_VERSION, KUBERNETES_VERSION } from './versions.ts';

const MODULE_DIRECTORY = fileURLToPath(new URL('./build', import.meta.url));
const GO: GoOptions = {
  directory: MODULE_DIRECTORY,
  otherwise:
    'let the download work (CONTROL_PLANE_MIRROR, HTTPS_PROXY), or set CONTROL_PLANE_BIN_DIR to a directory that holds ' +
    `etcd, kube-apiserver, kube-controller-manager and kube-scheduler (${KUBERNETES_VERSION})`,
};

/** The packages of the programs; the go command names a program after the last part of its path. */
export const PROGRAM_PACKAGES: Record<ComponentName, string> = {
  etcd: 'go.etcd.io/etcd/server/v3',
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
  'kube-scheduler': 'k8s.io/kubernetes/cmd/kube-scheduler',
};
const ETCD_BUILT_AS = 'server';
const PROGRAMS = Object.values(PROGRAM_PACKAGES);

/** Builds into the cache, or waits for another process that is at it. */
export async function buildIntoCache(options: FillOptions): Promise<void> {
  await fillCache(options, (directory) => build(directory, options.onProgress));
}

async function build(directory: string, onProgress: (line: string) => void): Promise<void> {
  const startedAt = performance.now();
  const elapsedMs = () => performance.now() - startedAt;
  const what = `Kubernetes ${KUBERNETES_VERSION} and etcd ${ETCD_VERSION}`;
  onProgress(`building ${what} with Go, once for this machine: about 5 minutes on 2 cores`);

  let describe = () => `downloading Go modules, ${formatElapsed(elapsedMs())}`;
  const reporter = setInterval(() => onProgress(`building ${what}: ${describe()}`), REPORT_EVERY_MS);
  try {
    const packages = await runGo(['list', '-deps', ...PROGRAMS], GO);
    const progress = new BuildProgress({ packageCount: packages.length, programs: PROGRAMS });
    describe = () => progress.describe(elapsedMs());
    const onErrorLine = (line: string): void => progress.take(line);
    await runGo(['build', ...buildFlags(), '-o', `${directory}/`, ...PROGRAMS], { ...GO, onErrorLine });
  } finally {
    clearInterval(reporter);
  }
  await rename(join(directory, ETCD_BUILT_AS), join(directory, 'etcd'));
  onProgress(`built ${what} in ${formatElapsed(elapsedMs())}`);
}

export function buildFlags(): string[] {
  return ['-v', '-trimpath', '-buildvcs=false', ...linkFlags(KUBERNETES_VERSION)];
}

/** The version stamps are those of the Kubernetes release build; without them the API server says v0.0.0-master. */
export function linkFlags(version: string): string[] {
  const [major, minor] = version.slice(1).split('.');
  const stamps = { gitVersion: version, gitMajor: major, gitMinor: minor, gitTreeState: 'clean' };
  const defines = Object.entries(stamps).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`);
  return ['-ldflags', ['-s', '-w', ...defines].join(' ')];
}
