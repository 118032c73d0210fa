import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { moduleWorkload } from '../support/manifests.ts';
import { isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { Platform } from '../support/platform.ts';
import { moduleDeployment } from '../support/rollouts.ts';
import { startWorld } from '../support/start-world.ts';
import type { ControllerProcess, World } from '../support/world.ts';

/** As in docs/figures.md. */
const WORKLOADS = 200;
const PODS = 5 * WORKLOADS;
const BASES = 100;
const WAITS_MS = 600_000;
const APPLIES_AT_ONCE = 8;
const IN_PLACE = { maxSurge: 1, maxUnavailable: 0 };

type Kind = 'md' | 'deployment';

let world: World;
let platform: Platform;
let rollout: ControllerProcess;

function manifestOf(kind: Kind, index: number, version: string): KubeObject {
  const name = `${kind}-${index}`;
  if (kind === 'deployment')
    return moduleWorkload(name, [{ name, version }], { replicas: 5, rollingUpdate: IN_PLACE }) as KubeObject;
  return moduleDeployment({
    name,
    version,
    replicas: 5,
    spec: { strategy: { rollingUpdate: IN_PLACE } },
  }) as KubeObject;
}

async function applyAll(kind: Kind, version: string): Promise<void> {
  const left = Array.from({ length: WORKLOADS }, (_, index) => index);
  const worker = async (): Promise<void> => {
    for (let index = left.pop(); index !== undefined; index = left.pop())
      await world.controlPlane.apply(manifestOf(kind, index, version));
  };
  await Promise.all(Array.from({ length: APPLIES_AT_ONCE }, worker));
}

async function whenRolledOut(kind: Kind, version: string): Promise<void> {
  await eventually(async () => {
    const all = (await pods(world.admin)).filter(({ metadata }) => metadata.name.startsWith(kind));
    expect(all.filter((pod) => pod.metadata.labels?.version === version && isReady(pod))).toHaveLength(PODS);
    expect(all).toHaveLength(PODS);
  }, WAITS_MS);
}

/** Writes that the API server has carried out so far, of all clients: `VERB resource/subresource`. */
async function writes(): Promise<Map<string, number>> {
  const text = String(await world.admin.request('GET', '/metrics', {}));
  const counts = new Map<string, number>();
  for (const [, labels = '', count] of text.matchAll(/^apiserver_request_total\{(.*)\} (\S+)$/gm)) {
    const label = (name: string): string => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1] ?? '';
    const [verb, resource] = [label('verb'), label('resource')];
    if (
      !label('code').startsWith('2') ||
      ['GET', 'LIST', 'WATCH'].includes(verb) ||
      ['leases', 'nodes', ''].includes(resource)
    )
      continue;
    const key = [`${verb} ${resource}`, label('subresource')].filter(Boolean).join('/');
    counts.set(key, (counts.get(key) ?? 0) + Number(count));
  }
  return counts;
}

/** CPU time of a process so far, s. */
function cpuSecondsOf({ child }: ControllerProcess): number {
  const [, fields = ''] = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ');
  const [user, system] = fields.split(' ').slice(11, 13);
  return (Number(user) + Number(system)) / 100;
}

/** Rolls all workloads of a kind to another version at once; how many writes that took. */
async function roll(kind: Kind): Promise<Map<string, number>> {
  await applyAll(kind, '1.0.0');
  await whenRolledOut(kind, '1.0.0');
  const [before, cpuBefore, startedAt] = [await writes(), cpuSecondsOf(rollout), Date.now()];
  await applyAll(kind, '2.0.0');
  await whenRolledOut(kind, '2.0.0');
  const seconds = (Date.now() - startedAt) / 1000;
  const after = [...(await writes())].map(([key, count]) => [key, count - (before.get(key) ?? 0)] as const);
  const cost = new Map(after.filter(([, count]) => count > 0));
  const cpuSeconds = cpuSecondsOf(rollout) - cpuBefore;
  console.log(JSON.stringify({ kind, seconds, cpuSeconds, ...Object.fromEntries(cost) }));
  return cost;
}

function sum(cost: ReadonlyMap<string, number>): number {
  return [...cost.values()].reduce((total, count) => total + count, 0);
}

beforeAll(async () => {
  world = await startWorld();
  platform = await Platform.install(world);
  await world.startController();
  await world.startFleet({ count: BASES, activateNewModule: true });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(BASES));
  rollout = await platform.start('platform-0', 'rollout');
  await rollout.line(({ msg }) => msg === 'started leading');
});

afterAll(async () => {
  await platform?.stop();
  await world?.stop();
});

describe(`${WORKLOADS} ModuleDeployments that roll at once`, () => {
  it(
    'create and delete each Pod once, and write less than as many Deployments',
    async () => {
      const ours = await roll('md');
      expect(ours.get('POST pods')).toBe(PODS);
      const theirs = await roll('deployment');
      expect(sum(ours)).toBeLessThan(sum(theirs));
    },
    4 * WAITS_MS,
  );
});
