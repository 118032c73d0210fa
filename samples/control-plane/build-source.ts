import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { withLock } from './build-lock.ts';
import { BuildProgress, formatElapsed } from './build-progress.ts';
import { hasAllPrograms } from './programs.ts';
import { type ComponentName, ETCD_VERSION, KUBERNETES_VERSION } from './versions.ts';

const MODULE_DIRECTORY = fileURLToPath(new URL('./build', import.meta.url));
const REPORT_EVERY_MS = 5_000;

/** The packages of the programs; the go command names a program after the last part of its path. */
export const PROGRAM_PACKAGES: Record<ComponentName, string> = {
  etcd: 'go.etcd.io/etcd/server/v3',
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
  'kube-scheduler': 'k8s.io/kubernetes/cmd/kube-scheduler',
};
const ETCD_BUILT_AS = 'server';
const PROGRAMS = Object.values(PROGRAM_PACKAGES);

export interface BuildOptions {
  /** Made, complete and checked, or not at all. */
  cacheDirectory: string;
  onProgress: (line: string) => void;
}

/** Builds into the cache, or waits for another process that is at it. */
export async function buildIntoCache({ cacheDirectory, onProgress }: BuildOptions): Promise<void> {
  const isDone = () => hasAllPrograms(cacheDirectory);
  const onWait = everyFewSeconds(() => onProgress('waiting for another process that builds the control plane'));
  await withLock({ path: `${cacheDirectory}.lock`, isDone, onWait }, async () => {
    const prefix = `${basename(cacheDirectory)}.building-`;
    await removeLeftovers(dirname(cacheDirectory), prefix);
    const workDirectory = await mkdtemp(join(dirname(cacheDirectory), prefix));
    try {
      await build(workDirectory, onProgress);
      await rm(cacheDirectory, { recursive: true, force: true }); // incomplete, else isDone
      await rename(workDirectory, cacheDirectory);
    } finally {
      await rm(workDirectory, { recursive: true, force: true });
    }
  });
}

/** Of builders that were killed. */
async function removeLeftovers(directory: string, prefix: string): Promise<void> {
  const names = (await readdir(directory)).filter((name) => name.startsWith(prefix));
  await Promise.all(names.map((name) => rm(join(directory, name), { recursive: true, force: true })));
}

async function build(directory: string, onProgress: (line: string) => void): Promise<void> {
  const startedAt = performance.now();
  const elapsedMs = () => performance.now() - startedAt;
  const what = `Kubernetes ${KUBERNETES_VERSION} and etcd ${ETCD_VERSION}`;
  onProgress(`building ${what} with Go, once for this machine: about 5 minutes on 2 cores`);

  let describe = () => `downloading Go modules, ${formatElapsed(elapsedMs())}`;
  const reporter = setInterval(() => onProgress(`building ${what}: ${describe()}`), REPORT_EVERY_MS);
  try {
    const packages = await runGo(['list', '-deps', ...PROGRAMS]);
    const progress = new BuildProgress({ packageCount: packages.length, programs: PROGRAMS });
    describe = () => progress.describe(elapsedMs());
    await runGo(['build', ...buildFlags(), '-o', `${directory}/`, ...PROGRAMS], (line) => progress.take(line));
  } finally {
    clearInterval(reporter);
  }
  await rename(join(directory, ETCD_BUILT_AS), join(directory, 'etcd'));
  await verifyVersions(directory);
  onProgress(`built ${what} in ${formatElapsed(elapsedMs())}`);
}

/** The version stamps are those of the Kubernetes release build; without them the API server says v0.0.0-master. */
export function buildFlags(): string[] {
  const [major, minor] = KUBERNETES_VERSION.slice(1).split('.');
  const stamps = { gitVersion: KUBERNETES_VERSION, gitMajor: major, gitMinor: minor, gitTreeState: 'clean' };
  const defines = Object.entries(stamps).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`);
  return ['-v', '-trimpath', '-buildvcs=false', '-ldflags', ['-s', '-w', ...defines].join(' ')];
}

/** Resolves with the lines of standard output. */
async function runGo(args: string[], onErrorLine: (line: string) => void = () => {}): Promise<string[]> {
  // The user's settings for proxies and caches count; those that would build something else do not.
  const env = { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=readonly', GOWORK: 'off', GOOS: '', GOARCH: '' };
  const child = spawn('go', args, { cwd: MODULE_DIRECTORY, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const output: string[] = [];
  const errors: string[] = [];
  createInterface(child.stdout).on('line', (line) => output.push(line));
  createInterface(child.stderr).on('line', (line) => {
    onErrorLine(line);
    errors.push(line);
  });
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve)).catch(
    explainMissingGo,
  );
  if (code !== 0) throw new Error(`go ${args[0]} failed with exit code ${code}:\n${errors.slice(-25).join('\n')}`);
  return output;
}

function explainMissingGo(error: unknown): never {
  throw new Error(
    'the control plane is built with Go, and there is no "go" on the PATH: install Go 1.25 or newer ' +
      '(https://go.dev/doc/install), or set CONTROL_PLANE_BIN_DIR to a directory that holds ' +
      `etcd, kube-apiserver, kube-controller-manager and kube-scheduler (${KUBERNETES_VERSION})`,
    { cause: error },
  );
}

async function verifyVersions(directory: string): Promise<void> {
  for (const name of Object.keys(PROGRAM_PACKAGES) as ComponentName[]) {
    const { stdout } = await promisify(execFile)(join(directory, name), ['--version']);
    const wanted = name === 'etcd' ? ETCD_VERSION : KUBERNETES_VERSION;
    if (!stdout.includes(wanted)) throw new Error(`${name} was built as "${stdout.trim()}", not as ${wanted}`);
  }
}

function everyFewSeconds(act: () => void): () => void {
  let lastAt = Number.NEGATIVE_INFINITY;
  return () => {
    if (performance.now() - lastAt < REPORT_EVERY_MS) return;
    lastAt = performance.now();
    act();
  };
}
