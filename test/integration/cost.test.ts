import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import { LEASES_PATH } from '../../src/lease/lease.ts';
import { MANY_PODS } from '../support/cluster-settings.ts';
import { costOf, residentMibOf, wordsOf } from '../support/cost.ts';
import { createPods } from '../support/create-pods.ts';
import { eventually } from '../support/eventually.ts';
import { modulePod } from '../support/manifests.ts';
import { isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { TRANSPORT } from '../support/transport.ts';
import { CONTROLLER_USER, type ControllerProcess, type OwnWorld, startOwnWorld } from '../support/world.ts';

const BASES = 60;
const MODULES_PER_BASE = 5;
const MODULES = BASES * MODULES_PER_BASE;
const IDLE_MINUTES = 1;
const METASPACE_BYTES = 64 * 1024 ** 2;

let world: OwnWorld;
let controller: ControllerProcess;
let fleet: Fleet;

beforeAll(async () => {
  world = await startOwnWorld({ ...MANY_PODS, auditLog: { users: [CONTROLLER_USER] } });
  controller = await world.startController();
  fleet = await world.startFleet({ count: BASES, announce: false, installMs: 100, uninstallMs: 0 });
  // What installs take of it is written in turn, for a minute: no part of a rest.
  for (let index = 1; index <= BASES; index++) fleet.base(`base-${index}`).setMetaspace({ usedBytes: METASPACE_BYTES });
});

afterAll(() => world?.stop());

/** Figures are to be read; what is promised is a number of requests or commands, which no slow machine changes. */
function report(label: string, text: string): void {
  console.log(`${TRANSPORT}, ${label}: ${text}`);
}

async function applyAll(): Promise<void> {
  const wanted = Array.from({ length: MODULES }, (_, index) => {
    const [base, module] = [(index % BASES) + 1, Math.floor(index / BASES)];
    const spec = { nodeSelector: { 'kubernetes.io/hostname': `vnode.base-${base}` } };
    return modulePod(`biz${module}-${base}`, [{ name: `biz${module}` }], { spec });
  });
  await createPods(world.admin, wanted);
}

/** By the clock of the controller, from the command to its end. */
async function installsOfASecond(): Promise<number> {
  const name = 'module_controller_module_operation_duration_seconds';
  const all = await controller.metric(`${name}_count`, 'command="install"');
  return all - (await controller.metric(`${name}_bucket`, 'command="install"', 'le="1"'));
}

/** First lists of bases that came a second or more after the very first: another batch may record them. */
function laterLists(): number {
  const lists = Map.groupBy(fleet.history.records({ command: 'queryAllBiz' }), ({ base }) => base);
  const times = [...lists.values()].map(([first]) => first?.finishedAt ?? Number.POSITIVE_INFINITY);
  return times.filter((at) => at >= Math.min(...times) + 1_000).length;
}

/** Waits until all Events are written (20 a second) and only Leases are. */
async function untilAtRest(): Promise<void> {
  for (;;) {
    const { requests } = await costOf(world, controller, () => pause(5_000));
    // A Node reports each five minutes, at a moment of its own.
    const steady = requests.count({ resource: 'leases' }) + requests.count({ resource: 'nodes/status' });
    if (requests.count() === steady) return;
  }
}

describe(`${BASES} bases and ${MODULES} modules, announced and applied at once`, () => {
  it('are all Ready with one install and at most 1.2 status writes each where it is quick, and no GET but of the record of first contacts', async () => {
    const { requests, cpuSeconds } = await costOf(world, controller, async () => {
      fleet.announce();
      await applyAll();
      await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(BASES));
      await eventually(async () => expect((await pods(world.admin)).filter(isReady)).toHaveLength(MODULES), 150_000);
    });
    const [late, later] = [await installsOfASecond(), laterLists()];
    report(
      'start',
      `${wordsOf(requests)}; ${late} installs of a second or more, ${later} lists a second later; ${cpuSeconds.toFixed(1)} CPU s, ${residentMibOf(controller)} MiB`,
    );
    expect(fleet.history.records({ command: 'installBiz' }).map(({ outcome }) => outcome)).toEqual(
      Array.from({ length: MODULES }, () => 'executed'),
    );
    // One that takes 2 s is written twice: a busy machine may make some slow.
    expect(requests.count({ resource: 'pods/status' })).toBeLessThanOrEqual(1.2 * MODULES + late);
    // What is answered with 409 is read, a new Node or a Lease: the answer to the request before was lost on a busy machine.
    const lost =
      requests.count({ verb: 'create', resource: 'nodes', code: 409 }) +
      requests.count({ resource: 'leases', code: 409 });
    expect(requests.count({ verb: 'get' })).toBe(lost + requests.count({ verb: 'get', resource: 'configmaps' }));
    // One GET and one write of each of eight shards, again for bases whose list came later: few, or each its own.
    const recorded = Math.max(BASES / 2, 2 * 8 + 2 * later);
    expect(requests.count({ resource: 'configmaps' })).toBeLessThanOrEqual(recorded);
    expect(requests.count({ verb: 'list' })).toBe(0);
  });

  it('at rest cost at most 6.5 requests for each VNode and minute, and 2 commands to each base', async () => {
    await untilAtRest();
    const mark = fleet.history.mark();
    const { requests, cpuSeconds } = await costOf(world, controller, () => pause(IDLE_MINUTES * 60_000));
    const perVNodeMinute = (requests.count() - requests.count({ verb: 'watch' })) / BASES / IDLE_MINUTES;
    const cpuPercent = ((100 * cpuSeconds) / (IDLE_MINUTES * 60)).toFixed(1);
    report('rest', `${wordsOf(requests)}; ${perVNodeMinute.toFixed(2)} per VNode-minute; ${cpuPercent} % of a core`);
    expect(perVNodeMinute).toBeLessThanOrEqual(6.5);
    expect(requests.count({ verb: 'get' })).toBe(0);
    for (const counts of fleet.history.commandCounts(mark).values()) {
      const commands = Object.values(counts).reduce((sum, count) => sum + count, 0);
      expect(commands).toBeLessThanOrEqual(2 * IDLE_MINUTES);
    }
  }, 300_000);

  it('have Leases without managed fields, which would be half of what a renewal is told with', async () => {
    const { items } = await world.admin.get(LEASES_PATH);
    expect(items).toHaveLength(BASES);
    for (const { metadata } of items) expect(metadata).not.toHaveProperty('managedFields');
  });
});
