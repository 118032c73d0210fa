import { progressPrinter } from '../../samples/cache/progress.ts';
import { ensureJars } from '../../samples/jvm/jars.ts';

/** The first run on a machine builds the Java samples; no test's time limit has to hold that. */
export async function setup(): Promise<void> {
  const progress = progressPrinter(process.stderr);
  await ensureJars(progress.onProgress);
  progress.done();
}
