/**
 * `npm run test:durations -- report.json`: takes the durations of test files from a JSON report of Vitest into
 * `durations.json`, which decides in which order files start. The report is best one of `npm test` on an idle machine.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Report, recordedDurations, textOf, updatedDurations } from './durations.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const [report] = process.argv.slice(2);

if (report === undefined) {
  console.error('usage: npm run test:durations -- report.json');
  process.exitCode = 2;
} else {
  const former = recordedDurations();
  const measured = JSON.parse(readFileSync(report, 'utf8')) as Report;
  const durations = updatedDurations(former, measured, { root: ROOT, exists: (path) => existsSync(ROOT + path) });
  writeFileSync(new URL('durations.json', import.meta.url), textOf(durations));
  const changed = Object.keys(durations).filter((path) => durations[path] !== former[path]);
  console.log(`${changed.length} of ${Object.keys(durations).length} durations changed`);
}
