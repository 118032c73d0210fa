import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient, KubeObject } from '../../samples/control-plane/api-client.ts';
import { messageOf } from '../../src/errors.ts';
import { eventually } from '../support/eventually.ts';
import {
  FILE_PREFIX,
  FOREIGN_ADDRESSES,
  HONEST_ADDRESSES,
  isAllowedBelow,
  PREFIX,
  randomAddress,
  staysBelow,
} from '../support/image-addresses.ts';
import { modulePod } from '../support/manifests.ts';
import { Platform } from '../support/platform.ts';
import { startWorld } from '../support/start-world.ts';
import { createTenant, TENANT_NAMESPACE } from '../support/tenant.ts';
import type { World } from '../support/world.ts';

const PREFIXES = [PREFIX, FILE_PREFIX];
const RANDOM_ADDRESSES = 600;
const AT_A_TIME = 20;
const JAVA_PROGRAM = fileURLToPath(new URL('UrlParts.java', import.meta.url));

let world: World;
let tenant: ApiClient;

beforeAll(async () => {
  world = await startWorld();
  const platform = await Platform.install(world);
  await platform.installPolicies();
  tenant = await createTenant(world.controlPlane);
  await eventually(() => world.admin.get(`/api/v1/namespaces/${TENANT_NAMESPACE}/serviceaccounts/default`));
  await world.controlPlane.apply({
    apiVersion: 'platform.koupleless.io/v1alpha1',
    kind: 'ModuleTenancy',
    metadata: { name: 'limits', namespace: TENANT_NAMESPACE },
    spec: { imagePrefixes: PREFIXES },
  } as KubeObject);
  await eventually(async () => expect(await answerTo(`${PREFIX}../x.jar`)).toContain('may have jars from'));
});

afterAll(() => world?.stop());

/** What the API server says to a Pod with this image; it stores nothing. */
function answerTo(image: string, namespace = TENANT_NAMESPACE): Promise<string> {
  const pod = modulePod('jar', [{ name: 'shop', image }]);
  const client = namespace === TENANT_NAMESPACE ? tenant : world.admin;
  const object = { ...pod, metadata: { ...pod.metadata, namespace } };
  return client.post(`/api/v1/namespaces/${namespace}/pods?dryRun=All`, object).then(() => 'accepted', messageOf);
}

/** Addresses that the API server accepts. Each other one is refused because of its image. */
async function acceptedOf(addresses: readonly string[]): Promise<string[]> {
  const accepted: string[] = [];
  for (let start = 0; start < addresses.length; start += AT_A_TIME) {
    const some = addresses.slice(start, start + AT_A_TIME);
    const answers = await Promise.all(some.map((address) => answerTo(address)));
    for (const [index, answer] of answers.entries()) {
      if (answer === 'accepted') accepted.push(some[index] ?? '');
      else expect(answer).toMatch(/spec\.containers\[(shop|0)\]\.image: /);
    }
  }
  return accepted;
}

/** How the JVM of this machine understands addresses: see UrlParts.java. */
function javaPartsOf(addresses: readonly string[]): string[][] {
  const input = addresses.map((address) => Buffer.from(address).toString('base64')).join('\n');
  const { stdout, stderr, status } = spawnSync('java', [JAVA_PROGRAM], { input, encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
  const lines = stdout.trim().split('\n');
  return lines.map((line) => Buffer.from(line, 'base64').toString('utf8').split('\t'));
}

describe('a tenant whose jars come from some prefixes', () => {
  it('cannot name the jar of somebody else below them', async () => {
    expect(await acceptedOf(FOREIGN_ADDRESSES)).toEqual([]);
  });

  it('cannot find an address that the API server takes and a parser of URLs takes for another one', async () => {
    const addresses = fc.sample(randomAddress, RANDOM_ADDRESSES);
    const accepted = await acceptedOf(addresses);
    expect(accepted.length).toBeGreaterThan(15);
    // The rule that other tests read from the manifest is the one that the API server follows.
    expect(accepted).toEqual(addresses.filter((address) => isAllowedBelow(PREFIXES, address)));
    const parts = javaPartsOf(accepted);
    for (const [index, address] of accepted.entries()) {
      const prefix = PREFIXES.find((one) => address.startsWith(one)) ?? '';
      const { protocol, host } = new URL(prefix);
      const [path = ''] = address.slice(`${protocol}//${host}`.length).split('?');
      const scheme = protocol.slice(0, -1);
      expect([address, ...(parts[index] ?? [])]).toEqual([
        address,
        ...[scheme, host === '' ? 'null' : host, path],
        ...[scheme, host, path],
      ]);
      expect([address, staysBelow(prefix, address)]).toEqual([address, true]);
    }
  });

  it('has its own jars, with versions, folders and signed addresses', async () => {
    expect(await acceptedOf(HONEST_ADDRESSES)).toEqual(HONEST_ADDRESSES);
    const parts = javaPartsOf(HONEST_ADDRESSES);
    expect(parts.map((one) => one.length)).toEqual(HONEST_ADDRESSES.map(() => 6));
  });
});

it('an address without a host, or with control characters, is refused in every namespace', async () => {
  const addresses = ['https:///a.jar', 'https://a.jar', 'https:/a/b.jar', 'file://a.jar', `${PREFIX}a\tb.jar`];
  for (const address of addresses)
    expect([address, await answerTo(address, 'default')]).toEqual([
      address,
      expect.stringContaining('must be the address of a jar'),
    ]);
  for (const address of [
    ...HONEST_ADDRESSES,
    'http://[::1]:8080/a.jar#x',
    'https://me:secret@jars.example.com/%7Ea.jar',
  ])
    expect([address, await answerTo(address, 'default')]).toEqual([address, 'accepted']);
});
