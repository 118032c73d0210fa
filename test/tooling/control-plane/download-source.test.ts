import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { describeAmount, downloadIntoCache } from '../../../samples/control-plane/download-source.ts';
import { type FetchTimeouts, redirectTarget } from '../../../samples/control-plane/fetch-file.ts';
import { hasAllPrograms } from '../../../samples/control-plane/programs.ts';
import { COMPONENT_NAMES } from '../../../samples/control-plane/versions.ts';
import { Mirror } from './support/mirror.ts';

const CHILD = fileURLToPath(new URL('./support/download-child.ts', import.meta.url));

let directory: string;
let cacheDirectory: string;
let mirror: Mirror;
let lines: string[];
const children: ChildProcess[] = [];

beforeEach(async () => {
  for (const name of ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy']) vi.stubEnv(name, '');
  directory = await mkdtemp(join(tmpdir(), 'download-test-'));
  cacheDirectory = join(directory, 'cache', 'version');
  mirror = await Mirror.start();
  lines = [];
});

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  vi.unstubAllEnvs();
  await mirror.stop();
  await rm(directory, { recursive: true });
});

const download = ({
  archives = mirror.archives,
  ...timeouts
}: FetchTimeouts & { archives?: Mirror['archives'] } = {}) =>
  downloadIntoCache({
    cacheDirectory,
    archives,
    mirror: mirror.url,
    timeouts,
    onProgress: (line) => lines.push(line),
  });

/** The same in a process of its own. */
function downloadElsewhere(): ChildProcess {
  const options = { cacheDirectory, archives: mirror.archives, mirror: mirror.url };
  const child = spawn(process.execPath, [CHILD, JSON.stringify(options)], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  return child;
}

const expectNothingKept = async () => expect(await readdir(dirname(cacheDirectory))).toEqual([]);

describe('downloadIntoCache', () => {
  it('takes the four programs, and nothing else, out of the archives', async () => {
    await download();
    expect((await readdir(cacheDirectory)).sort()).toEqual([...COMPONENT_NAMES]);
    expect(await hasAllPrograms(cacheDirectory)).toBe(true);
    expect(await readdir(dirname(cacheDirectory))).toEqual([basename(cacheDirectory)]);
    expect(lines[0]).toBe(`downloading ${mirror.url}${mirror.etcdPath}`);
    await download();
    expect(mirror.requests).toHaveLength(2);
  });

  it('refuses a file with another sum, and names the URL and both sums', async () => {
    const [etcd, kubernetes] = mirror.archives;
    if (etcd === undefined || kubernetes === undefined) throw new Error('two archives');
    const hex = 'ab'.repeat(32);
    const archives = [{ ...etcd, sum: { ...etcd.sum, hex } }, kubernetes];
    await expect(download({ archives })).rejects.toThrow(
      `${mirror.url}${mirror.etcdPath}: its sha256 should be ${hex}, but is ${etcd.sum.hex}`,
    );
    await expectNothingKept();
  });

  it('refuses a body that ends early', async () => {
    const body = mirror.body(mirror.etcdPath);
    mirror.on(mirror.etcdPath, (_request, response) => {
      response.writeHead(200, { 'content-length': body.length });
      response.write(body.subarray(0, body.length / 2), () => response.destroy());
    });
    await expect(download()).rejects.toThrow(`${mirror.url}${mirror.etcdPath}: `);
    await expectNothingKept();
  });

  it('refuses a body that ends early and does not say how long it should be', async () => {
    const body = mirror.body(mirror.etcdPath);
    mirror.on(mirror.etcdPath, (_request, response) => response.end(body.subarray(0, body.length / 2)));
    await expect(download()).rejects.toThrow('its sha256 should be');
    await expectNothingKept();
  });

  it.each([404, 500])('tells of an answer %d', async (status) => {
    mirror.on(mirror.etcdPath, (_request, response) => response.writeHead(status).end('sorry'));
    await expect(download()).rejects.toThrow(`${mirror.url}${mirror.etcdPath}: answered ${status}`);
    await expectNothingKept();
  });

  it.each([
    ['before it answers', (response: { flushHeaders(): void }) => response],
    ['in the middle', (response: { flushHeaders(): void }) => response.flushHeaders()],
  ])('gives up on a server that falls silent %s', async (_when, begin) => {
    mirror.on(mirror.etcdPath, (_request, response) => void begin(response));
    await expect(download({ silenceMs: 100 })).rejects.toThrow(/etcd.*Timeout/i);
    await expectNothingKept();
  });

  it('gives up at once on a server that is not there', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    await new Promise((resolve) => server.close(resolve));
    const gone = downloadIntoCache({
      cacheDirectory,
      archives: mirror.archives,
      mirror: `http://127.0.0.1:${port}`,
      onProgress: () => {},
    });
    await expect(gone).rejects.toThrow('ECONNREFUSED');
  });

  it('follows redirects, five at most', async () => {
    const redirect = (from: string, to: string) =>
      mirror.on(from, (_request, response) => response.writeHead(302, { location: to }).end());
    for (let hop = 1; hop < 5; hop++) redirect(`/hop-${hop}`, `/hop-${hop + 1}`);
    mirror.on('/hop-5', (_request, response) => response.end(mirror.body(mirror.etcdPath)));
    redirect(mirror.etcdPath, `${mirror.url}/hop-1`);
    await download();
    expect(await hasAllPrograms(cacheDirectory)).toBe(true);
    await rm(cacheDirectory, { recursive: true });
    redirect('/hop-5', '/hop-6');
    await expect(download()).rejects.toThrow('more than 5 redirects');
  });

  it('names a program that the archive does not have', async () => {
    const poor = await Mirror.start({ without: 'kube-scheduler' });
    try {
      const { archives, url } = poor;
      const refused = downloadIntoCache({ cacheDirectory, archives, mirror: url, onProgress: () => {} });
      await expect(refused).rejects.toThrow('there is no kubernetes/server/bin/kube-scheduler in it');
      await expectNothingKept();
    } finally {
      await poor.stop();
    }
  });

  it('tells of a file with the right sum that is no archive', async () => {
    const [etcd, kubernetes] = mirror.archives;
    if (etcd === undefined || kubernetes === undefined) throw new Error('two archives');
    mirror.on(mirror.etcdPath, (_request, response) => response.end());
    const hex = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'; // of nothing
    await expect(download({ archives: [{ ...etcd, sum: { ...etcd.sum, hex } }, kubernetes] })).rejects.toThrow(
      `${mirror.url}${mirror.etcdPath}: `,
    );
    await expectNothingKept();
  });
});

