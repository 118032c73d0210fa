import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const CLI = fileURLToPath(new URL('../../../samples/control-plane/cli.ts', import.meta.url));

it('--help names every flag, and starts nothing', async () => {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [CLI, '--help']);
  for (const words of ['Usage: npm run control-plane', '--build-only', '--help']) expect(stdout).toContain(words);
  expect(stderr).toBe('');
});
