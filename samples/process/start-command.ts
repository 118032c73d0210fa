import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = new URL('../../', import.meta.url);

/** What the image sets for every controller. */
export const IMAGE_ENVIRONMENT = { MALLOC_ARENA_MAX: '1' };

/**
 * The arguments that `npm start` gives to Node: its flags and the path of the program. Whatever starts a controller uses
 * them. `root`: the tree of another version, a URL that ends with a slash.
 */
export function startArguments(root: URL = ROOT): string[] {
  const { scripts } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as { scripts: { start: string } };
  const [, ...words] = scripts.start.split(' ');
  return words.map((word) => (word.startsWith('-') ? word : fileURLToPath(new URL(word, root))));
}
