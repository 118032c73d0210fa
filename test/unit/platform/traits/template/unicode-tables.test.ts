import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { BUILD_TIMEOUT_MS } from '../../../../support/go-tools/programs.ts';
import { ensureTemplateJudge } from '../../../../support/go-tools/template-judge.ts';

const TABLES = new URL('../../../../../src/platform/traits/template/unicode-tables.ts', import.meta.url);

it('are those of Go (the program prints them: see the head of the file)', { timeout: BUILD_TIMEOUT_MS }, async () => {
  const { stdout } = await promisify(execFile)(await ensureTemplateJudge(), ['unicode-tables']);
  expect(readFileSync(TABLES, 'utf8')).toBe(stdout);
});
