import { afterAll, inject, vi } from 'vitest';

/** Runs in the worker before each test file: takes the time limit of its tests, and notes which probes run. */

declare module 'vitest' {
  interface ProvidedContext {
    testTimeoutMs: number;
  }
  interface TaskMeta {
    probes?: number[];
  }
}

const probes = new Set<number>();
Object.assign(globalThis, { mutantProbe: (index: number) => probes.add(index) });
vi.setConfig({ testTimeout: inject('testTimeoutMs'), hookTimeout: inject('testTimeoutMs') });

// biome-ignore lint/correctness/noEmptyPattern: Vitest takes no other first parameter
afterAll(({}, file) => {
  file.meta.probes = [...probes];
});
