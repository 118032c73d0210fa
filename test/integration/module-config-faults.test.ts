import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import type { PlannedCut } from '../support/api-fault-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { KilledCatalog } from '../support/killed-catalog.ts';
import { Platform } from '../support/platform.ts';
import { startWorld } from '../support/start-world.ts';
import type { World } from '../support/world.ts';

const GROUP = 'platform.koupleless.io/v1alpha1';
const NAMESPACED = `/apis/${GROUP}/namespaces/default`;
const CONFIGS = `${NAMESPACED}/moduleconfigs`;
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
/** The least limit that a PlatformConfig may set. */
const LIMIT = 10;
const CONTENTS = LIMIT + 2;

interface Version {
  readonly id: string;
  readonly digest: string;
}

let world: World;
let platform: Platform;
let catalog: KilledCatalog;

beforeAll(async () => {
  world = await startWorld();
  platform = await Platform.install(world, ['rollout', 'catalog']);
  await platform.optIn();
  // It installs the kind of the workloads that the catalog watches.
  await platform.start('rollout', 'rollout');
  catalog = await KilledCatalog.start(world, platform);
  await world.admin.post(`${NAMESPACED}/platformconfigs`, {
    apiVersion: GROUP,
    kind: 'PlatformConfig',
    metadata: { name: 'platform', namespace: 'default' },
    spec: { recordLimit: { configVersion: LIMIT } },
  });
});

afterEach(() => {
  catalog.proxy.plan = undefined;
});

afterAll(async () => {
  await platform?.stop();
  await catalog?.proxy.stop();
  await world?.stop();
});

/** Until the status is of the present specification, and says that `content` is in force. */
async function untilActive(name: string, content: string): Promise<void> {
  await eventually(async () => {
    const { metadata, status } = await world.admin.get(`${CONFIGS}/${name}`);
    expect(status?.observedGeneration).toBe(metadata.generation);
    const active = status?.versions?.find(({ id }: Version) => id === status.activeVersion);
    expect(await contentOf(name, active)).toBe(content);
  }, 120_000);
}

async function contentOf(name: string, version: Version | undefined): Promise<unknown> {
  if (version === undefined) return undefined;
  const { data } = await world.admin.get(`${CONFIG_MAPS}/${name}-${version.digest.slice(0, 10)}`);
  return data?.content;
}

/** Contents of the versions in the status, and of the ConfigMaps, each sorted. */
async function storedOf(name: string): Promise<{ readonly versions: unknown[]; readonly stored: unknown[] }> {
  const { metadata, status } = await world.admin.get(`${CONFIGS}/${name}`);
  const all = await world.admin.list(CONFIG_MAPS);
  const own = all.filter((one) =>
    one.metadata.ownerReferences?.some(({ uid }: { uid: string }) => uid === metadata.uid),
  );
  const versions = await Promise.all(status.versions.map((one: Version) => contentOf(name, one)));
  return { versions: versions.sort(), stored: own.map(({ data }) => data?.content).sort() };
}

