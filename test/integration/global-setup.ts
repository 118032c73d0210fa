import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { progressPrinter } from '../../samples/cache/progress.ts';
import { ensureBinaries } from '../../samples/control-plane/binaries.ts';
import { LoanDesk } from '../support/control-planes/loans.ts';
import { ControlPlanePool } from '../support/control-planes/pool.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The socket where test files borrow control planes. */
    controlPlanes: string;
  }
}

/** Each project loads this file by itself, and all of them share one pool. */
const shared = globalThis as { controlPlanePool?: { desk: Promise<LoanDesk>; users: number } };

/** A quarter less CPU time of all control planes, for 80 MB of memory each. */
const FEWER_COLLECTIONS = '400';

/** The first run on a machine builds the control plane; no test's time limit has to hold that. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Test files inherit it.
  process.env.GOGC ??= FEWER_COLLECTIONS;
  process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), 'module-controller-compile-cache');
  const progress = progressPrinter(process.stderr);
  await ensureBinaries(progress);
  progress.done();

  shared.controlPlanePool ??= { desk: LoanDesk.open(new ControlPlanePool((text) => console.error(text))), users: 0 };
  const pool = shared.controlPlanePool;
  pool.users++;
  const desk = await pool.desk;
  project.provide('controlPlanes', desk.path);
  return async () => {
    if (--pool.users === 0) await desk.close();
  };
}
