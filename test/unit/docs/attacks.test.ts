import { existsSync, readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { linksOf, sectionOf, tableOf, tablesOf } from './markdown.ts';
import { ROOT, readText } from './sources.ts';

const SUFFIX = '.test.ts';
const PAGE = readText('docs/attacks.md');
const INDEX_PATH = 'test/attacks/README.md';
const INDEX = readText(INDEX_PATH);

const ATTACKS = tablesOf(sectionOf(PAGE, 'Attacks')).flat();
const TESTED = tableOf(sectionOf(INDEX, 'Attacks'));
const LISTED = [...TESTED, ...tableOf(sectionOf(INDEX, 'Other tests of this folder'))].map((row) => row.Test ?? '');

/** Names of the tests of the suite as the index has them: the file, and the title with `…` for values of a table. */
function testsOfSuite(): string[] {
  const files = readdirSync(new URL('test/attacks/', ROOT)).filter((name) => name.endsWith(SUFFIX));
  return files.flatMap((name) => {
    const text = readText(`test/attacks/${name}`);
    const titles = [...text.matchAll(/(?:\bit\(|\]\)\()\s*(['"])((?:(?!\1).)+)\1/g)].map(([, , title = '']) => title);
    return titles.map((title) => `\`attacks/${name.slice(0, -SUFFIX.length)}\`: ${title.replaceAll('%s', '…')}`);
  });
}

/** Whether there is such a test: `folder/file`: title. */
function namesTest(cell: string): boolean {
  const [, file = '', title = ''] = /^`([\w/-]+)`: (.+)$/.exec(cell) ?? [];
  const path = `test/${file}${SUFFIX}`;
  if (!existsSync(new URL(path, ROOT))) return false;
  const text = readText(path);
  return ["'", '"'].some((quote) => text.replaceAll('%s', '…').includes(`${quote}${title}${quote}`));
}

it('each attack of docs/attacks.md has a number of its own and a test, in the order of the page', () => {
  const numbers = ATTACKS.map((row) => row['No.'] ?? '');
  expect(numbers.length).toBeGreaterThan(60);
  expect(numbers.filter((number, index) => !/^[A-Z]\d+$/.test(number) || numbers.indexOf(number) !== index)).toEqual(
    [],
  );
  expect(TESTED.map((row) => row['No.'])).toEqual(numbers);
});

it('the tests of attacks that are listed exist, each once', () => {
  expect(LISTED.filter((cell, index) => !namesTest(cell) || LISTED.indexOf(cell) !== index)).toEqual([]);
});

it('each test of the folder of attacks is listed, and no other of that folder', () => {
  const listed = LISTED.filter((cell) => cell.startsWith('`attacks/'));
  expect(listed.toSorted()).toEqual(testsOfSuite().toSorted());
});

it('the list of tests links the page of attacks', () => {
  const targets = linksOf(INDEX).map((target) => new URL(target, new URL(INDEX_PATH, ROOT)).href);
  expect(targets).toContain(new URL('docs/attacks.md', ROOT).href);
});
