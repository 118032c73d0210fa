import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { ensureOldest } from './programs.ts';

/** `npm run test:oldest`: what depends on the API server most, on the oldest Kubernetes. */
const FILES = [
  'admission',
  'base-life',
  'chart',
  'confinement',
  'controller-restart',
  'export',
  'module-life',
  'peer',
  'rollout',
  'versions',
  'workloads',
];
/** Over HTTP those that every tunnel must pass: which one it is makes no difference to an API server. */
const PROJECTS = ['integration', 'integration-http'];

const directory = await ensureOldest((line) => console.error(line));
const projects = PROJECTS.flatMap((project) => ['--project', project]);
const files = FILES.map((name) => `test/integration/${name}.test.ts`);
const { status } = spawnSync('npx', ['vitest', 'run', ...projects, ...files, ...process.argv.slice(2)], {
  cwd: fileURLToPath(new URL('../..', import.meta.url)),
  env: { ...process.env, CONTROL_PLANE_BIN_DIR: directory },
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
