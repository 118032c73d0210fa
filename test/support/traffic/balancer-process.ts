import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HAPROXY_WRAPPER } from './base-servers.ts';

const PROGRAM = new URL('../../../samples/balancer/main.ts', import.meta.url).pathname;

export interface BalancerOptions {
  readonly feedUrls: readonly string[];
  readonly token: string;
  /** PEM. */
  readonly ca: string;
  readonly portOffset: number;
}

/** The sample balancer in a process of its own, before bases that listen on addresses of this machine. */
export class BalancerProcess {
  /** All lines that it has printed. */
  readonly lines: string[] = [];
  readonly #child: ChildProcess;
  readonly #directory: string;

  private constructor(child: ChildProcess, directory: string) {
    this.#child = child;
    this.#directory = directory;
    let rest = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      this.lines.push(...lines);
    });
  }

  static async start({ feedUrls, token, ca, portOffset }: BalancerOptions): Promise<BalancerProcess> {
    const directory = await mkdtemp(join(tmpdir(), 'traffic-'));
    const [haproxy, caPath] = [join(directory, 'haproxy'), join(directory, 'ca.crt')];
    await writeFile(caPath, ca);
    await writeFile(haproxy, HAPROXY_WRAPPER);
    await chmod(haproxy, 0o755);
    const child = spawn(process.execPath, [PROGRAM], {
      env: {
        PATH: process.env.PATH,
        FEED_URLS: feedUrls.join(),
        FEED_TOKEN: token,
        FEED_CA_PATH: caPath,
        BIND: '127.0.0.1',
        PORT_OFFSET: String(portOffset),
        HAPROXY: haproxy,
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    return new BalancerProcess(child, directory);
  }

  /** The weights of the backends of a Service in the configuration that HAProxy has loaded last; undefined: it has none. */
  weightsOf(service: string): number[] | undefined {
    const last = this.lines.findLast((line) => line.includes(' loaded '));
    const weights = new RegExp(`default/${service} weights([\\d ]*)`).exec(last ?? '')?.[1];
    return weights?.split(' ').filter(Boolean).map(Number);
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await ended;
    await rm(this.#directory, { recursive: true, force: true });
  }
}
