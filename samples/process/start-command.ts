import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = new URL('../../', import.meta.url);

/** What `npm start` gives to Node, its flags and the path of the program: whoever starts a controller starts it so. */
export function startArguments(): string[] {
  const { scripts } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')) as { scripts: { start: string } };
  const [, ...words] = scripts.start.split(' ');
  return words.map((word) => (word.startsWith('-') ? word : fileURLToPath(new URL(word, ROOT))));
}
