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

const PAGE = readFileSync(new URL('docs/attacks.md', ROOT), 'utf8');
const TESTS = readFileSync(new URL('README.md', SUITE), 'utf8');
const ROLES = [...TESTS.matchAll(/^## (.+)$/gm)].map(([, title = '']) => title);

it('docs/attacks.md has the roles and attacks that have tests, and no others', () => {
  expect(ROLES.length).toBeGreaterThan(5);
  const shown = [...sectionOf(PAGE, 'Attacks and results').matchAll(/^### (.+)$/gm)].map(([, title = '']) => title);
  expect(shown).toEqual(ROLES);
  for (const role of ROLES) {
    const attacks = tableOf(sectionOf(PAGE, role)).map((row) => row.Attack);
    expect(attacks.length).toBeGreaterThan(0);
    expect(tableOf(sectionOf(TESTS, role)).map((row) => row.Attack)).toEqual(attacks);
  }
});

it('each attack names a test that there is, and each test of the suite has its attack', () => {
  const named = ROLES.flatMap((role) => tableOf(sectionOf(TESTS, role)).map((row) => row.Test ?? ''));
  const isOfSuite = (cell: string): boolean => !/^`[\w-]+\/[^`]+`/.test(cell);
  expect(named.filter(isOfSuite).toSorted()).toEqual(testsOfSuite().toSorted());
  const others = named.filter((cell) => !isOfSuite(cell));
  expect(others.length).toBeGreaterThan(20);
  expect(others.filter((cell) => !namesTest(cell))).toEqual([]);
});
