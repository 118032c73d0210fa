import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { moduleJarOf } from '../../samples/jvm/jars.ts';
import type { JvmBase } from '../../samples/jvm/jvm-base.ts';
import { PollingClient } from '../../samples/jvm/polling-client.ts';
import { ReadyEndpoints } from '../../samples/jvm/ready-endpoints.ts';
import { sampleDeployment } from '../../samples/jvm/sample-deployment.ts';
import { nodeNameOf } from '../../src/labels.ts';
import { eventually } from '../support/eventually.ts';
import { JavaWorld } from '../support/java-world.ts';
import { moduleWorkload } from '../support/manifests.ts';
import { isReady, pods } from '../support/observe.ts';
import { nextSecond } from '../support/pod-life.ts';

let java: JavaWorld;
let bases: JvmBase[];

beforeAll(async () => {
  java = await JavaWorld.start();
  bases = await java.startBases({
    'java-1': { tunnel: 'http' },
    'java-2': { tunnel: 'http' },
    'java-3': { tunnel: 'mqtt' },
  });
});

afterAll(() => java?.stop());

/** The sample of the repository as a user applies it, with the store of jars of this test. */
async function applyShop(version: '1.0.0' | '2.0.0'): Promise<void> {
  const text = await readFile(new URL('../../samples/java/shop/deployment.yaml', import.meta.url), 'utf8');
  const url = java.jarServer.urlOf(moduleJarOf('shop', version));
  await java.world.controlPlane.apply(sampleDeployment(text, { version, url, replicas: bases.length }));
  await allReady('app=shop', version, bases.length);
}

async function allReady(selector: string, version: string, count: number): Promise<void> {
  await eventually(async () => {
    const found = await pods(java.admin, selector);
    const versions = found.filter(isReady).map(({ spec }) => spec?.containers[0]?.env?.find(isVersion)?.value);
    expect(versions).toEqual(Array.from({ length: count }, () => version));
    expect(found).toHaveLength(count);
  });
}

const isVersion = ({ name }: { name: string }): boolean => name === 'BIZ_VERSION';

async function answersOf(path: string): Promise<string[]> {
  const answers = await Promise.all(bases.map((base) => base.get(path)));
  return answers.map(({ status, text }) => (status === 200 ? text : String(status)));
}

describe('a web module on three JVMs, two over HTTP and one over MQTT', () => {
  it('is installed by the sample Deployment from a jar over http, and each base serves it', async () => {
    await applyShop('1.0.0');
    expect(await answersOf('/shop/version')).toEqual(['1.0.0', '1.0.0', '1.0.0']);
    for (const base of bases) expect(await base.modules()).toEqual(['shop:1.0.0 ACTIVATED']);
  });

  it('fails no call of a client that follows the EndpointSlice while a rolling update goes on', async () => {
    const endpoints = new ReadyEndpoints(java.admin, { service: 'shop' });
    await endpoints.start();
    const log: string[] = [];
    const client = new PollingClient({
      targets: () =>
        bases
          .filter(({ identity }) => endpoints.nodes().has(nodeNameOf(identity)))
          .map((base) => ({ base: base.identity, url: base.urlOf('/shop/version') })),
      onLine: (line) => log.push(line),
    });
    await eventually(() => expect(client.answers().size).toBe(bases.length));
    await applyShop('2.0.0');
    await eventually(() => expect([...client.answers().values()]).toEqual(['2.0.0', '2.0.0', '2.0.0']));
    await client.stop();
    await endpoints.stop();
    expect(client.failures, log.join('\n')).toEqual([]);
    // Each base was left alone before it lost the old version.
    for (const { identity } of bases) {
      expect(
        log.filter((line) => line.includes(`${identity} `)).map((line) => line.replace(/^.*java-\d /, '')),
      ).toEqual(['answers 1.0.0', 'is not called any more', 'answers 2.0.0']);
    }
  });

  it('is refused as a second version on one base, and the Pod says what to do; the first serves on', async () => {
    const [base] = bases as [JvmBase];
    await java.create('second-shop', base, java.module('shop', '1.0.0'));
    expect(await java.waitingMessage('second-shop', 'RunContainerError')).toMatch(
      /maxSurge 0.*Child name \[shop\] is not unique/,
    );
    await java.failedEvent('second-shop', 'RunContainerError', 'maxSurge 0');
    expect(await base.get('/shop/version')).toEqual({ status: 200, text: '2.0.0' });
    await java.remove('second-shop');
    expect(await base.modules()).toEqual(['shop:2.0.0 ACTIVATED']);
  });

  it('answers 404 on each base when its Deployment is deleted', async () => {
    await java.admin.delete('/apis/apps/v1/namespaces/default/deployments/shop', { propagationPolicy: 'Background' });
    await eventually(async () => expect(await pods(java.admin, 'app=shop')).toEqual([]));
    expect(await answersOf('/shop/version')).toEqual(['404', '404', '404']);
    for (const base of bases) expect(await base.modules()).toEqual([]);
  });
});

describe('a module without web context, from a file:// jar', () => {
  beforeEach(() => java.clear());

  it.each([
    ['http', 'java-1'],
    ['mqtt', 'java-3'],
  ])('is updated without loss on one base, over %s: both versions are there meanwhile', async (_, identity) => {
    const base = bases.find((candidate) => candidate.identity === identity) as JvmBase;
    const name = `price-${identity}`;
    const deploy = async (version: '1.0.0' | '2.0.0') => {
      const module = java.module('price', version, 'file');
      const spec = { nodeSelector: { 'kubernetes.io/hostname': nodeNameOf(identity) } };
      const strategy = { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } };
      // So long both versions are there.
      const minReadySeconds = 2;
      const deployment = moduleWorkload(name, [module], { spec });
      await java.world.controlPlane.apply({ ...deployment, spec: { ...deployment.spec, strategy, minReadySeconds } });
      await allReady(`app=${name}`, version, 1);
    };
    await deploy('1.0.0');
    await nextSecond();

    const log: string[] = [];
    const client = new PollingClient({
      targets: () => [{ base: identity, url: base.urlOf('/price') }],
      onLine: (line) => log.push(line),
    });
    await eventually(() => expect(client.answers().get(identity)).toBe('1.0.0'));
    const both = eventually(async () =>
      expect((await base.modules()).sort()).toEqual(['price:1.0.0 DEACTIVATED', 'price:2.0.0 ACTIVATED']),
    );
    await Promise.all([both, deploy('2.0.0')]);
    await eventually(() => expect(client.answers().get(identity)).toBe('2.0.0'));
    await eventually(async () => expect(await base.modules()).toEqual(['price:2.0.0 ACTIVATED']));
    await client.stop();
    expect(client.failures, log.join('\n')).toEqual([]);
    await java.admin.delete(`/apis/apps/v1/namespaces/default/deployments/${name}`, {
      propagationPolicy: 'Background',
    });
    await eventually(async () => expect((await base.get('/price')).status).toBe(503));
  });
});
