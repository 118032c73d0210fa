import type { Call, PollingClient } from '../jvm/polling-client.ts';

type Calls = Pick<PollingClient, 'count' | 'failures'>;

/** The figures of a client that has stopped, and each call that failed. */
export function printCalls({ count, failures }: Calls, print: (line: string) => void): void {
  print(`  client: ${count} calls, ${failures.length} failed`);
  for (const failure of failures) print(`  client: failed: ${textOf(failure)}`);
}

export function throwIfFailed({ failures }: Calls): void {
  if (failures.length > 0) throw new Error(`${failures.length} calls of the client failed`);
}

function textOf({ base, atMs, status, text }: Call): string {
  return `${base} after ${(atMs / 1000).toFixed(2)} s: ${status} ${text}`;
}
