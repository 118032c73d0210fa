import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { EventObject } from '../../src/kube/objects.ts';
import { MANY_PODS } from '../support/cluster-settings.ts';
import { costOf, wordsOf } from '../support/cost.ts';
import { eventually } from '../support/eventually.ts';
import { modulePod } from '../support/manifests.ts';
import { findPod, isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { Spectator } from '../support/spectator.ts';
import { CONTROLLER_USER, type ControllerProcess, type OwnWorld, podPath, startOwnWorld } from '../support/world.ts';

const BASES = 50;
const FAILING = 500;
/** FAILING_MINUTES=10 is the whole promise; CI looks at its beginning, in which most happens. */
const MINUTES = Number(process.env.FAILING_MINUTES ?? 1.5);
const EVENTS_PER_SECOND = 20;
/** What the limiter lets through at once before it counts seconds. */
const EVENT_BURST = 40;
const EVENT_WRITES_PER_POD = 30;

let world: OwnWorld;
let controller: ControllerProcess;

beforeAll(async () => {
  world = await startOwnWorld({ ...MANY_PODS, auditLog: { users: [CONTROLLER_USER] } });
  controller = await world.startController();
  const fleet = await world.startFleet({ count: BASES });
  fleet.setFault({ command: 'installBiz', urlIncludes: 'bad', failure: 'java.io.FileNotFoundException: bad.jar' });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(BASES));
});

afterAll(() => world?.stop());

async function create(name: string, base: number): Promise<void> {
  const pod = modulePod(name, [{ name }], { nodeName: `vnode.base-${base}` });
  await world.admin.post('/api/v1/namespaces/default/pods', pod);
}

/** How often the events of a Pod were written: each write counts one more, and some count several. */
async function writesByPod(): Promise<Map<string, number>> {
  const events = (await world.admin.list('/api/v1/namespaces/default/events')) as EventObject[];
  const writes = new Map<string, number>();
  for (const { involvedObject, count, source } of events) {
    const isOurs = involvedObject.kind === 'Pod' && source?.component === 'module-controller';
    if (isOurs) writes.set(involvedObject.name, (writes.get(involvedObject.name) ?? 0) + (count ?? 1));
  }
  return writes;
}

describe(`${FAILING} installs that fail again and again on ${BASES} bases`, () => {
  it(
    'write few events, hold up nobody else, and move no Node',
    async () => {
      await create('good-before', 1);
      await eventually(async () => expect(await findPod(world.admin, 'good-before')).toSatisfy(isReady));
      const good = await Spectator.watch(world.admin, podPath('').slice(0, -1));
      const nodesSeen = await Spectator.watch(world.admin, '/api/v1/nodes');
      const startedAt = Date.now();
      const { requests, cpuSeconds } = await costOf(world, controller, async () => {
        await Promise.all(Array.from({ length: FAILING }, (_, index) => create(`bad-${index}`, 1 + (index % BASES))));
        const until = Date.now() + MINUTES * 60_000;
        for (let round = 0; Date.now() < until; round++) {
          // New modules beside the failing ones, one base after the other.
          await create(`good-${round}`, 1 + (round % BASES));
          await eventually(async () => expect(await findPod(world.admin, `good-${round}`)).toSatisfy(isReady));
          await pause(5_000);
        }
      });
      const seconds = (Date.now() - startedAt) / 1000;
      good.stop();
      nodesSeen.stop();
      const writes = await writesByPod();
      const mostWrites = Math.max(...writes.values());
      const perSecond = (requests.count({ resource: 'events' }) - EVENT_BURST) / seconds;
      console.log(
        `${seconds.toFixed(0)} s: ${wordsOf(requests)}; ${perSecond.toFixed(1)} event writes a second, ` +
          `at most ${mostWrites} for one Pod; ${cpuSeconds.toFixed(1)} CPU s`,
      );
      expect((await pods(world.admin)).filter(({ metadata }) => metadata.name.startsWith('bad-'))).toHaveLength(
        FAILING,
      );
      expect(writes.size).toBeGreaterThan(0);
      expect(mostWrites).toBeLessThanOrEqual(EVENT_WRITES_PER_POD);
      expect(perSecond).toBeLessThanOrEqual(EVENTS_PER_SECOND);
      expect(nodesSeen.sightings.filter(({ ready }) => ready === 'False')).toEqual([]);
      const lost = good.sightings.filter(({ name, ready }) => name === 'good-before' && ready !== 'True');
      expect(lost).toEqual([]);
    },
    (MINUTES + 5) * 60_000,
  );
});