/** Writes contents beyond the limit, goes back, forward again, and is deleted. `at` is called as each step begins. */
async function story(name: string, at: (step: string) => void): Promise<void> {
  const change = (spec: object): Promise<KubeObject> => world.admin.mergePatch(`${CONFIGS}/${name}`, { spec });
  at('first');
  const target = { kind: 'Module', app: 'shop' };
  const spec = { target, file: 'application.yaml', format: 'yaml', content: 'n: 00' };
  const metadata = { name, namespace: 'default' };
  await world.admin.post(CONFIGS, { apiVersion: GROUP, kind: 'ModuleConfig', metadata, spec });
  await untilActive(name, 'n: 00');
  at('next');
  const texts = Array.from({ length: CONTENTS }, (_, index) => `n: ${String(index).padStart(2, '0')}`);
  for (const content of texts.slice(1)) {
    await change({ content });
    await untilActive(name, content);
  }
  const kept = texts.slice(-LIMIT);
  await eventually(async () => expect(await storedOf(name)).toEqual({ versions: kept, stored: kept }), 120_000);
  at('back');
  const { status } = await world.admin.get(`${CONFIGS}/${name}`);
  const former = status.versions[3] as Version;
  const content = await contentOf(name, former);
  await change({ activeVersion: former.id });
  await untilActive(name, String(content));
  at('forward');
  await change({ activeVersion: null });
  await untilActive(name, texts.at(-1) ?? '');
  expect(await storedOf(name)).toEqual({ versions: kept, stored: kept });
  at('delete');
  await world.admin.delete(`${CONFIGS}/${name}`);
  await eventually(async () => {
    const names = [...(await world.admin.list(CONFIGS)), ...(await world.admin.list(CONFIG_MAPS))].map(
      (one) => one.metadata.name,
    );
    expect(names.filter((one) => one === name || one?.startsWith(`${name}-`))).toEqual([]);
  }, 120_000);
}

interface Write {
  /** `PATCH moduleconfigs/status`. */
  readonly what: string;
  /** Name of the ModuleConfig. */
  readonly name: string;
}

/** A write about a ModuleConfig or its versions; undefined for other requests. */
function writeOf(method: string, path: string, body: Buffer): Write | undefined {
  if (method === 'GET') return undefined;
  const found = /\/namespaces\/default\/(moduleconfigs|configmaps)(?:\/([^/?]+))?(?:\/([a-z]+))?(?:\?|$)/.exec(path);
  if (found === null) return undefined;
  const [, plural = '', inPath, subresource] = found;
  const name = inPath ?? (JSON.parse(body.toString()) as KubeObject).metadata.name;
  const what = `${method} ${plural}${subresource === undefined ? '' : `/${subresource}`}`;
  return { what, name: plural === 'configmaps' ? name.replace(/-[0-9a-f]{10}$/, '') : name };
}

const writes = new Set<string>();

describe('a ModuleConfig that is written, taken back and deleted', () => {
  it('makes the writes that the next tests disturb', async () => {
    let step = '';
    catalog.proxy.plan = ({ method, path, body }) => {
      const write = writeOf(method, path, body);
      if (write !== undefined) writes.add(`${step}: ${write.what}`);
      return undefined;
    };
    await story('calm', (next) => {
      step = next;
    });
    expect([...writes].sort()).toEqual([
      'back: PATCH moduleconfigs/status',
      'delete: PATCH moduleconfigs',
      'first: PATCH moduleconfigs',
      'first: PATCH moduleconfigs/status',
      'first: POST configmaps',
      'forward: PATCH moduleconfigs/status',
      'next: DELETE configmaps',
      'next: PATCH moduleconfigs/status',
      'next: POST configmaps',
    ]);
  });

  it.each<[string, string, () => PlannedCut]>([
    ['the answer of any write is lost', 'lost', () => ({ at: 'after' })],
    ['the controller is killed before any write', 'before', () => ({ at: 'before', run: () => catalog.kill() })],
    ['the controller is killed after any write', 'after', () => ({ at: 'after', run: () => catalog.kill() })],
  ])('ends the same when %s', async (_what, prefix, cutOf) => {
    const cuts = [...writes];
    const left = new Map(cuts.map((cut, index) => [`${prefix}${index}`, cut]));
    const steps = new Map<string, string>();
    catalog.proxy.plan = ({ method, path, body }) => {
      const write = writeOf(method, path, body);
      if (write === undefined || left.get(write.name) !== `${steps.get(write.name)}: ${write.what}`) return undefined;
      left.delete(write.name);
      return cutOf();
    };
    const stories = cuts.map((_cut, index) => `${prefix}${index}`);
    await Promise.all(stories.map((name) => story(name, (step) => steps.set(name, step))));
    await catalog.whenStarted();
    expect([...left.values()]).toEqual([]);
  });
});
