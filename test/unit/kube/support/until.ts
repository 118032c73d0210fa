import { settle } from '../../../support/fake-clock.ts';

const LIMIT_MS = 4000;

/** Waits for real I/O: looks again after each turn of the event loop, and fails when nothing comes of it. */
export async function until<T>(look: () => T | undefined | false, what: string): Promise<T> {
  const deadline = performance.now() + LIMIT_MS;
  for (;;) {
    const found = look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > deadline) throw new Error(`never came: ${what}`);
    await settle();
  }
}
