import { progressPrinter } from '../../samples/cache/progress.ts';
import { ensureBinaries } from '../../samples/control-plane/binaries.ts';

/** The first run on a machine builds the control plane; no test's time limit has to hold that. */
export async function setup(): Promise<void> {
  const progress = progressPrinter(process.stderr);
  await ensureBinaries(progress);
  progress.done();
}
