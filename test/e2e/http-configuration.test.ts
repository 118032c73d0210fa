import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { releasePort, reservePort } from '../../samples/control-plane/ports.ts';
import { moduleJarOf } from '../../samples/jvm/jars.ts';
import type { JvmBase } from '../../samples/jvm/jvm-base.ts';
import { jdkProgram } from '../../samples/jvm/jvm-process.ts';
import { nodeNameOf } from '../../src/labels.ts';
import { eventually } from '../support/eventually.ts';
import { FeedFiles } from '../support/feed-client.ts';
import { JavaCatalog } from '../support/java-catalog.ts';
import { JavaWorld } from '../support/java-world.ts';
import { isReady } from '../support/observe.ts';
import { type ControllerProcess, podPath } from '../support/world.ts';

const TOKEN = 'q'.repeat(40);
const API_VERSION = 'platform.koupleless.io/v1alpha1';

let java: JavaWorld;
let catalog: JavaCatalog;
let server: ControllerProcess;
let files: FeedFiles;
let port: number;
let bases: JvmBase[];

/** Options of a JVM that trusts the certificate of the feed, as docs/configuration.md has them. */
async function trusting(): Promise<string[]> {
  const [store, password] = [join(java.directory, 'trust.p12'), 'changeit'];
  const certificate = join(java.directory, 'ca.crt');
  await writeFile(certificate, files.ca);
  await promisify(execFile)(jdkProgram('keytool'), [
    ...['-importcert', '-noprompt', '-alias', 'feed', '-file', certificate],
    ...['-keystore', store, '-storetype', 'PKCS12', '-storepass', password],
  ]);
  return [`-Djavax.net.ssl.trustStore=${store}`, `-Djavax.net.ssl.trustStorePassword=${password}`];
}

function feedEnv(): Record<string, string> {
  return { ...files.env, EXPORT_PORT: String(port) };
}

beforeAll(async () => {
  java = await JavaWorld.start();
  const { authority } = java.world.controlPlane;
  const pair = authority.issue({ commonName: '127.0.0.1', hosts: ['127.0.0.1'] });
  files = await FeedFiles.write({ ...pair, ca: authority.certificate }, {}, { 'default.Shop': TOKEN });
  port = await reservePort();
  catalog = await JavaCatalog.start(java);
  server = await catalog.startCatalog(feedEnv());
  const env = { MODULE_CONFIG_URL: `https://127.0.0.1:${port}`, MODULE_CONFIG_TOKEN: TOKEN };
  const jvmFlags = await trusting();
  bases = await java.startBases({
    'java-http': { tunnel: 'http', jvmFlags, env },
    'java-mqtt': { tunnel: 'mqtt', jvmFlags, env },
  });
});

afterAll(async () => {
  await catalog?.stop();
  await java?.stop();
  if (port !== undefined) releasePort(port);
  await files?.remove();
});

function configOf(name: string, target: object, spec: object) {
  const metadata = { name, namespace: 'default' };
  return {
    apiVersion: API_VERSION,
    kind: 'ModuleConfig',
    metadata,
    spec: { target, file: 'application.yaml', format: 'yaml', ...spec },
  };
}

/** The answers of both bases to each path. */
async function answersOf(...paths: readonly string[]): Promise<string[]> {
  const all = await Promise.all(bases.map((base) => Promise.all(paths.map((path) => base.get(path)))));
  return all.map((answers) => answers.map(({ status, text }) => (status === 200 ? text : status)).join(' '));
}

async function untilQuoted(answer: string): Promise<void> {
  await catalog.ready('quote', bases);
  await eventually(async () =>
    expect(await answersOf('/quote/currency', '/quote/discount')).toEqual(bases.map(() => answer)),
  );
}

/** Until a Pod that cannot be installed says so; the base where the other one serves. */
async function failing(says: RegExp): Promise<JvmBase> {
  return eventually(async () => {
    const all = await catalog.podsOf('quote');
    const messages = all.map(({ status }) => status?.containerStatuses?.[0]?.state?.waiting?.message ?? '');
    expect(messages).toContainEqual(expect.stringMatching(says));
    const ready = all.filter(isReady).map(({ spec }) => spec?.nodeName);
    const serving = bases.find(({ identity }) => ready.includes(nodeNameOf(identity)));
    expect(serving).toBeDefined();
    return serving as JvmBase;
  }, 120_000);
}

