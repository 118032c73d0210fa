import { expect, it } from 'vitest';
import { printCalls, throwIfFailed } from '../../../samples/demo/java-calls.ts';

const failure = { base: 'java-1', atMs: 1234, status: 503, text: 'no module' };

it('one failed call of many fails the demo, and is printed', () => {
  const calls = { count: 204, failures: [failure] };
  const lines: string[] = [];
  printCalls(calls, (line) => lines.push(line));
  expect(lines).toEqual(['  client: 204 calls, 1 failed', '  client: failed: java-1 after 1.23 s: 503 no module']);
  expect(() => throwIfFailed(calls)).toThrow('1 calls of the client failed');
});

it('calls that were all answered do not', () => {
  expect(() => throwIfFailed({ count: 204, failures: [] })).not.toThrow();
});
