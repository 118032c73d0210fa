import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import type { PlannedCut } from '../support/api-fault-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { KilledCatalog } from '../support/killed-catalog.ts';
import { isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { Platform } from '../support/platform.ts';
import { PodSpectator } from '../support/rollouts.ts';
import { startWorld } from '../support/start-world.ts';
import type { World } from '../support/world.ts';

const GROUP = 'platform.koupleless.io/v1alpha1';
const NAMESPACED = `/apis/${GROUP}/namespaces/default`;
const COPIES = 2;
const APP_LABEL = 'platform.koupleless.io/app';

let world: World;
let platform: Platform;
let catalog: KilledCatalog;
let seen: PodSpectator;

beforeAll(async () => {
  world = await startWorld();
  platform = await Platform.install(world, ['rollout', 'catalog']);
  await world.startController();
  await world.startFleet({ count: COPIES, activateNewModule: true });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(COPIES));
  await platform.optIn();
  await platform.start('rollout', 'rollout');
  seen = await PodSpectator.start(world.admin, APP_LABEL);
  catalog = await KilledCatalog.start(world, platform);
});

afterEach(() => {
  catalog.proxy.plan = undefined;
});

afterAll(async () => {
  seen?.stop();
  await platform?.stop();
  await catalog?.proxy.stop();
  await world?.stop();
});

const names = (module: string) => ({ name: `shop-${module}`, path: `${NAMESPACED}/modules/shop-${module}` });
const jarOf = (module: string, version: string): string => `https://jars.example.com/${module}-${version}-ark-biz.jar`;

async function versionsOf(module: string): Promise<(string | undefined)[]> {
  const all = await pods(world.admin, `module.koupleless.io/name=${module}`);
  return all.filter(isReady).map(({ metadata }) => metadata.labels?.['module.koupleless.io/version']);
}

async function until(module: string, release: string, version: string): Promise<void> {
  await eventually(async () => {
    const { status, spec } = await world.admin.get(names(module).path);
    const ready = status?.conditions.find(({ type }: { type: string }) => type === 'Ready');
    expect([ready?.reason, status?.release?.id, spec.rollbackTo]).toEqual(['Released', release, undefined]);
    expect(await versionsOf(module)).toEqual(Array(COPIES).fill(version));
  }, 240_000);
}

/** How it ended: number of Pods ever made, changes of the workload's specification, and what is left. */
interface End {
  /** Version of each Pod that there has been. */
  readonly pods: readonly string[];
  readonly generation: number;
  readonly history: readonly string[];
  readonly left: readonly string[];
}

/** Publishes, releases, rolls back and deletes a Module. `at` is called with the name of each step as it begins. */
async function story(module: string, at: (step: string) => void): Promise<End> {
  const { name, path } = names(module);
  const metadata = { name, namespace: 'default' };
  at('publish');
  const releases = ['1.0.0', '2.0.0'].map((version, index) => ({ id: `r${index + 1}`, image: jarOf(module, version) }));
  await world.admin.post(`${NAMESPACED}/modulereleases`, {
    apiVersion: GROUP,
    kind: 'ModuleRelease',
    metadata,
    spec: { releases },
  });
  const ports = [{ name: 'http', port: 8080 }];
  const spec = {
    app: 'shop',
    module,
    base: { name: 'base' },
    ports,
    deploy: { replicas: COPIES },
    release: { id: 'r1' },
  };
  await world.admin.post(`${NAMESPACED}/modules`, { apiVersion: GROUP, kind: 'Module', metadata, spec });
  await until(module, 'r1', '1.0.0');
  at('release');
  await world.admin.mergePatch(path, { spec: { release: { id: 'r2' } } });
  await until(module, 'r2', '2.0.0');
  at('rollback');
  await world.admin.mergePatch(path, { spec: { rollbackTo: {} } });
  await until(module, 'r1', '1.0.0');
  const workload = await world.admin.get(`${NAMESPACED}/moduledeployments/${name}`);
  const { status } = await world.admin.get(path);
  const made = [...seen.incarnations.values()]
    .map(({ metadata: { labels } }) => labels)
    .filter((labels) => labels['module.koupleless.io/name'] === module);
  at('delete');
  await world.admin.delete(path);
  const collections = [
    ...['moduledeployments', 'moduleexitedrecords'].map((plural) => `${NAMESPACED}/${plural}`),
    '/api/v1/namespaces/default/services',
  ];
  await eventually(async () => {
    for (const collection of collections) {
      const items = await world.admin.list(collection);
      expect(items.filter((item) => item.metadata.name === name)).toEqual([]);
    }
    expect(await pods(world.admin, `module.koupleless.io/name=${module}`)).toEqual([]);
  }, 240_000);
  const kept = await world.admin.list(`${NAMESPACED}/modulereleases`);
  await world.admin.delete(`${NAMESPACED}/modulereleases/${name}`);
  return {
    pods: made.map((labels) => labels['module.koupleless.io/version']).sort(),
    generation: workload.metadata.generation,
    history: status.history.map(({ id }: { id: string }) => id),
    left: kept.filter((item) => item.metadata.name === name).map(({ kind }) => kind),
  };
}

