import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { silentLogger } from '../../../../../src/logger.ts';
import { createMetrics } from '../../../../../src/metrics.ts';
import { CATALOG_PODS, type CatalogPod } from '../../../../../src/platform/catalog/catalog-pod.ts';
import { CACHED_MODULES, type CachedModule } from '../../../../../src/platform/catalog/module/cached-module.ts';
import {
  CACHED_PLATFORM_CONFIGS,
  type CachedPlatformConfig,
} from '../../../../../src/platform/catalog/platform-config/platform-config.ts';
import { CatalogAccess } from '../../../../../src/platform/catalog/serve/catalog-access.ts';
import { resolveApp } from '../../../../../src/platform/catalog/serve/resolve-app.ts';
import type { TokenVerdict } from '../../../../../src/reconcile/token-access.ts';
import { servedApp } from '../../../../../src/server/feed-server.ts';
import { FakeClock } from '../../../../support/fake-clock.ts';
import { FakeInformer } from '../../../../support/fake-informer.ts';

const TOKEN_OF_APP = 'a'.repeat(32);

async function world({ verdict = 'Allowed' as TokenVerdict, isReady = true } = {}) {
  const clock = new FakeClock();
  const modules = new FakeInformer<CachedModule>(clock, CACHED_MODULES.project as never, CACHED_MODULES.indexers);
  const pods = new FakeInformer<CatalogPod>(clock, CATALOG_PODS.project as never, CATALOG_PODS.indexers);
  const configs = new FakeInformer<CachedPlatformConfig>(clock, CACHED_PLATFORM_CONFIGS.project as never);
  const asked: unknown[] = [];
  const metrics = createMetrics();
  const access = new CatalogAccess({
    tokens: { namesOf: (token) => (token === TOKEN_OF_APP ? new Set(['t1.Shop']) : undefined) },
    users: {
      of: async ({ token }, attributes) => {
        asked.push([token, attributes]);
        return verdict;
      },
    },
  });
  const listener = resolveApp({ modules, pods, configs, access, metrics, logger: silentLogger });
  const server = createServer(servedApp([{ path: '/resolve', listener, isReady: () => isReady }]));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const get = async (path: string, { token = 'user', method = 'GET' } = {}) => {
    const headers: Record<string, string> = token === '' ? {} : { authorization: `Bearer ${token}` };
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers });
    return { status: answer.status, text: await answer.text(), headers: answer.headers };
  };
  return { clock, modules, pods, configs, get, asked, metrics, port };
}

const PATH = '/resolve/t1/Shop.cart.http';
const LABELS = {
  'virtual-kubelet.koupleless.io/component': 'module',
  'platform.koupleless.io/app': 'Shop',
  'module.koupleless.io/name': 'cart',
};

async function filled(options: Parameters<typeof world>[0] = {}) {
  const found = await world(options);
  const of = (name: string) => ({ name, namespace: 't1', uid: name, resourceVersion: '1' });
  const spec = { app: 'Shop', module: 'cart', base: { name: 'base' }, ports: [{ name: 'http', port: 8080 }] };
  found.modules.deliver({ type: 'PUT', object: { metadata: of('shop-cart'), spec } as never });
  const conditions = [{ type: 'Ready', status: 'True' }];
  const pod = { metadata: { ...of('p'), labels: LABELS }, spec: {}, status: { podIP: '10.0.0.1', conditions } };
  found.pods.deliver({ type: 'PUT', object: pod as never });
  const upChain = { default: [{ host: 'old.example.com', port: 9000 }] };
  found.configs.deliver({ type: 'PUT', object: { metadata: of('platform'), spec: { upChain } } as never });
  return found;
}