describe('several processes', () => {
  it('download once when they ask at the same time', async () => {
    const [one, other] = [downloadElsewhere(), downloadElsewhere()];
    const codes = await Promise.all([one, other].map(async (child) => (await once(child, 'exit'))[0]));
    expect(codes).toEqual([0, 0]);
    expect(mirror.requests).toHaveLength(2);
    expect(await readdir(dirname(cacheDirectory))).toEqual([basename(cacheDirectory)]);
  }, 20_000);

  it('take over from one that was killed half-way', async () => {
    const body = mirror.body(mirror.etcdPath);
    const half = new Promise<void>((resolve) => {
      mirror.on(mirror.etcdPath, (_request, response) => {
        response.writeHead(200, { 'content-length': body.length });
        response.write(body.subarray(0, body.length / 2), () => resolve());
      });
    });
    const killed = downloadElsewhere();
    await half;
    killed.kill('SIGKILL');
    await once(killed, 'exit');
    expect(await hasAllPrograms(cacheDirectory)).toBe(false);
    mirror.off(mirror.etcdPath);
    await download();
    expect(await readdir(dirname(cacheDirectory))).toEqual([basename(cacheDirectory)]);
  }, 20_000);
});

describe('redirectTarget', () => {
  const target = (start: string, location: unknown) => {
    const url = new URL(start);
    return redirectTarget({ start: url, from: url, location }).href;
  };

  it('stays with HTTPS, unless the mirror has none', () => {
    expect(target('https://dl.k8s.io/a', 'https://cdn.dl.k8s.io/a')).toBe('https://cdn.dl.k8s.io/a');
    expect(target('http://mirror/a', '/b')).toBe('http://mirror/b');
    expect(target('http://mirror/a', 'https://cdn/a')).toBe('https://cdn/a');
    expect(() => target('https://dl.k8s.io/a', 'http://cdn/a')).toThrow('redirects from https to http://cdn');
    expect(() => target('http://mirror/a', 'file:///etc/passwd')).toThrow('refused');
  });

  it.each([undefined, 'http://['])('refuses %s', (location) => {
    expect(() => target('https://dl.k8s.io/a', location)).toThrow('redirects to nowhere');
  });
});

describe('describeAmount', () => {
  it('says how far it is', () => {
    expect(describeAmount(120e6, 396e6)).toBe('120 of 396 MB (30 %)');
    expect(describeAmount(120e6, undefined)).toBe('120 MB');
  });
});
