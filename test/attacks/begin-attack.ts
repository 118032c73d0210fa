import { onTestFinished } from 'vitest';

/**
 * Begins `attack`, which goes on until its signal is aborted. Returns what ends it and resolves with its result; the
 * end of the test does so too, so that the next one begins without it.
 */
export function beginAttack<Result>(attack: (signal: AbortSignal) => Promise<Result>): () => Promise<Result> {
  const isOver = new AbortController();
  const attacking = attack(isOver.signal);
  const end = (): Promise<Result> => {
    isOver.abort();
    return attacking;
  };
  onTestFinished(async () => {
    await end();
  });
  return end;
}