describe('/resolve', () => {
  it('answers from the caches', async () => {
    const { get, metrics } = await filled();
    const { status, text: body, headers } = await get(PATH);
    expect([status, JSON.parse(body)]).toEqual([
      200,
      {
        name: 'Shop.cart.http',
        source: 'Module',
        endpoints: [{ host: '10.0.0.1', port: 8080, protocol: 'TCP', timeoutMs: 6_000 }],
      },
    ]);
    expect(headers.get('cache-control')).toBe('private, no-cache');
    expect(JSON.parse((await get('/resolve/t1/tars.config.Obj')).text)).toMatchObject({ source: 'Default' });
    // The name of an application counts as it is written, although two spellings would be one Module.
    expect(JSON.parse((await get('/resolve/t1/shop.cart.http')).text)).toMatchObject({ source: 'Default' });
    expect((await get('/resolve/t2/Shop.cart.http')).status).toBe(404);
    const counts = (await metrics.catalogRequests.get()).values.map(({ labels, value }) => [labels.code, value]);
    expect(counts).toEqual([
      ['200', 3],
      ['404', 1],
    ]);
  });

  it('is for whoever may get Modules in the namespace', async () => {
    const { get, asked } = await filled();
    await get(PATH);
    const attributes = { group: 'platform.koupleless.io', version: 'v1alpha1', resource: 'modules', verb: 'get' };
    expect(asked).toEqual([['user', { ...attributes, namespace: 't1' }]]);
  });

  it('is for the applications of the namespace that have a token', async () => {
    const { get, asked } = await filled();
    expect((await get(PATH, { token: TOKEN_OF_APP })).status).toBe(200);
    expect((await get('/resolve/t2/Shop.cart.http', { token: TOKEN_OF_APP })).status).toBe(403);
    expect(asked).toEqual([]);
  });

  it.each([
    ['Unauthenticated', 401],
    ['Forbidden', 403],
    ['Busy', 429],
    ['Unknown', 503],
  ] as const)('answers %s with %i', async (verdict, status) => {
    const { get } = await filled({ verdict });
    expect((await get(PATH)).status).toBe(status);
  });

  it('needs a token', async () => {
    const { get } = await filled();
    const { status, headers } = await get(PATH, { token: '' });
    expect([status, headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
  });

  it.each(['/resolve', '/resolve/t1', '/resolve/t1/', '/resolve/T1/a.b.c', '/resolve/t1/a%00b', '/resolve/t1/a/b'])(
    'refuses the path %s',
    async (path) => {
      const { get, asked } = await filled();
      const { status, text: body } = await get(path);
      expect([[400, 404].includes(status), body]).toEqual([
        true,
        'the path must have the form /resolve/{namespace}/{app}.{module}.{port}\n',
      ]);
      expect(asked).toEqual([]);
    },
  );

  it('only reads', async () => {
    const { get } = await filled();
    const { status, headers } = await get(PATH, { method: 'DELETE' });
    expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    expect((await get(PATH, { method: 'HEAD' })).status).toBe(200);
  });

  it('says nothing on the strength of caches that are not whole, or have lost their watch', async () => {
    expect((await (await filled({ isReady: false })).get(PATH)).status).toBe(503);
    const { get, pods } = await filled();
    pods.eventAgeMs = 150_001;
    const { status, headers } = await get(PATH);
    expect([status, headers.get('retry-after')]).toEqual([503, '1']);
  });

  it('keeps nothing for a client that does not wait for its answers', async () => {
    const { port } = await filled();
    const socket = connect(port, '127.0.0.1');
    const ask = `GET ${PATH} HTTP/1.1\r\nHost: feed\r\nAuthorization: Bearer user\r\n`;
    socket.write(`${ask}\r\n${ask}\r\n${ask}Connection: close\r\n\r\n`);
    const statuses = [...(await text(socket)).matchAll(/HTTP\/1.1 (\d+)/g)].map(([, status]) => status);
    expect(statuses).toEqual(['200', '400', '400']);
  });

  it('leaves other paths to others', async () => {
    const { get } = await filled();
    expect(await get('/other')).toMatchObject({ status: 404, text: 'only /resolve is served\n' });
    expect((await get('/resolver')).status).toBe(404);
  });
});
