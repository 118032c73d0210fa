import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { sectionOf, tableOf } from './markdown.ts';
import { ROOT } from './sources.ts';

const SUITE = new URL('test/attacks/', ROOT);
const SUFFIX = '.test.ts';

/** As the page has them: the file, and the title with `…` for what a table of cases puts in. */
function testsOfSuite(): string[] {
  const files = readdirSync(SUITE).filter((name) => name.endsWith(SUFFIX));
  return files.flatMap((name) => {
    const text = readFileSync(new URL(name, SUITE), 'utf8');
    const titles = [...text.matchAll(/(?:\bit\(|\]\)\()\s*(['"])((?:(?!\1).)+)\1/g)].map(([, , title = '']) => title);
    return titles.map((title) => `\`${name.slice(0, -SUFFIX.length)}\`: ${title.replaceAll('%s', '…')}`);
  });
}

/** Whether there is such a test: `folder/file`: title. */
function namesTest(cell: string): boolean {
  const [, file = '', title = ''] = /^`([\w/-]+)`: (.+)$/.exec(cell) ?? [];
  const text = readFileSync(new URL(`test/${file}${SUFFIX}`, ROOT), 'utf8');
  return ["'", '"'].some((quote) => text.includes(`${quote}${title}${quote}`));
}

it.each([
  ['Exports to load balancers', 15],
  ['Probes, metrics and webhooks', 5],
])('docs/attacks.md names tests that there are: %s', (heading, few) => {
  const page = readFileSync(new URL('docs/attacks.md', ROOT), 'utf8');
  const shown = tableOf(sectionOf(page, heading)).map((row) => row.Test ?? '');
  expect(shown.length).toBeGreaterThan(few);
  expect(shown.filter((cell) => !namesTest(cell))).toEqual([]);
});

it('docs/attacks.md has a row for each test of the suite, and no other', () => {
  const page = readFileSync(new URL('docs/attacks.md', ROOT), 'utf8');
  const shown = tableOf(sectionOf(page, 'Attacks and results')).map((row) => row.Test ?? '');
  expect(shown.toSorted()).toEqual(testsOfSuite().toSorted());
});
