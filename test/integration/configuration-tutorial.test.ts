import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { commandsOf, runInShell } from '../support/guide.ts';
import { isSchedulable, nodes } from '../support/observe.ts';
import { Platform } from '../support/platform.ts';
import { startWorld } from '../support/start-world.ts';
import type { World } from '../support/world.ts';

const PAGE = 'docs/tutorial-configuration.md';
const BASES = 3;

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

function argOf(http: object): string {
  return JSON.stringify([`--spring.application.json=${JSON.stringify(http)}`]);
}

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

describe('the tutorial of configuration', () => {
  it('runs a module with its configuration', async () => {
    const output = await follow('1. Run a module with its configuration');
    expect(output).toMatch(/company-defaults +Template +application\.yaml +\d{14}-[0-9a-f]{8} +1 +Active/);
    expect(output).toMatch(/tars-query +Module tars query +application\.yaml +\d{14}-[0-9a-f]{8} +1 +Active/);
    expect(output).toContain(argOf({ 'http.timeout': '3s', 'http.pool': 20 }));
  });

  it('changes a value', async () => {
    const output = await follow('2. Change a value');
    expect(output).toContain(argOf({ 'http.timeout': '3s', 'http.pool': 50 }));
    expect(output).toMatch(/\n\S+ Friday is busy\n\S+ as it was on the old servers\n/);
  });

  it('makes a mistake', async () => {
    expect(await follow('3. Make a mistake')).toMatch(/spec\.content, line 3, column 1: .*stays active/);
  });

  it('goes back, and follows again', async () => {
    const output = await follow('4. Go back');
    expect(output).toMatch(/\[\{"follow":"Immediately","name":"tars-query","version":"\d{14}-[0-9a-f]{8}"\}\]\n/);
    expect(output).toContain(argOf({ 'http.timeout': '3s', 'http.pool': 30 }));
  });

  it('takes a new value of the template when it is asked to', async () => {
    const output = await follow('5. Change the template');
    expect(output).toContain('name it in spec.activeVersion');
    expect(output).toContain(argOf({ 'http.timeout': '5s', 'http.pool': 30 }));
  });

  it('deletes all', async () => {
    await follow('6. Delete');
  });
});
