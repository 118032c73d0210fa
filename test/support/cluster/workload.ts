import { expect } from 'vitest';
import { nodeNameOf } from '../../../src/labels.ts';
import { createPods } from '../create-pods.ts';
import { modulesOn, modulesWanted } from '../end-state.ts';
import { eventually } from '../eventually.ts';
import { modulePod } from '../manifests.ts';
import { isReady, isSchedulable, nodes, pods } from '../observe.ts';
import type { Cluster } from './cluster.ts';

const SHOWN = 10;

/** Pods that stay: `count` modules on each of the bases. */
export async function createKeptPods({ world }: Cluster, bases: readonly string[], count: number): Promise<void> {
  const wanted = bases.flatMap((base) =>
    Array.from({ length: count }, (_, index) =>
      modulePod(`kept${index}-${base}`, [{ name: `kept${index}` }], { nodeName: nodeNameOf(base) }),
    ),
  );
  await createPods(world.admin, wanted);
}

export function schedulable({ world }: Cluster, count: number): Promise<void> {
  return eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(count));
}

/** All Pods are Ready, and the bases have what they ask for and nothing else. */
export async function settled(cluster: Cluster, timeoutMs: number): Promise<void> {
  const { recorder, world, fleets } = cluster;
  const installed = () => Object.assign({}, ...fleets.map(modulesOn));
  // A thousand Pods: only the recorder is asked each time.
  await eventually(() => {
    const unready = recorder.livePods().filter(({ ready, deletedAt }) => ready !== 'True' || deletedAt !== undefined);
    const words = unready.map(({ name, nodeName, ready }) => `${name} ${nodeName} Ready=${ready}`);
    expect(words.slice(0, SHOWN).join('\n')).toBe('');
    expect(countOf(installed())).toBe(recorder.livePods().length);
  }, timeoutMs);
  await eventually(async () => {
    const all = await pods(world.admin);
    expect(all.filter((pod) => !isReady(pod)).map(({ metadata }) => metadata.name)).toEqual([]);
    expect(installed()).toEqual(modulesWanted(all));
  }, 15_000);
}

function countOf(modules: Record<string, string[]>): number {
  return Object.values(modules).reduce((sum, of) => sum + of.length, 0);
}
