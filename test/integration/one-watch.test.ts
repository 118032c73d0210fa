import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { moduleWorkload } from '../support/manifests.ts';
import { isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { startWorld } from '../support/start-world.ts';
import { SCALE } from '../support/transport.ts';
import type { World } from '../support/world.ts';

const BASES = 100 * SCALE;
const DEPLOYMENTS = 10;

let world: World;

beforeAll(async () => {
  world = await startWorld();
});

afterAll(() => world?.stop());

/** The sum over `apiserver_longrunning_requests{…resource="pods"…verb="WATCH"…}`. */
async function podWatches(): Promise<number> {
  const text: string = await world.admin.get('/metrics');
  return text
    .split('\n')
    .filter((line) => /^apiserver_longrunning_requests\{.*resource="pods".*verb="WATCH"/.test(line))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

/** Kubernetes' own controllers begin theirs one by one. */
async function steadyPodWatches(): Promise<number> {
  const counts: number[] = [];
  return eventually(async () => {
    counts.push(await podWatches());
    const last = counts.slice(-10);
    expect(last).toEqual(Array.from({ length: 10 }, () => last[0]));
    return last[0] ?? 0;
  });
}

describe('A-004-8 one watch', () => {
  it(`more on Pods when the controller starts, and none more for ${BASES} bases and ${DEPLOYMENTS * BASES} Pods`, async () => {
    const before = await steadyPodWatches();
    expect(before).toBeGreaterThan(0);
    const controller = await world.startController();
    expect(await podWatches()).toBe(before + 1);

    await world.startFleet({ count: BASES });
    await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(BASES), 120_000);
    expect(await podWatches()).toBe(before + 1);

    for (let index = 0; index < DEPLOYMENTS; index++) {
      const name = `biz${index}`;
      await world.controlPlane.apply(moduleWorkload(name, [{ name }], { replicas: BASES }));
    }
    await eventually(
      async () => expect((await pods(world.admin)).filter(isReady)).toHaveLength(DEPLOYMENTS * BASES),
      150_000,
    );
    expect(await podWatches()).toBe(before + 1);

    await controller.stop();
    await eventually(async () => expect(await podWatches()).toBe(before));
  }, 360_000);
});
