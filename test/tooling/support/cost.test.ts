import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { childPidsOf } from '../../support/cost.ts';

it('the children of a process are those that run now, not theirs', async () => {
  // The shell has a child of its own, and ends with its input.
  const shell = spawn('/bin/sh', ['-c', 'sleep 60 & echo $!; read -r _; kill $!'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const [line] = (await once(shell.stdout, 'data')) as [Buffer];
  const [own, grandchild] = [shell.pid ?? Number.NaN, Number(line.toString())];
  expect(childPidsOf(process.pid)).toContain(own);
  expect(childPidsOf(process.pid)).not.toContain(grandchild);
  expect(childPidsOf(own)).toEqual([grandchild]);
  shell.stdin.end();
  await once(shell, 'exit');
  expect(childPidsOf(process.pid)).not.toContain(own);
});
