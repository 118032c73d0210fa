import { describe, expect, it } from 'vitest';
import { PATTERNS } from '../../words/patterns.ts';
import { type Text, textsOf } from '../../words/texts.ts';

/** Requirements of a design document are listed there by their numbers. */
const isMapping = ({ path, text }: Text): boolean => path === 'docs/contribute.md' && text.startsWith('| V');

describe.each(['strings', 'pages', 'names', 'comments'] as const)('%s', (area) => {
  const texts = textsOf(area).filter((text) => !isMapping(text));

  it.each(PATTERNS)('have no $name', ({ found, instead }) => {
    const places = texts.filter(({ text }) => text.search(found) >= 0);
    expect(places.map(({ path, line, text }) => `${path}:${line}: ${text.trim()} (write: ${instead})`)).toEqual([]);
  });
});
