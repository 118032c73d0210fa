/** `npm run control-plane`: see {@link HELP}. */
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { progressPrinter } from '../cache/progress.ts';
import { ensureBinaries } from './binaries.ts';
import { startControlPlane } from './control-plane.ts';

const HELP = `Runs a control plane (etcd, kube-apiserver, kube-controller-manager, kube-scheduler) on loopback until Ctrl-C.

Usage: npm run control-plane [-- flags]

It prints the path of a kubeconfig with all rights, as a line for your shell. Ctrl-C removes the control plane and all
that belongs to it. There is no kubelet: Pods that are not on a VNode stay Pending.

  --build-only   builds its programs, which takes minutes once on a machine, and ends
  --help         this text
`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { 'build-only': { type: 'boolean', default: false }, help: { type: 'boolean', default: false } },
  });
  if (values.help) {
    console.log(HELP);
    return;
  }
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
