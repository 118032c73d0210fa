import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ApiClient, KubeObject } from '../../samples/control-plane/api-client.ts';
import { messageOf } from '../../src/errors.ts';
import { exportSettingsOf } from '../../src/platform/export/exported-service.ts';
import { eventually } from '../support/eventually.ts';
import { Platform } from '../support/platform.ts';
import { startWorld } from '../support/start-world.ts';
import { createTenant, TENANT_NAMESPACE } from '../support/tenant.ts';
import type { World } from '../support/world.ts';

const SERVICES = `/api/v1/namespaces/${TENANT_NAMESPACE}/services`;
const TENANCIES = `/apis/platform.koupleless.io/v1alpha1/namespaces/${TENANT_NAMESPACE}/moduletenancies`;
const PORTS = 'platform.koupleless.io/export-ports';
const HOSTS = ['a.example.com'];
const RANDOM_SERVICES = 400;
const AT_A_TIME = 20;

interface Port {
  readonly name?: string;
  readonly port: number;
  readonly protocol?: string;
  readonly appProtocol?: string;
}

let world: World;
let tenant: ApiClient;

/** The platform is away: only the API server itself judges. */
beforeAll(async () => {
  world = await startWorld();
  const platform = await Platform.install(world);
  await platform.installPolicies();
  tenant = await createTenant(world.controlPlane);
});

afterAll(() => world?.stop());

function service(ports: readonly Port[], described?: string): KubeObject {
  const annotations = described === undefined ? {} : { [PORTS]: described };
  const metadata = { name: 'biz', namespace: TENANT_NAMESPACE, labels: { BCSGROUP: 'external' }, annotations };
  return { apiVersion: 'v1', kind: 'Service', metadata, spec: { selector: { app: 'biz' }, ports } };
}

function answerTo(object: KubeObject): Promise<string> {
  return tenant.post(`${SERVICES}?dryRun=All`, object).then(() => 'accepted', messageOf);
}

/** `probe` is refused as soon as the API server has read the limits. */
async function limit(spec: object, probe: Port): Promise<void> {
  const metadata = { name: 'limits', namespace: TENANT_NAMESPACE };
  await world.admin.delete(`${TENANCIES}/limits`).catch(() => {});
  await eventually(async () => expect(await answerTo(service([probe]))).toBe('accepted'));
  const tenancy = { apiVersion: 'platform.koupleless.io/v1alpha1', kind: 'ModuleTenancy', metadata, spec };
  await world.controlPlane.apply(tenancy as KubeObject);
  await eventually(async () => expect(await answerTo(service([probe]))).toContain('this namespace may export'));
}

const TCP = { port: 443 };
const WEB = { name: 'web', port: 443, appProtocol: 'https' };
const HOST = '"domainName": "a.example.com"';

