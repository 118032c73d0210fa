import { readFileSync } from 'node:fs';

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

/** The block of README that begins with this line. Throws where there is none. */
export function readmeBlock(firstLine: string): string {
  const block = README.split('```text\n').find((text) => text.startsWith(firstLine));
  if (block === undefined) throw new Error(`README has no block that begins with ${firstLine}`);
  return block.slice(0, block.indexOf('```'));
}
