/** `npm run check`: types, lint and unit tests at the same time. Fails when one of them fails. */
import { sideBySide, summaryOf } from './side-by-side.ts';

const outcomes = await sideBySide(
  [
    { name: 'types', command: 'npm', args: ['run', '--silent', 'typecheck'] },
    { name: 'lint', command: 'npm', args: ['run', '--silent', 'lint'] },
    {
      name: 'unit tests',
      command: 'npm',
      args: ['run', '--silent', 'test:unit', ...process.argv.slice(2)],
      isLive: true,
    },
  ],
  (text) => process.stdout.write(text),
);
process.stdout.write(`\n${summaryOf(outcomes)}`);
process.exitCode = outcomes.every(({ hasPassed }) => hasPassed) ? 0 : 1;
