import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { PodObject } from '../../src/kube/objects.ts';
import { eventually } from '../support/eventually.ts';
import { moduleWorkload } from '../support/manifests.ts';
import { findNode, isReady, isSchedulable, pods, waitingReason } from '../support/observe.ts';
import { startWorld } from '../support/start-world.ts';
import type { ControllerProcess, World } from '../support/world.ts';

const SECRETS = /hunter2|f00dcafe/;

let world: World;
let controller: ControllerProcess;
let fleet: Fleet;

beforeAll(async () => {
  world = await startWorld();
  controller = await world.startController({ LOG_LEVEL: 'debug' });
  fleet = await world.startFleet({ count: 1 });
  await eventually(async () => {
    const node = await findNode(world.admin, 'base-1');
    expect(node && isSchedulable(node)).toBe(true);
  });
});

afterAll(() => world?.stop());

function secretUrlOf(name: string): string {
  return `https://tenant:hunter2@jars.example.com/${name}-1.0.0-ark-biz.jar?X-Amz-Signature=f00dcafe&X-Amz-Expires=900`;
}

async function podOf(name: string): Promise<PodObject | undefined> {
  return (await pods(world.admin, `app=${name}`))[0];
}

it('no status, event or log line shows the secrets of a jar’s URL', async () => {
  const { admin, controlPlane } = world;
  const exception = `java.io.FileNotFoundException: ${secretUrlOf('bad')}`;
  fleet.setFault({ command: 'installBiz', bizName: 'bad', failure: exception });
  const workloads = ['good', 'bad'].map((name) => moduleWorkload(name, [{ name, image: secretUrlOf(name) }]));
  await controlPlane.apply(workloads);
  await eventually(async () => {
    expect(isReady(await podOf('good'))).toBe(true);
    expect(waitingReason(await podOf('bad'))).toBe('ErrImagePull');
  });
  // The base was given the whole URL, and said it in its own words.
  const installs = fleet.history.records({ command: 'installBiz' });
  expect(JSON.stringify(installs)).toMatch(SECRETS);
  const isAbout = (name: string) => (line: { readonly msg: string; readonly module?: unknown }) =>
    line.msg.startsWith('base answered') && line.module === `${name}:1.0.0`;
  const failure = await controller.line(isAbout('bad'));
  expect(failure.reason).toContain('jars.example.com/bad-1.0.0-ark-biz.jar?***');

  const events = await eventually(async () => {
    const all = await admin.list('/api/v1/events');
    expect(JSON.stringify(all)).toContain('https://***@jars.example.com/bad-1.0.0-ark-biz.jar?***');
    return all;
  });
  expect(JSON.stringify(events)).not.toMatch(SECRETS);
  for (const pod of await pods(admin)) expect(JSON.stringify(pod.status)).not.toMatch(SECRETS);
  expect(JSON.stringify(controller.lines)).not.toMatch(SECRETS);
  const status = (await podOf('good'))?.status?.containerStatuses?.[0];
  expect(status?.image).toBe('https://***@jars.example.com/good-1.0.0-ark-biz.jar?***');
});

it('a module whose URL has secrets is not installed again after a restart of the controller', async () => {
  const mark = fleet.history.mark();
  await controller.stop('SIGKILL');
  const next = await world.startController({ LOG_LEVEL: 'debug' });
  // The failed one is installed again: by then the new process has looked at all of the base.
  await eventually(() => {
    const again = fleet.history.records({ command: 'installBiz', since: mark });
    expect(again.map(({ bizName }) => bizName)).toContain('bad');
  });
  await eventually(async () => expect(isReady(await podOf('good'))).toBe(true));
  expect(fleet.history.records({ bizName: 'good', since: mark })).toEqual([]);
  expect(JSON.stringify(next.lines)).not.toMatch(SECRETS);
});
