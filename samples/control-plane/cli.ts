/** `npm run control-plane`: one control plane until Ctrl-C. `--build-only` makes the binaries and ends. */
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { progressPrinter } from '../cache/progress.ts';
import { ensureBinaries } from './binaries.ts';
import { startControlPlane } from './control-plane.ts';

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { 'build-only': { type: 'boolean', default: false } } });
  const printer = progressPrinter(process.stderr);
  if (values['build-only']) {
    const directory = await ensureBinaries(printer);
    printer.done();
    console.log(directory);
    return;
  }
  await serve(printer);
}

async function serve({ onProgress, done }: ReturnType<typeof progressPrinter>): Promise<void> {
  const interrupted = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM'), once(process, 'SIGHUP')]);
  const starting = startControlPlane({ onProgress });
  const controlPlane = await Promise.race([starting, interrupted.then(() => undefined)]);
  // Leaving while it starts is enough: its supervisor cleans up after us.
  if (controlPlane === undefined) process.exit(130);
  const kubeconfig = await controlPlane.kubeconfig({ user: 'admin' });
  done();
  console.log(`export KUBECONFIG=${kubeconfig}`);
  console.error('Ctrl-C stops the control plane and removes everything that belongs to it.');
  await interrupted;
  await controlPlane.stop();
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
