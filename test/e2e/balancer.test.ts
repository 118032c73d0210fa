import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import { releasePort, reservePort } from '../../samples/control-plane/ports.ts';
import type { JvmBase } from '../../samples/jvm/jvm-base.ts';
import { nodeNameOf } from '../../src/labels.ts';
import { eventually } from '../support/eventually.ts';
import { FeedClient, FeedFiles } from '../support/feed-client.ts';
import { JavaWorld } from '../support/java-world.ts';
import { moduleWorkload } from '../support/manifests.ts';
import { isReady, pods } from '../support/observe.ts';
import { Platform } from '../support/platform.ts';

const TOKEN = 'of-the-balancers-of-group-external-0123456789';
const CALLERS = 4;
const CALLS = 2_000;

let java: JavaWorld;
let bases: JvmBase[];
let platform: Platform;
let files: FeedFiles;
let balancer: ChildProcess;
let log = '';
let port: number;
let feedPort: number;

/** One Deployment for each base: the bases of this test share one address, so each has another port. */
async function deploy(base: JvmBase, version: '1.0.0' | '2.0.0'): Promise<void> {
  const name = `price-${base.identity}`;
  const labels = { team: 'price', 'module.koupleless.io/name': 'price', 'module.koupleless.io/version': version };
  const ports = [{ name: 'web', containerPort: Number(new URL(base.urlOf('/')).port) }];
  const module = java.module('price', version);
  const deployment = moduleWorkload(name, [module], {
    labels,
    container: { ports, lifecycle: { preStop: { sleep: { seconds: 1 } } } },
    spec: { nodeSelector: { 'kubernetes.io/hostname': nodeNameOf(base.identity) } },
    rollingUpdate: { maxSurge: 1, maxUnavailable: 0 },
  });
  await java.world.controlPlane.apply(deployment as KubeObject);
  await eventually(async () => {
    const all = await pods(java.admin, `app=${name}`);
    expect(all.map(({ metadata }) => metadata.labels?.['module.koupleless.io/version'])).toEqual([version]);
    expect(all.every(isReady)).toBe(true);
  });
}

async function exportWith(weights: Record<string, string>): Promise<void> {
  await java.world.controlPlane.apply({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: 'price',
      namespace: 'default',
      labels: { BCSGROUP: 'external', ...weights },
      annotations: { 'platform.koupleless.io/export-ports': '{"http":{"domainName":"127.0.0.1"}}' },
    },
    spec: { selector: { team: 'price' }, ports: [{ name: 'http', port: 1, targetPort: 'web', appProtocol: 'http' }] },
  } as KubeObject);
}

/**
 * On a connection of its own: the balancer closes kept ones that are idle for a second, and a client that gets no CPU
 * time for as long would send its next call into the closing.
 */
async function answerOf(url: string): Promise<{ readonly status: number | undefined; readonly text: string }> {
  const [response] = (await once(get(url, { agent: false }), 'response')) as [IncomingMessage];
  let text = '';
  for await (const chunk of response) text += chunk;
  return { status: response.statusCode, text };
}

/** Calls through the balancer until `stop`: how often each version answered, and what failed. */
class Callers {
  readonly #answers = new Map<string, number>();
  readonly failures: string[] = [];
  #isStopped = false;
  readonly #running = Promise.all(Array.from({ length: CALLERS }, () => this.#run()));

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  get count(): number {
    return [...this.#answers.values()].reduce((sum, count) => sum + count, 0);
  }

  /**
   * Of each version, in per cent of the next calls. The balancer takes its backends in turn, so the shares of all
   * calls are exact: those of some of them, as of a second caller beside this one, would be a sample.
   */
  async shares(): Promise<Record<string, number>> {
    const before = new Map(this.#answers);
    const from = this.count;
    await eventually(() => expect(this.count + this.failures.length).toBeGreaterThan(from + CALLS));
    const calls = this.count - from;
    const answers = [...this.#answers].map(
      ([version, count]) => [version, count - (before.get(version) ?? 0)] as const,
    );
    return Object.fromEntries(
      answers.filter(([, count]) => count > 0).map(([version, count]) => [version, (100 * count) / calls]),
    );
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      try {
        const { status, text } = await answerOf(`http://127.0.0.1:${port}/price`);
        const version = /\d\.0\.0/.exec(text)?.[0];
        if (status !== 200 || version === undefined) this.failures.push(`${status} ${text}`);
        else this.#answers.set(version, (this.#answers.get(version) ?? 0) + 1);
      } catch (error) {
        this.failures.push(String((error as Error).cause ?? error));
      }
    }
  }
}

/** Calls each backend that the feed has, past the balancer: A-003-4 with real JVMs. */
class BackendCalls {
  readonly failures: string[] = [];
  count = 0;
  #backends: readonly string[] = [];
  #isStopped = false;
  #end = () => {};
  #running: Promise<void> | undefined;

