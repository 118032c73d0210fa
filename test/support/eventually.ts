import { poll } from '../../samples/control-plane/poll.ts';
import { messageOf } from '../../src/errors.ts';

/** A list of a thousand Pods costs the API server and this process a tenth of a second of CPU time each. */
const REST_FACTOR = 4;

/**
 * The waiting loop of the tests: calls `check` until it no longer throws (a failed `expect` included) and
 * returns what it returned. After `timeoutMs` it fails with what was wrong last.
 * Only a time that a scenario itself names is given; two cores may be shared by several files.
 */
export async function eventually<T>(check: () => T | Promise<T>, timeoutMs = 60_000): Promise<T> {
  let last: unknown = new Error('never checked');
  try {
    const found = await poll(
      async () => {
        try {
          return { value: await check() };
        } catch (error) {
          last = error;
          return undefined;
        }
      },
      { what: 'a check', timeoutMs, intervalMs: 100, restFactor: REST_FACTOR },
    );
    return found.value;
  } catch {
    throw new Error(`not so after ${timeoutMs / 1000} s: ${messageOf(last)}`, { cause: last });
  }
}
