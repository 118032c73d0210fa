import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type KeptSuite, keptText } from './kept.ts';
import { pictureOf } from './picture.ts';

/** In the repository: a change of the figures is a diff. */
const FOLDER = new URL('results/', import.meta.url);

/** Undefined: nothing was ever kept. */
export async function readKept(suite: string): Promise<KeptSuite | undefined> {
  try {
    return JSON.parse(await readFile(new URL(`${suite}.json`, FOLDER), 'utf8')) as KeptSuite;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Says which files it wrote. */
export async function writeKept(kept: KeptSuite): Promise<string[]> {
  await mkdir(FOLDER, { recursive: true });
  const [json, picture] = [new URL(`${kept.suite}.json`, FOLDER), new URL(`${kept.suite}.svg`, FOLDER)];
  await writeFile(json, keptText(kept));
  await writeFile(picture, pictureOf(kept));
  return [json, picture].map((url) => fileURLToPath(url));
}
