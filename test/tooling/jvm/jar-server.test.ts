import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type JarServer, startJarServer } from '../../../samples/jvm/jar-server.ts';

let directory: string;
let server: JarServer;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'jars-'));
  await mkdir(join(directory, 'public'));
  await writeFile(join(directory, 'secret.jar'), 'secret');
  await writeFile(join(directory, 'public/shop.jar'), 'PK of a shop');
  server = await startJarServer(join(directory, 'public'));
});

afterEach(async () => {
  await server.stop();
  await rm(directory, { recursive: true });
});

/** Without the tidying of a path that `fetch` does. */
function statusOf(path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const { port } = new URL(server.urlOf(''));
    request({ port, host: '127.0.0.1', path }, (response) => resolve(response.resume().statusCode))
      .once('error', reject)
      .end();
  });
}

describe('a store of jars', () => {
  it('serves what it has, with its length', async () => {
    const response = await fetch(server.urlOf('shop.jar'));
    expect(response.headers.get('content-length')).toBe('12');
    expect(await response.text()).toBe('PK of a shop');
  });

  it.each(['/nowhere.jar', '//', '/../secret.jar', '/..%2Fsecret.jar', '/%2e%2e/secret.jar', '/', '/public'])(
    'has nothing at %s',
    async (path) => {
      expect(await statusOf(path)).toBe(404);
    },
  );
});
