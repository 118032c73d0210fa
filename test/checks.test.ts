import { execFile } from 'node:child_process';
import { constants, setPriority } from 'node:os';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const run = promisify(execFile);

// Like unit tests: the files beside them measure, or promise a time.
setPriority(constants.priority.PRIORITY_LOW);

it.each(['typecheck', 'lint'])('`npm run %s` finds nothing', async (script) => {
  const findings = await run('npm', ['run', '--silent', script], { timeout: 170_000 }).then(
    () => '',
    ({ stdout, stderr }: { stdout: string; stderr: string }) => stdout + stderr || 'it cannot be run',
  );
  expect(findings).toBe('');
});