describe('a tenant with limited host names', () => {
  beforeEach(() => limit({ exportHosts: HOSTS }, TCP));

  it.each<[string, readonly Port[], string | undefined]>([
    ['without a word', [TCP], undefined],
    ['as UDP', [{ ...TCP, protocol: 'UDP' }], undefined],
    ['beside a port with a host', [WEB, { ...TCP, name: 'x', protocol: 'UDP' }], `{"web": {${HOST}}}`],
    ['by its protocol', [WEB], '{"web": {"protocol": "tcp"}}'],
    ['by the last of two protocols', [WEB], '{"web": {"protocol": "http", "protocol": "tcp"}}'],
    ['by the last of two ports', [WEB], '{"web": {"protocol": "http"}, "web": {"protocol": "udp"}}'],
    ['by an empty repetition', [WEB], `{"web": {${HOST}, "protocol": "https"}, "web": {}}`],
    ['by a repetition before it', [WEB], `{"web": {"protocol": "tcp"}, "web": {${HOST}, "protocol": "https"}}`],
    ['by the name of another port', [{ name: 'x', port: 443 }], `{"web": {${HOST}, "protocol": "https"}}`],
    ['by its number', [WEB], '{"443": {"protocol": "https"}, "web": {"protocol": "tcp"}}'],
    ['by an unknown appProtocol', [{ ...WEB, appProtocol: 'example.com/https' }], `{"web": {${HOST}}}`],
    ['behind a brace', [WEB], '{"web": {"path": "/}", "protocol": "tcp"}}'],
    ['by escapes', [WEB], '{"web": {"proto\\u0063ol": "tcp"}}'],
    ['by an escaped name', [WEB], '{"we\\u0062": {"protocol": "tcp"}}'],
    ['by what is no JSON', [{ name: 'x', port: 443 }], `{"x": {${HOST}, "protocol": "https"}`],
    ['by a comma too many', [{ name: 'x', port: 443 }], `{"x": {${HOST}, "protocol": "https",}}`],
    ['by spaces that are none in JSON', [{ name: 'x', port: 443 }], `{"x":\f{${HOST}, "protocol": "https"}}`],
    ['in a list', [{ name: 'x', port: 443 }], `[{"x": {${HOST}, "protocol": "https"}}]`],
  ])('takes no TCP port: %s', async (_, ports, described) => {
    expect(await answerTo(service(ports, described))).toMatch(
      /spec.ports: port 443 counts as TCP or UDP, and this namespace may export no such port|must be JSON/,
    );
  });

  it('exports web ports', async () => {
    for (const object of [
      service([WEB], `{"web": {${HOST}, "path": "/shop"}}`),
      service([{ port: 80, appProtocol: 'http' }], ` {\n\t"80" : {${HOST}}\r\n} `),
      service([{ name: 'x', port: 80 }], `{"x": {"protocol": "http", ${HOST}}}`),
      service([{ name: 'grpc', port: 80, appProtocol: 'kubernetes.io/h2c' }], `{"grpc": {${HOST}}}`),
      service([WEB, { name: 'b', port: 80 }], `{"web": {${HOST}}, "b": {${HOST}, "protocol": "https"}}`),
      service([WEB]),
      service([WEB], '{}'),
    ]) {
      expect([object.metadata.annotations, await answerTo(object)]).toEqual([object.metadata.annotations, 'accepted']);
    }
  });

  it('finds no Service that the API server takes and the controller exports as TCP', async () => {
    const json = fc.constantFrom('"', '{', '}', ':', ',', ' ', '\n', '\f', '\\', '[', ']', 'null', '1');
    const word = fc.constantFrom('"web"', '"x"', '"443"', '"protocol"', '"tcp"', '"http"', '"path"', '"/"', `${HOST}`);
    const pair = fc
      .tuple(fc.constantFrom('protocol', 'domainName', 'path'), fc.constantFrom('tcp', 'udp', 'http', 'https', '/'))
      .map(([key, value]) => `"${key}": "${value}"`);
    const entry = fc
      .tuple(fc.constantFrom('web', 'x', '443', ''), fc.array(pair, { maxLength: 3 }))
      .map(([name, pairs]) => `"${name}":{${pairs.join(',')}}`);
    const well = fc.array(entry, { maxLength: 3 }).map((entries) => `{${entries.join(', ')}}`);
    const broken = fc
      .tuple(well, fc.nat(80), fc.oneof(json, word))
      .map(([text, at, piece]) => text.slice(0, at) + piece + text.slice(at));
    const port = fc.record(
      {
        name: fc.constantFrom('web', 'x'),
        port: fc.constantFrom(443, 80),
        appProtocol: fc.constantFrom(
          'http',
          'https',
          'tcp',
          'kubernetes.io/h2c',
          'kubernetes.io/ws',
          'kubernetes.io/wss',
        ),
      },
      { requiredKeys: ['name', 'port'] },
    );
    const services = fc
      .record({ one: port, described: fc.oneof(well, broken) })
      .map(({ one, described }) => service([one], described));
    const sample = fc.sample(services, RANDOM_SERVICES);
    let accepted = 0;
    for (let start = 0; start < sample.length; start += AT_A_TIME) {
      const some = sample.slice(start, start + AT_A_TIME);
      const answers = await Promise.all(some.map(answerTo));
      for (const [index, object] of some.entries()) {
        if (answers[index] !== 'accepted') continue;
        accepted++;
        const without = exportSettingsOf(object)?.ports.filter(({ host }) => host === '');
        expect([object.spec.ports, object.metadata.annotations, without]).toEqual([
          object.spec.ports,
          object.metadata.annotations,
          [],
        ]);
      }
    }
    expect(accepted).toBeGreaterThan(20);
  });
});

describe('a tenant with limited ports', () => {
  beforeEach(() => limit({ exportHosts: HOSTS, exportPorts: [5432, '9000-9099', '7000'] }, TCP));

  it.each([443, 5431, 8999, 9100, 7001])('has no TCP port %s', async (port) => {
    expect(await answerTo(service([{ port }]))).toContain(
      `spec.ports: port ${port} counts as TCP or UDP, and this namespace may export only these as TCP or UDP: 5432, 9000-9099, 7000; set`,
    );
  });

  it('has its ports, and those of its hosts', async () => {
    for (const port of [5432, 9000, 9050, 9099, 7000]) expect(await answerTo(service([{ port }]))).toBe('accepted');
    const both = [WEB, { name: 'x', port: 9000, protocol: 'UDP' }];
    expect(await answerTo(service(both, `{"web": {${HOST}}, "x": {"protocol": "udp"}}`))).toBe('accepted');
  });
});

describe('the limits of ports', () => {
  it('hold without those of hosts, which leave TCP alone when nothing is limited', async () => {
    await limit({ exportPorts: [5432] }, TCP);
    expect(await answerTo(service([{ port: 5432 }]))).toBe('accepted');
    expect(await answerTo(service([WEB], '{"web": {"domainName": "any.example.com"}}'))).toBe('accepted');
    await world.controlPlane.apply({
      apiVersion: 'platform.koupleless.io/v1alpha1',
      kind: 'ModuleTenancy',
      metadata: { name: 'limits', namespace: TENANT_NAMESPACE },
      spec: { exportGroups: ['external'] },
    } as KubeObject);
    await eventually(async () => expect(await answerTo(service([TCP]))).toBe('accepted'));
  });

  it.each(['9000-', '0-1', '-1', '100000', '1-100000', '9099-9000', '70000', '9000-70000', 'https', 0, 65_536])(
    'cannot be %s',
    async (port) => {
      const head = { apiVersion: 'platform.koupleless.io/v1alpha1', kind: 'ModuleTenancy' };
      const tenancy = { ...head, metadata: { name: 'wrong' }, spec: { exportPorts: [port] } };
      await expect(world.admin.post(TENANCIES, tenancy)).rejects.toThrow('spec.exportPorts[0]');
    },
  );
});