  async start(): Promise<this> {
    const feed = new FeedClient({ ca: files.ca, port: feedPort, token: TOKEN });
    this.#end = await feed.watch('?group=external', ({ object }) => {
      const backends = object?.ports.flatMap((one) => one.backends) ?? [];
      if (object !== undefined)
        this.#backends = backends.map((one) => `http://${one.targetIP}:${one.targetPort}/price`);
    });
    this.#running = this.#run();
    return this;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#end();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      await Promise.all(this.#backends.map((url) => this.#call(url)));
      // The watch has its turn.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async #call(url: string): Promise<void> {
    this.count++;
    try {
      const response = await fetch(url);
      const text = await response.text();
      if (response.status !== 200) this.failures.push(`${url}: ${response.status} ${text}`);
    } catch (error) {
      this.failures.push(`${url}: ${String((error as Error).cause ?? error)}`);
    }
  }
}

/** Until the balancer has loaded what the feed says now. */
async function loaded(weights: readonly number[]): Promise<void> {
  const feed = new FeedClient({ ca: files.ca, port: feedPort, token: TOKEN });
  await eventually(async () => {
    const [service] = await feed.list('?group=external');
    expect(service?.ports[0]?.backends.map(({ weight }) => weight).sort()).toEqual([...weights].sort());
  });
  await eventually(() =>
    expect(log).toMatch(new RegExp(`weights ${[...weights].sort((a, b) => a - b).join(' ')}$`, 'm')),
  );
  log = '';
}

beforeAll(async () => {
  java = await JavaWorld.start();
  platform = await Platform.install(java.world);
  const { authority } = java.world.controlPlane;
  const pair = authority.issue({ commonName: '127.0.0.1', hosts: ['127.0.0.1'] });
  files = await FeedFiles.write({ ...pair, ca: authority.certificate }, { external: TOKEN });
  const controller = await platform.start('export-1', 'export', files.env);
  feedPort = await controller.port('feed');
  bases = await java.startBases({
    'java-1': { tunnel: 'http' },
    'java-2': { tunnel: 'http' },
    'java-3': { tunnel: 'mqtt' },
  });
  const ca = join(files.directory, 'ca.crt');
  await writeFile(ca, files.ca);
  port = await reservePort();
  balancer = spawn(process.execPath, [new URL('../../samples/balancer/main.ts', import.meta.url).pathname], {
    env: {
      PATH: process.env.PATH,
      FEED_URLS: `https://127.0.0.1:${feedPort}`,
      FEED_TOKEN: TOKEN,
      FEED_CA_PATH: ca,
      BIND: '127.0.0.1',
      // The Service has port 1.
      PORT_OFFSET: String(port - 1),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  balancer.stdout?.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
});

afterAll(async () => {
  if (balancer) {
    const ended = new Promise((resolve) => balancer.once('exit', resolve));
    balancer.kill('SIGTERM');
    await ended;
  }
  releasePort(port);
  await files?.remove();
  await platform?.stop();
  await java?.stop();
});

it('HAProxy gives a canary its share, and loses no call while weights change and modules are updated; every backend in the feed serves', async () => {
  const [first, second, third] = bases as [JvmBase, JvmBase, JvmBase];
  await Promise.all([deploy(first, '1.0.0'), deploy(second, '1.0.0'), deploy(third, '2.0.0')]);
  await exportWith({ 'BCS-WEIGHT-1.0.0': '9', 'BCS-WEIGHT-2.0.0': '1' });
  await loaded([9, 9, 2]);
  const callers = new Callers();
  const canary = await callers.shares();
  expect(Math.abs((canary['2.0.0'] ?? 0) - 10), JSON.stringify(canary)).toBeLessThan(1);
  const backends = await new BackendCalls().start();
  await exportWith({ 'BCS-WEIGHT-1.0.0': '1', 'BCS-WEIGHT-2.0.0': '1' });
  await loaded([1, 1, 2]);
  const half = await callers.shares();
  expect(Math.abs((half['2.0.0'] ?? 0) - 50), JSON.stringify(half)).toBeLessThan(1);
  // Both versions are on a base for a moment.
  await deploy(first, '2.0.0');
  await deploy(second, '2.0.0');
  await exportWith({ 'BCS-WEIGHT-1.0.0': '0', 'BCS-WEIGHT-2.0.0': '1' });
  await loaded([1, 1, 1]);
  expect(await callers.shares()).toEqual({ '2.0.0': 100 });
  await Promise.all([callers.stop(), backends.stop()]);
  expect(callers.failures).toEqual([]);
  expect(backends.failures).toEqual([]);
  expect(backends.count).toBeGreaterThan(500);
  console.log(
    `balancer: ${callers.count} calls and ${backends.count} past it, none failed; canary ${JSON.stringify(canary)}, half ${JSON.stringify(half)}`,
  );
});
