import { expect, it } from 'vitest';
import { type Check, sideBySide, summaryOf } from '../../check/side-by-side.ts';

function check(name: string, program: string): Check {
  return { name, command: process.execPath, args: ['--eval', program] };
}

it('checks run at the same time, each to its end, and a failure is a failure of that check only', async () => {
  const written: string[] = [];
  const outcomes = await sideBySide(
    [
      check('fails', 'console.log("a finding"); console.error("and another"); process.exitCode = 1'),
      check('is killed', 'process.kill(process.pid, "SIGKILL")'),
      check('passes', 'console.log("fine")'),
      { name: 'is not there', command: '/nowhere/program', args: [] },
      check('says nothing', ''),
    ],
    (text) => written.push(text),
  );
  expect(outcomes.map(({ name, hasPassed }) => [name, hasPassed])).toEqual([
    ['fails', false],
    ['is killed', false],
    ['passes', true],
    ['is not there', false],
    ['says nothing', true],
  ]);
  expect(written.sort()).toEqual([
    'fails:\na finding\nand another\n',
    expect.stringMatching(/^is not there:\n.*ENOENT\n$/),
    'passes:\nfine\n',
  ]);
});

it('the summary has a line for each check', () => {
  expect(
    summaryOf([
      { name: 'types', hasPassed: true, seconds: 12 },
      { name: 'lint', hasPassed: false, seconds: 3 },
    ]),
  ).toBe('passed  types, 12 s\nFAILED  lint, 3 s\n');
});