describe('configuration over HTTP, on JVMs over HTTP and MQTT', () => {
  it('reaches @Value and @ConfigurationProperties of the Module of the sample', async () => {
    const text = await readFile(new URL('../../samples/java/quote/module.yaml', import.meta.url), 'utf8');
    await catalog.apply(text.replace(/image: \S+/, `image: ${java.jarServer.urlOf(moduleJarOf('quote', '1.0.0'))}`));
    await untilQuoted('EUR 5');
  });

  it('reaches no neighbour, comes with a change, and goes back with rollbackTo', async () => {
    const { image } = java.module('shop');
    const name = 'shop-shop';
    const spec = { app: 'Shop', module: 'shop', base: { name: 'base' }, deploy: { replicas: 2 } };
    const configs = [{ name, follow: 'Immediately' }];
    await catalog.apply([
      configOf(name, { kind: 'Module', app: 'Shop', name: 'shop' }, { content: 'shop: { color: blue }' }),
      {
        apiVersion: API_VERSION,
        kind: 'Module',
        metadata: { name, namespace: 'default' },
        spec: { ...spec, configs, release: { id: 'r1', image } },
      },
    ]);
    await catalog.ready('shop', bases);
    expect(await answersOf('/shop/version', '/shop/color')).toEqual(['1.0.0 blue', '1.0.0 blue']);

    const leaks = 'shop: { version: leaked, color: leaked }';
    await catalog.changeConfig('shop-quote', `quote: { currency: CHF, discount: 10 }\n${leaks}`);
    await eventually(async () => expect(await answersOf('/quote/currency')).toEqual(['CHF', 'CHF']), 120_000);
    await untilQuoted('CHF 10');
    expect(await answersOf('/shop/version', '/shop/color')).toEqual(['1.0.0 blue', '1.0.0 blue']);
    await catalog.changeConfig(name, 'shop: { color: green }\nquote: { currency: leaked }');
    await eventually(async () => expect(await answersOf('/shop/color')).toEqual(['green', 'green']), 120_000);
    expect(await answersOf('/shop/version', '/quote/currency')).toEqual(['1.0.0 CHF', '1.0.0 CHF']);

    await catalog.changeModule('shop-quote', { rollbackTo: {} });
    await eventually(async () => expect(await answersOf('/quote/currency')).toEqual(['EUR', 'EUR']), 120_000);
    await untilQuoted('EUR 5');
  });

  it('is several files, of which the last wins, and the part of an instance', async () => {
    const instances = { blue: 'quote: { discount: 99 }' };
    const spec = { content: 'quote: { currency: USD, discount: 1 }', instances };
    await catalog.apply([configOf('shop-all', { kind: 'Module', app: 'Shop' }, spec)]);
    await catalog.changeConfig('shop-quote', 'quote: { currency: CHF }');
    const own = { name: 'shop-quote', follow: 'Immediately', as: 'Http' };
    const configs = [{ name: 'shop-all', follow: 'Immediately', as: 'Http' }, own];
    await catalog.changeModule('shop-quote', { configs, args: ['--spring.cloud.config.profile=blue'] });
    await eventually(async () => expect(await answersOf('/quote/discount')).toEqual(['99', '99']), 120_000);
    await untilQuoted('CHF 99');
    await catalog.changeModule('shop-quote', { args: null });
    await eventually(async () => expect(await answersOf('/quote/discount')).toEqual(['1', '1']), 120_000);
    await untilQuoted('CHF 1');
    await catalog.changeConfig('shop-quote', 'quote: { currency: EUR, discount: 5 }');
    await catalog.changeModule('shop-quote', { configs: [own] });
    await eventually(async () => expect(await answersOf('/quote/discount')).toEqual(['5', '5']), 120_000);
    await untilQuoted('EUR 5');
  });

  it('fails an install with another token; the Pod and the Module say so, and the other base serves on', async () => {
    const wrong = `--spring.cloud.config.headers.Authorization=Bearer ${'x'.repeat(40)}`;
    await catalog.changeModule('shop-quote', { args: [wrong] });
    const serving = await failing(/401 Unauthorized: "a token of the cluster or of the application is needed/);
    expect(await serving.get('/quote/currency')).toEqual({ status: 200, text: 'EUR' });
    await eventually(async () => {
      const { status } = await catalog.module('shop-quote');
      expect(status.problems[0]?.message).toContain('401');
    });
    await catalog.changeModule('shop-quote', { args: null });
    await untilQuoted('EUR 5');
  });

  it('fails an install while no replica answers; what runs goes on, and the install ends when one answers again', async () => {
    await server.stop('SIGKILL');
    const [first] = await catalog.podsOf('quote');
    await java.admin.delete(podPath(first?.metadata.name ?? ''));
    const serving = await failing(/Connection refused/);
    expect(await serving.get('/quote/currency')).toEqual({ status: 200, text: 'EUR' });
    server = await catalog.startCatalog(feedEnv());
    await untilQuoted('EUR 5');
  });
});
