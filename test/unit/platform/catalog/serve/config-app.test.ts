import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ControllerError } from '../../../../../src/errors.ts';
import { silentLogger } from '../../../../../src/logger.ts';
import { createMetrics } from '../../../../../src/metrics.ts';
import {
  CACHED_MODULE_CONFIGS,
  type CachedModuleConfig,
} from '../../../../../src/platform/catalog/config/cached-module-config.ts';
import type { ModuleConfigSpec } from '../../../../../src/platform/catalog/config/module-config.ts';
import { digestOf, type StoredContent } from '../../../../../src/platform/catalog/config/version.ts';
import { CACHED_MODULES, type CachedModule } from '../../../../../src/platform/catalog/module/cached-module.ts';
import { CatalogAccess } from '../../../../../src/platform/catalog/serve/catalog-access.ts';
import { configApp } from '../../../../../src/platform/catalog/serve/config-app.ts';
import type { TokenVerdict } from '../../../../../src/reconcile/token-access.ts';
import { servedApp } from '../../../../../src/server/feed-server.ts';
import { FakeClock } from '../../../../support/fake-clock.ts';
import { FakeInformer } from '../../../../support/fake-informer.ts';

const TOKEN_OF_SHOP = 's'.repeat(32);
const TOKEN_OF_OTHER = 'o'.repeat(32);
const TOKENS = new Map([
  [TOKEN_OF_SHOP, new Set(['t1.Shop'])],
  [TOKEN_OF_OTHER, new Set(['t2.Shop', 't1.Other'])],
]);

interface Config extends Partial<Omit<ModuleConfigSpec, 'content'>> {
  readonly namespace?: string;
  readonly name: string;
  /** Contents by the id of their version, the one in force in front. */
  readonly versions: Readonly<Record<string, string | StoredContent>>;
  readonly isActive?: boolean;
}

function wholeOf(content: string | StoredContent): StoredContent {
  return typeof content === 'string' ? { content, instances: {} } : content;
}

async function world(configs: readonly Config[], { verdict = 'Allowed' as TokenVerdict } = {}) {
  const clock = new FakeClock();
  const informer = new FakeInformer<CachedModuleConfig>(
    clock,
    CACHED_MODULE_CONFIGS.project as never,
    CACHED_MODULE_CONFIGS.indexers,
  );
  const contents = new Map<string, StoredContent>();
  for (const { namespace = 't1', name, versions, isActive = true, ...spec } of configs) {
    const all = Object.entries(versions).map(([id, content]) => {
      const digest = digestOf({ ...wholeOf(content), parents: [] });
      contents.set(digest, wholeOf(content));
      return { id, digest };
    });
    const object = {
      metadata: { namespace, name, uid: `${namespace}/${name}`, resourceVersion: '1' },
      spec: {
        target: { kind: 'Module', app: 'Shop', name: 'cart' },
        file: 'application.yaml',
        format: 'yaml',
        ...spec,
      },
      status: { versions: all, activeVersion: isActive ? all[0]?.id : undefined },
    };
    informer.deliver({ type: 'PUT', object: object as never });
  }
  const modules = new FakeInformer<CachedModule>(clock, CACHED_MODULES.project as never, CACHED_MODULES.indexers);
  let reads = 0;
  const metrics = createMetrics();
  const asked: unknown[] = [];
  const listener = configApp({
    configs: informer,
    modules,
    contents: {
      contentOf: async (_config, { digest }) => {
        reads += 1;
        const found = contents.get(digest);
        if (found === undefined) throw new ControllerError('Catalog.ContentLost', 'configs: the content was deleted');
        return found;
      },
    },
    access: new CatalogAccess({
      tokens: { namesOf: (token) => TOKENS.get(token) },
      users: {
        of: async (_caller, attributes) => {
          asked.push(attributes);
          return verdict;
        },
      },
    }),
    metrics,
    logger: silentLogger,
  });
  const server = createServer(servedApp([{ path: '/config', listener, isReady: () => true }]));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const get = async (path: string, { token = 'user', method = 'GET', etag = '' } = {}) => {
    const headers = { authorization: `Bearer ${token}`, ...(etag !== '' && { 'if-none-match': etag }) };
    const answer = await fetch(`http://127.0.0.1:${port}/config/${path}`, { method, headers });
    return { status: answer.status, text: await answer.text(), headers: answer.headers };
  };
  const sources = async (path: string, options: Parameters<typeof get>[1] = {}) => {
    const { status, text } = await get(path, options);
    if (status !== 200) return [status, text];
    const { propertySources } = JSON.parse(text) as {
      propertySources: { name: string; source: Record<string, unknown> }[];
    };
    return propertySources.map(({ name, source }) => [name, source]);
  };
  return { informer, modules, contents, get, sources, asked, metrics, reads: () => reads };
}

