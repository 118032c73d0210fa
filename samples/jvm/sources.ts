import { createHash } from 'node:crypto';
import { cp, readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The Maven project with the sample base and the sample modules. */
export const JAVA_DIRECTORY = fileURLToPath(new URL('../java', import.meta.url));
/** What a jar is made of: not what Maven has made in place, nor manifests and words beside the sources. */
const SOURCE = /(^|\/)(pom\.xml|src\/.*)$/;

/** The same for the same sources, wherever they are. */
export async function fingerprintOf(directory: string): Promise<string> {
  const hash = createHash('sha256');
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => SOURCE.test(relative(directory, path)));
  for (const path of files.sort()) hash.update(`${relative(directory, path)}\0`).update(await readFile(path));
  return hash.digest('hex').slice(0, 16);
}

/** Everything but what Maven has made in place. */
export async function copySources(from: string, to: string): Promise<void> {
  await cp(from, to, { recursive: true, filter: (path) => !relative(from, path).split('/').includes('target') });
}
