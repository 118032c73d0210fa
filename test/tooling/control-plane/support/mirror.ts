import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Archive, archivesFor } from '../../../../samples/control-plane/archives.ts';
import { ETCD_VERSION, KUBERNETES_VERSION } from '../../../../samples/control-plane/versions.ts';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** Archives laid out as the official ones, whose programs only know their version, and the server that has them. */
export class Mirror {
  readonly archives: Archive[];
  /** Paths in the order in which they were asked for. */
  readonly requests: string[] = [];
  readonly #server: Server;
  readonly #bodies = new Map<string, Buffer>();
  readonly #answers = new Map<string, Answer>();

  private constructor(server: Server, archives: Archive[]) {
    this.#server = server;
    this.archives = archives;
  }

  static async start(options: { arch?: string; without?: string } = {}): Promise<Mirror> {
    const official = archivesFor({ platform: 'linux', arch: options.arch ?? 'x64' });
    const bodies = official.map((archive) => packed(archive, options.without));
    const server = createServer((request, response) => mirror.#answer(request, response));
    const archives = official.map((archive, index) => ({ ...archive, sum: sumLike(archive, bodies[index]) }));
    const mirror = new Mirror(server, archives);
    for (const [index, { path }] of archives.entries()) mirror.#bodies.set(`/${path}`, bodies[index] ?? Buffer.of());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return mirror;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get etcdPath(): string {
    return `/v${ETCD_VERSION}/etcd-v${ETCD_VERSION}-linux-amd64.tar.gz`;
  }

  body(path: string): Buffer {
    const body = this.#bodies.get(path);
    if (body === undefined) throw new Error(`nothing at ${path}`);
    return body;
  }

  /** From now on `path` is answered so. */
  on(path: string, answer: Answer): void {
    this.#answers.set(path, answer);
  }

  /** From now on `path` is answered as if nothing had been said of it. */
  off(path: string): void {
    this.#answers.delete(path);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = request.url ?? '';
    this.requests.push(path);
    const answer = this.#answers.get(path);
    const body = this.#bodies.get(path);
    if (answer !== undefined) answer(request, response);
    else if (body === undefined) response.writeHead(404).end('no such file');
    else response.writeHead(200, { 'content-length': body.length }).end(body);
  }
}

/** With two files that nobody wants. */
function packed({ programs }: Archive, without?: string): Buffer {
  const directory = mkdtempSync(join(tmpdir(), 'archive-test-'));
  try {
    const tree = join(directory, 'tree');
    const wanted = Object.entries(programs).filter(([name]) => name !== without);
    const members = [...wanted.map(([, member]) => member), 'kubernetes/LICENSES', 'kubernetes/server/bin/kubelet'];
    for (const member of members) {
      mkdirSync(join(tree, dirname(member)), { recursive: true });
      writeFileSync(join(tree, member), `#!/bin/sh\necho ${KUBERNETES_VERSION} ${ETCD_VERSION}\n`);
      chmodSync(join(tree, member), 0o755);
    }
    execFileSync('tar', ['-czf', join(directory, 'a.tar.gz'), '-C', tree, ...members]);
    return readFileSync(join(directory, 'a.tar.gz'));
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function sumLike({ sum }: Archive, body: Buffer | undefined): Archive['sum'] {
  return {
    algorithm: sum.algorithm,
    hex: createHash(sum.algorithm)
      .update(body ?? '')
      .digest('hex'),
  };
}
