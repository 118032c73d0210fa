import { readFileSync } from 'node:fs';

/**
 * The block of a page that begins with this line. `kind`: what is written behind its fence. Throws where there is none.
 */
export function pageBlock(firstLine: string, page = 'docs/install.md', kind = 'text'): string {
  const text = readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8');
  const block = text.split(`\`\`\`${kind}\n`).find((part) => part.startsWith(firstLine));
  if (block === undefined) throw new Error(`${page} has no block that begins with ${firstLine}`);
  return block.slice(0, block.indexOf('```'));
}
