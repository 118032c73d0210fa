/**
 * `npm run words`: how often readers stumble, by pattern and by where it stands. `--show PATTERN` lists the places,
 * `--sample N --seed S` draws sentences.
 */
import { parseArgs } from 'node:util';
import { seededRandom } from '../support/api-fault-proxy.ts';
import { countsOf, PATTERNS } from './patterns.ts';
import { type Area, type Text, textsOf } from './texts.ts';

const AREAS: readonly Area[] = ['strings', 'pages', 'names', 'comments'];

const { values } = parseArgs({
  options: { show: { type: 'string' }, area: { type: 'string' }, sample: { type: 'string' }, seed: { type: 'string' } },
});
const areas = AREAS.filter((area) => values.area === undefined || values.area === area);
const texts = new Map(areas.map((area) => [area, textsOf(area)]));

if (values.show !== undefined) show(values.show);
else if (values.sample !== undefined) sample(Number(values.sample), Number(values.seed ?? Date.now() % 10_000));
else count();

function count(): void {
  const rows = [...texts].map(([area, all]) => ({ area, ...countsOf(all.map(({ text }) => text)) }));
  console.table(Object.fromEntries(rows.map(({ area, ...counts }) => [area, counts])));
}

function show(name: string): void {
  const found = PATTERNS.filter((pattern) => pattern.name === name || name === 'all').map((pattern) => pattern.found);
  if (found.length === 0) throw new Error(`--show: one of ${PATTERNS.map((pattern) => pattern.name).join(', ')}, all`);
  for (const all of texts.values()) {
    for (const { path, line, text } of all) {
      if (found.some((pattern) => text.search(pattern) >= 0)) console.log(`${path}:${line}: ${text.trim()}`);
    }
  }
}

/** Sentences of at least six words. */
function sample(count: number, seed: number): void {
  const sentences = [...texts.values()].flat().flatMap(sentencesOf);
  const random = seededRandom(seed);
  console.log(`seed ${seed}, ${sentences.length} sentences`);
  for (let drawn = 0; drawn < count; drawn++) console.log(sentences[Math.floor(random() * sentences.length)]);
}

function sentencesOf({ path, line, text }: Text): string[] {
  const plain = text.replace(/^\s*(\/\*\*?|\*\/|\*|\/\/)/gm, ' ').replace(/\*\/|\s+/g, ' ');
  return plain
    .split(/(?<=[.!?])\s/)
    .filter((sentence) => sentence.trim().split(' ').length >= 6)
    .map((sentence) => `${path}:${line}: ${sentence.trim()}`);
}
