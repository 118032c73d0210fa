/** `npm run check`: types, lint and unit tests at the same time. Fails when one of them fails. */
import { availableParallelism } from 'node:os';
import { sideBySide, summaryOf } from './side-by-side.ts';

/** Each worker loads all modules once more, and few of these tests wait. */
const WORKERS = availableParallelism() + 1;
const [npm, ...run] = ['npm', 'run', '--silent'];
const unitTests = ['test:unit', '--', `--maxWorkers=${WORKERS}`, ...process.argv.slice(2)];

const outcomes = await sideBySide(
  [
    { name: 'types', command: npm, args: [...run, 'typecheck'] },
    { name: 'lint', command: npm, args: [...run, 'lint'] },
    { name: 'unit tests', command: npm, args: [...run, ...unitTests], isLive: true },
  ],
  (text) => process.stdout.write(text),
);
process.stdout.write(`\n${summaryOf(outcomes)}`);
process.exitCode = outcomes.every(({ hasPassed }) => hasPassed) ? 0 : 1;
