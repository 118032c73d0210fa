/** How often a person is told how far something is. */
export const REPORT_EVERY_MS = 5_000;

export function formatElapsed(elapsedMs: number): string {
  const seconds = Math.floor(elapsedMs / 1000);
  const minutes = Math.floor(seconds / 60);
  return minutes === 0 ? `${seconds} s` : `${minutes} min ${String(seconds % 60).padStart(2, '0')} s`;
}

/** A progress listener for a person: one line that changes on a terminal, a line each elsewhere (a CI log). */
export function progressPrinter(stream: NodeJS.WriteStream): { onProgress: (line: string) => void; done: () => void } {
  let isLineOpen = false;
  return {
    onProgress: (line) => {
      if (!stream.isTTY) {
        stream.write(`${line}\n`);
        return;
      }
      stream.write(`\r\x1b[K${line.slice(0, stream.columns - 1)}`);
      isLineOpen = true;
    },
    done: () => {
      if (isLineOpen) stream.write('\n');
      isLineOpen = false;
    },
  };
}

/** Calls `act` at the first call, and then at most once in `REPORT_EVERY_MS`. */
export function everyFewSeconds(act: () => void): () => void {
  let lastAt = Number.NEGATIVE_INFINITY;
  return () => {
    if (performance.now() - lastAt < REPORT_EVERY_MS) return;
    lastAt = performance.now();
    act();
  };
}
