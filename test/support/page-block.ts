import { readFileSync } from 'node:fs';

const PAGE = 'docs/install.md';

/** The block of the page that begins with this line. Throws where there is none. */
export function pageBlock(firstLine: string): string {
  const text = readFileSync(new URL(`../../${PAGE}`, import.meta.url), 'utf8');
  const block = text.split('```text\n').find((part) => part.startsWith(firstLine));
  if (block === undefined) throw new Error(`${PAGE} has no block that begins with ${firstLine}`);
  return block.slice(0, block.indexOf('```'));
}
