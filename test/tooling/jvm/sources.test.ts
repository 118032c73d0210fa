import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { copySources, fingerprintOf } from '../../../samples/jvm/sources.ts';

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sources-'));
  await mkdir(join(directory, 'base/src'), { recursive: true });
  await writeFile(join(directory, 'pom.xml'), '<project/>');
  await writeFile(join(directory, 'base/src/Base.java'), 'class Base {}');
});

afterEach(() => rm(directory, { recursive: true }));

describe('the fingerprint of sources', () => {
  it('is the same for a copy somewhere else', async () => {
    const copy = join(directory, 'copy-of-it');
    const before = await fingerprintOf(directory);
    await copySources(join(directory, 'base'), join(copy, 'base'));
    await copySources(join(directory, 'pom.xml'), join(copy, 'pom.xml'));
    expect(await fingerprintOf(copy)).toBe(before);
  });

  it.each([
    ['the text of a file', () => writeFile(join(directory, 'pom.xml'), '<project>2</project>')],
    ['a file that is new', () => writeFile(join(directory, 'base/src/Other.java'), '')],
    ['the name of a file', () => rm(join(directory, 'pom.xml'))],
  ])('changes with %s', async (_, change) => {
    const before = await fingerprintOf(directory);
    await change();
    expect(await fingerprintOf(directory)).not.toBe(before);
  });

  it('does not depend on words and manifests, nor on what was built, which is not copied either', async () => {
    const before = await fingerprintOf(directory);
    await writeFile(join(directory, 'README.md'), '# read me');
    await writeFile(join(directory, 'base/deployment.yaml'), 'kind: Deployment');
    await mkdir(join(directory, 'base/target'));
    await writeFile(join(directory, 'base/target/base.jar'), 'PK');
    expect(await fingerprintOf(directory)).toBe(before);
    await copySources(directory, `${directory}-copy`);
    expect(await readdir(join(`${directory}-copy`, 'base'))).toEqual(['deployment.yaml', 'src']);
    await rm(`${directory}-copy`, { recursive: true });
  });
});
