const WITHIN_MS = 60_000;

/** Resolves when `ending` does. What does not end is named: a hook that runs out of time says nothing. */
export async function ended(what: string, ending: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: no end within ${WITHIN_MS / 1000} s`)), WITHIN_MS);
  });
  try {
    await Promise.race([ending, late]);
  } finally {
    clearTimeout(timer);
  }
}