const V1 = '20261101120000-00000001';
const V2 = '20261102120000-00000002';
const V3 = '20261103120000-00000003';
const DB: Config = { name: 'shop-db', versions: { [V2]: 'db: {pool: 20, hosts: [a, b]}', [V1]: 'db: {pool: 10}' } };

describe('/config', () => {
  it('answers in the form of Spring Cloud Config, with the version in force or with the one that is asked for', async () => {
    const { get, sources, metrics } = await world([DB]);
    const { status, text, headers } = await get('t1/shop-db/default');
    expect([status, headers.get('content-type'), headers.get('cache-control'), JSON.parse(text)]).toEqual([
      200,
      'application/json; charset=utf-8',
      'private, no-cache',
      {
        name: 'shop-db',
        profiles: ['default'],
        label: null,
        version: V2,
        state: null,
        propertySources: [
          {
            name: `t1/shop-db/application.yaml@${V2}`,
            source: { 'db.pool': 20, 'db.hosts[0]': 'a', 'db.hosts[1]': 'b' },
          },
        ],
      },
    ]);
    expect(await sources(`t1/shop-db/default/${V1}`)).toEqual([
      [`t1/shop-db/application.yaml@${V1}`, { 'db.pool': 10 }],
    ]);
    expect((await metrics.catalogRequests.get()).values.map(({ labels, value }) => [labels, value])).toEqual([
      [{ path: '/config', code: '200' }, 2],
    ]);
  });

  it('has several files at once, of which the later win, each in its version', async () => {
    const { sources } = await world([
      DB,
      { name: 'ui', file: 'ui.json', format: 'json', versions: { [V3]: '{"a": 1}' } },
    ]);
    const ui = [`t1/ui/ui.json@${V3}`, { a: 1 }];
    const db = [`t1/shop-db/application.yaml@${V1}`, { 'db.pool': 10 }];
    expect(await sources(`t1/shop-db,ui/default/${V1}.${V3}`)).toEqual([ui, db]);
    expect(await sources(`t1/ui,shop-db/default/${V1}`)).toEqual([db, ui]);
  });

  it('has the files of a Module by its name: those of its application, and then its own', async () => {
    const { sources } = await world([
      { name: 'z-app', target: { kind: 'Module', app: 'Shop' }, versions: { [V1]: 'a: 1' } },
      { name: 'cart', versions: { [V1]: 'a: 2' } },
      { name: 'stock', target: { kind: 'Module', app: 'Shop', name: 'stock' }, versions: { [V1]: 'a: 3' } },
      { name: 'logs', file: 'logback.xml', format: 'xml', versions: { [V1]: '<a/>' } },
      { name: 'waits', versions: { [V1]: 'a: 4' }, isActive: false },
      { name: 'other', target: { kind: 'Module', app: 'Other' }, versions: { [V1]: 'a: 5' } },
      { name: 'base', target: { kind: 'Template' }, versions: { [V1]: 'a: 6' } },
    ]);
    const nameOf = (found: unknown[]) => found.map((one) => (Array.isArray(one) ? one[0] : one));
    expect(nameOf(await sources('t1/shop-cart/default'))).toEqual([
      `t1/cart/application.yaml@${V1}`,
      `t1/z-app/application.yaml@${V1}`,
    ]);
    expect(nameOf(await sources('t1/Shop/default'))).toEqual([`t1/z-app/application.yaml@${V1}`]);
    expect(await sources('t1/waits/default')).toEqual([404, 'no version of ModuleConfig waits is active yet\n']);
  });

  it('has what a Module runs with by its name, whatever is active since', async () => {
    const { sources, modules } = await world([
      DB,
      { name: 'a-later', versions: { [V1]: 'a: 1' } },
      { name: 'list', versions: { [V1]: '- a' } },
    ]);
    const nameOf = (found: unknown[]) => found.map((one) => (Array.isArray(one) ? one[0] : one));
    let version = 0;
    const deliver = (configs: object[] | undefined) =>
      modules.deliver({
        type: 'PUT',
        object: {
          metadata: { namespace: 't1', name: 'shop-cart', uid: 'm', resourceVersion: String(++version) },
          spec: { app: 'Shop', module: 'cart' },
          status: { release: { configs } },
        } as never,
      });
    const files = [`t1/shop-db/application.yaml@${V2}`, `t1/a-later/application.yaml@${V1}`];
    deliver(undefined);
    expect(nameOf(await sources('t1/shop-cart/default'))).toEqual(files);
    deliver([{ name: 'shop-db', version: V1 }]);
    expect(nameOf(await sources('t1/shop-cart/default'))).toEqual([`t1/shop-db/application.yaml@${V1}`]);
    expect(nameOf(await sources(`t1/shop-cart/default/${V2}`))).toEqual([`t1/shop-db/application.yaml@${V2}`]);
    expect(await sources('t1/list/default')).toEqual([
      404,
      'ModuleConfig list: the file must have keys at its top, no list and no single value\n',
    ]);
  });

  it('has the parts of instances over the files, by the profiles, of which the later win', async () => {
    const stored = { content: 'a: 1', instances: { b1: 'a: 2', b2: 'a: 3', constructor: 'a: 4' } };
    const { sources } = await world([{ name: 'one', versions: { [V1]: stored } }]);
    const name = `t1/one/application.yaml@${V1}`;
    expect(await sources('t1/one/b1,b2')).toEqual([
      [`${name}#b2`, { a: 3 }],
      [`${name}#b1`, { a: 2 }],
      [name, { a: 1 }],
    ]);
    expect(await sources('t1/one/b3')).toEqual([[name, { a: 1 }]]);
    expect(await sources('t1/one/toString')).toEqual([[name, { a: 1 }]]);
    expect((await sources('t1/one/constructor'))[0]).toEqual([`${name}#constructor`, { a: 4 }]);
  });

  it('keeps keys that every object has, and keys that look like numbers, in their order', async () => {
    const { get } = await world([{ name: 'one', versions: { [V1]: 'b: 1\n__proto__: 2\n1: 3' } }]);
    expect((await get('t1/one/default')).text).toContain('"source":{"b":1,"__proto__":2,"[1]":3}}]}');
  });

  it('has a file as it is, with the parts of instances', async () => {
    const text = { content: 'first', instances: { b1: 'second' } };
    const yaml = { content: 'a: 1\nb: 1 # one\n', instances: { b1: 'b: 2' } };
    const { get } = await world([
      { name: 'motd', file: 'motd', format: 'text', versions: { [V1]: text } },
      { name: 'logs', file: 'logback.xml', format: 'xml', versions: { [V1]: '<a>é</a>' } },
      { name: 'db', versions: { [V1]: yaml } },
    ]);
    const xml = await get(`t1/logs/default/${V1}/logback.xml`);
    expect([xml.text, xml.headers.get('content-type'), xml.headers.get('x-content-type-options')]).toEqual([
      '<a>é</a>',
      'application/xml; charset=utf-8',
      'nosniff',
    ]);
    expect((await get('t1/motd/default/motd?useDefaultLabel')).text).toBe('first');
    expect((await get(`t1/motd/b1/${V1}/motd`)).text).toBe('first\r\n\r\nsecond');
    expect((await get(`t1/db/default/${V1}/application.yaml`)).text).toBe(yaml.content);
    expect((await get(`t1/db/b1/${V1}/application.yaml`)).text).toBe('a: 1\nb: 2\n');
    expect(await get(`t1/db,motd/b1/${V1}/none`)).toMatchObject({
      status: 404,
      text: 'there is no file none: there are application.yaml, motd\n',
    });
    const fault = `ModuleConfig logs: a file of the format xml has no properties: use yaml, properties, json, or read the file: …/{version}/logback.xml\n`;
    expect(await get('t1/logs/default')).toMatchObject({ status: 404, text: fault });
  });

  it('reads no content for a client that has the answer already', async () => {
    const { get, reads, informer } = await world([DB]);
    const etag = (await get('t1/shop-db/default')).headers.get('etag') ?? '';
    const again = await get('t1/shop-db/default', { etag });
    expect([again.status, again.text, again.headers.get('etag'), reads()]).toEqual([304, '', etag, 1]);
    expect((await get('t1/shop-db/default', { etag: `"other", W/${etag}` })).status).toBe(304);
    for (const path of [`t1/shop-db/default/${V1}`, 't1/shop-db/b1', `t1/shop-db/default/${V2}/application.yaml`]) {
      expect((await get(path, { etag })).status).toBe(200);
    }
    const { status } = informer.get('t1/shop-db') as CachedModuleConfig;
    informer.deliver({
      type: 'PUT',
      object: {
        metadata: { namespace: 't1', name: 'shop-db', uid: 't1/shop-db', resourceVersion: '2' },
        spec: { target: { kind: 'Module', app: 'Shop' }, file: 'application.yaml', format: 'yaml' },
        status: { ...status, activeVersion: V1 },
      } as never,
    });
    expect((await get('t1/shop-db/default', { etag })).status).toBe(200);
  });

  it('is for whoever may get ModuleConfigs in the namespace', async () => {
    const { get, asked } = await world([DB]);
    await get('t1/shop-db/default');
    const attributes = { group: 'platform.koupleless.io', version: 'v1alpha1', resource: 'moduleconfigs', verb: 'get' };
    expect(asked).toEqual([{ ...attributes, namespace: 't1' }]);
  });

  it.each([
    ['Unauthenticated', 401],
    ['Forbidden', 403],
    ['Busy', 429],
    ['Unknown', 503],
  ] as const)('answers %s with %i, whether there is the file or not', async (verdict, status) => {
    const { get } = await world([DB], { verdict });
    expect((await get('t1/shop-db/default')).status).toBe(status);
    expect((await get('t1/none/default')).status).toBe(status);
  });

  it('shows an application of the namespace its own files, and not that there are others', async () => {
    const { get, sources } = await world([
      DB,
      { name: 'secret-plan', target: { kind: 'Module', app: 'Other' }, versions: { [V1]: 'a: 1' } },
      { name: 'base', target: { kind: 'Template' }, versions: { [V1]: 'a: 1' } },
      { ...DB, namespace: 't2' },
    ]);
    expect(await sources('t1/shop-db/default', { token: TOKEN_OF_SHOP })).toHaveLength(1);
    for (const name of ['secret-plan', 'base', 'Other', 'none']) {
      expect(await get(`t1/${name}/default`, { token: TOKEN_OF_SHOP })).toMatchObject({
        status: 404,
        text: `${name} is no ModuleConfig, and no Module or application with one; there are shop-db\n`,
      });
    }
    expect((await get('t2/shop-db/default', { token: TOKEN_OF_SHOP })).status).toBe(403);
    expect((await get('t1/shop-db/default', { token: TOKEN_OF_OTHER })).status).toBe(404);
    expect((await get('t2/shop-db/default', { token: TOKEN_OF_OTHER })).status).toBe(200);
  });

  it.each([
    ['t1', 404],
    ['t1/shop-db', 404],
    ['T1/shop-db/default', 400],
    ['t1/shop-db/a%00b', 400],
    ['t1/shop-db/%zz', 400],
    ['t1/shop-db/a%2Fb', 400],
    ['t1/..%2F..%2Fx/default', 400],
    ['t1/shop-db/default/main', 400],
    [`t1/${'a,'.repeat(16)}a/default`, 400],
    [`t1/shop-db/default/${V1}/application.yaml/more`, 404],
    [`t1/shop-db/default/${V3}`, 404],
  ])('refuses the path %s with %i', async (path, status) => {
    const { get, reads } = await world([DB]);
    const answer = await get(path);
    expect([answer.status, answer.headers.get('content-type'), reads()]).toEqual([
      status,
      'text/plain; charset=utf-8',
      0,
    ]);
    expect(answer.text).not.toMatch(/\n +at /);
  });

  it('says which versions there are', async () => {
    const { get } = await world([DB]);
    expect((await get(`t1/shop-db/default/${V3}`)).text).toBe(`shop-db has no version ${V3}; there are ${V1}, ${V2}\n`);
  });

  it('says that a content cannot be read now', async () => {
    const { get, contents } = await world([DB]);
    contents.clear();
    expect(await get('t1/shop-db/default')).toMatchObject({ status: 503, text: 'configs: the content was deleted\n' });
    const { get: ask, informer } = await world([DB]);
    informer.eventAgeMs = 150_001;
    expect((await ask('t1/shop-db/default')).status).toBe(503);
  });

  it('only reads', async () => {
    const { get } = await world([DB]);
    const { status, headers } = await get('t1/shop-db/default', { method: 'POST' });
    expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    expect((await get('t1/shop-db/default', { method: 'HEAD' })).status).toBe(200);
  });
});
