import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { commandsOf, runInShell } from '../support/guide.ts';
import { isSchedulable, nodes, pods } from '../support/observe.ts';
import { Platform } from '../support/platform.ts';
import { startWorld } from '../support/start-world.ts';
import type { World } from '../support/world.ts';

const PAGE = 'docs/tutorial-catalog.md';
const BASES = 5;

let world: World;
let platform: Platform;

/** Runs the commands of a section; their output. */
async function follow(heading: string): Promise<string> {
  const kubeconfig = await world.controlPlane.kubeconfig({ user: 'admin', groups: ['system:masters'] });
  const outputs: string[] = [];
  const blocks = commandsOf(PAGE, heading);
  expect(blocks.length).toBeGreaterThan(0);
  for (const block of blocks) outputs.push(await runInShell(block, { kubeconfig }));
  return outputs.join('');
}

const releases = async (): Promise<string[]> =>
  (await pods(world.admin, 'platform.koupleless.io/app=tars')).map(
    ({ metadata }) => metadata.labels?.['platform.koupleless.io/release'] ?? '',
  );

beforeAll(async () => {
  world = await startWorld();
  platform = await Platform.install(world);
  await platform.optIn();
  await world.startController();
  await world.startFleet({ count: BASES, activateNewModule: true });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(BASES));
  const controller = await platform.start('platform', 'rollout,catalog');
  await controller.line(({ msg, lease }) => msg === 'started leading' && lease === 'platform-catalog');
});

afterAll(async () => {
  await platform?.stop();
  await world?.stop();
});

describe('the tutorial of the catalog', () => {
  it('publishes and runs a release', async () => {
    const output = await follow('1. Publish and run');
    expect(output).toMatch(/tars-config +tars +base +v1\.2\.2 +4 +4 +Released/);
    for (const kind of ['moduledeployment.platform.koupleless.io/', 'service/', 'pod/'])
      expect(output).toContain(`${kind}tars-config`);
  });

  it('publishes the next one', async () => {
    expect(await follow('2. Publish the next release')).toContain('v1.2.2 v1.3.0\n');
    expect(new Set(await releases())).toEqual(new Set(['v1.2.2']));
  });

  it('brings it to half of the copies, and goes on', async () => {
    const output = await follow('3. Release it to half of the copies');
    expect(output.match(/ v1\.3\.0$/gm)).toHaveLength(2);
    expect(output.match(/ v1\.2\.2$/gm)).toHaveLength(2);
    // Those that were replaced still serve for a moment.
    await eventually(async () => expect(await releases()).toEqual(Array(4).fill('v1.3.0')));
  });

  it('goes back', async () => {
    expect(await follow('4. Go back')).toMatch(/\nv1\.2\.2\n$/);
    await eventually(async () => expect(await releases()).toEqual(Array(4).fill('v1.2.2')));
  });

  it('shows the history, and where Pods ran that have gone', async () => {
    const output = await follow('5. Look at the history');
    expect(output).toMatch(/3 v1\.2\.2 \S+\n2 v1\.3\.0 \S+\n\["v1\.2\.2","v1\.3\.0"\]\n/);
    expect(output).toMatch(/tars-config +8 /);
  });

  it('scales and deletes', async () => {
    await follow('6. Scale');
    await follow('7. Delete');
    expect(await releases()).toEqual([]);
  });
});
