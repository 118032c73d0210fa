import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../../../src/errors.ts';
import { modulesOn, modulesWanted } from '../../support/end-state.ts';
import { isReady, pods } from '../../support/observe.ts';
import { nodeDifferences } from './outages.ts';
import type { SoakWorld } from './soak-world.ts';

const LOOK_EVERY_MS = 500;

/** What is not as it should be when nothing happens any more: not Ready, not installed, unwanted, dead. Empty: all is well. */
export async function differencesOf({ world, fleet, history, aliveBases }: SoakWorld): Promise<string[]> {
  const seen = history.pods.filter(({ ready, deletedAt }) => ready !== 'True' || deletedAt !== undefined);
  const unready = seen.map(({ name, nodeName, ready }) => `Pod ${name} on ${nodeName || 'no Node'}: Ready=${ready}`);
  const early = [...unready, ...nodeDifferences(history.nodes, aliveBases)];
  // The API server is only asked when what we have been told gives no reason to wait.
  if (early.length > 0) return early;
  const all = await pods(world.admin);
  const late = all.filter((pod) => !isReady(pod)).map(({ metadata }) => `Pod ${metadata.name} is not Ready`);
  return [...late, ...moduleDifferences(modulesWanted(all), modulesOn(fleet))];
}

type Modules = Readonly<Record<string, readonly string[]>>;

/** Modules that are missing, and those that nobody wants, by Node. */
export function moduleDifferences(wanted: Modules, there: Modules): string[] {
  const nodes = new Set([...Object.keys(wanted), ...Object.keys(there)]);
  return [...nodes]
    .sort()
    .flatMap((node) => [
      ...without(wanted[node], there[node]).map((module) => `${node}: ${module} is missing`),
      ...without(there[node], wanted[node]).map((module) => `${node}: ${module} is not wanted`),
    ]);
}

/** Those of `all` that are not among `others`, each as often as it is there too often. */
function without(all: readonly string[] = [], others: readonly string[] = []): string[] {
  const left = [...others];
  return all.filter((one) => {
    const index = left.indexOf(one);
    if (index >= 0) left.splice(index, 1);
    return index < 0;
  });
}

/** Resolves when there is no difference; after `timeoutMs` with those that are left. */
export async function untilSettled(world: SoakWorld, timeoutMs: number): Promise<string[]> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const differences = await differencesOf(world).catch((error: unknown) => [messageOf(error)]);
    if (differences.length === 0 || performance.now() > deadline) return differences;
    await delay(LOOK_EVERY_MS);
  }
}
