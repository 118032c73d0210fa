import { constants, setPriority } from 'node:os';
import { afterAll, expect } from 'vitest';

/** Runs at the beginning of each test file. */

// Unit tests wait for nothing and promise no time, so they take only the CPU time that others leave: the files that
// measure costs and floods wait half of the time, and run beside them.
setPriority(constants.priority.PRIORITY_LOW);

const REPLACEABLE = ['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask', 'Date', 'performance'] as const;
const before = new Map(REPLACEABLE.map((name) => [name, globalThis[name]]));

// The next file runs in the same process.
afterAll(() => {
  const replaced = REPLACEABLE.filter((name) => globalThis[name] !== before.get(name));
  expect(replaced, 'globals that this file has not restored').toEqual([]);
});