/** A write of the catalog, such as `PATCH modules/status`, without events and Leases; undefined for other requests. */
function writeOf(
  method: string,
  path: string,
): { readonly what: string; readonly name: string | undefined } | undefined {
  if (method === 'GET') return undefined;
  const found = /\/namespaces\/default\/([a-z]+)(?:\/([^/?]+))?(?:\/([a-z]+))?(?:\?|$)/.exec(path);
  const [, plural, name, subresource] = found ?? [];
  if (plural === undefined || plural === 'events') return undefined;
  return { what: `${method} ${plural}${subresource === undefined ? '' : `/${subresource}`}`, name };
}

/** Writes about records and releases are of no certain step: they follow Pods. */
function keyOf(step: string | undefined, what: string): string {
  return /exitedrecords|releases/.test(what) ? what : `${step}: ${what}`;
}

/** The story of each Module at the same time; each meets its cut once, at the first such write of such a step. */
async function runAll(
  cuts: readonly (string | undefined)[],
  prefix: string,
  cutOf: () => PlannedCut,
): Promise<{ ends: End[]; met: string[] }> {
  const steps = new Map<string, string>();
  const met: string[] = [];
  const left = new Map(cuts.map((cut, index) => [`shop-${prefix}${index}`, cut]));
  catalog.proxy.plan = ({ method, path, body }) => {
    const write = writeOf(method, path);
    if (write === undefined) return undefined;
    const name = write.name ?? (JSON.parse(body.toString()) as KubeObject).metadata.name;
    const key = keyOf(steps.get(name), write.what);
    if (left.get(name) !== key) return undefined;
    left.delete(name);
    met.push(key);
    return cutOf();
  };
  const ends = await Promise.all(
    cuts.map((_cut, index) => story(`${prefix}${index}`, (step) => steps.set(`shop-${prefix}${index}`, step))),
  );
  await catalog.whenStarted();
  return { ends, met };
}

let undisturbed: End;
const writes = new Set<string>();

describe('a Module that is published, released, taken back and deleted', () => {
  it('makes no more Pods and writes than it needs', async () => {
    let step = '';
    catalog.proxy.plan = ({ method, path }) => {
      const write = writeOf(method, path);
      if (write !== undefined) writes.add(keyOf(step, write.what));
      return undefined;
    };
    undisturbed = await story('calm', (next) => {
      step = next;
    });
    expect(undisturbed).toEqual({
      pods: ['1.0.0', '1.0.0', '1.0.0', '1.0.0', '2.0.0', '2.0.0'],
      generation: 3,
      history: ['r1', 'r2'],
      left: ['ModuleRelease'],
    });
    expect([...writes].sort()).toEqual([
      'PATCH moduleexitedrecords/status',
      'PATCH modulereleases/status',
      'POST moduleexitedrecords',
      'publish: PATCH moduledeployments',
      'publish: PATCH modules/status',
      'publish: PATCH services',
      'release: PATCH moduledeployments',
      'release: PATCH modules/status',
      'rollback: PATCH moduledeployments',
      'rollback: PATCH modules',
      'rollback: PATCH modules/status',
    ]);
  });

  it.each<[string, string, () => PlannedCut]>([
    ['the answer of any write is lost', 'lost', () => ({ at: 'after' })],
    ['the controller is killed before any write', 'before', () => ({ at: 'before', run: () => catalog.kill() })],
    ['the controller is killed after any write', 'after', () => ({ at: 'after', run: () => catalog.kill() })],
  ])('ends the same when %s', async (_what, prefix, cutOf) => {
    const cuts = [...writes];
    expect(cuts.length).toBeGreaterThan(0);
    const { ends, met } = await runAll(cuts, prefix, cutOf);
    for (const [index, end] of ends.entries()) expect(end, cuts[index]).toEqual(undisturbed);
    // Records wait for 10 s in which nobody is killed.
    expect(met).toEqual(expect.arrayContaining(cuts.filter((cut) => !cut.includes('exitedrecords'))));
  });
});
