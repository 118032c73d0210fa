import { cpuSecondsOf, residentMibOf } from '../../support/cost.ts';
import { restCostOf, untilAtRest } from '../at-rest.ts';
import { benchCase } from '../suite.ts';
import type { ScaleStage } from './stage.ts';
import { STEADY_SUBJECTS } from './subject.ts';

/** At rest a finer one would be a sixth of what is measured. */
const LOOP_DELAY_RESOLUTION_MS = 100;

/** Two minutes in which nothing happens, with all modules in place. */
export const IDLE = benchCase({
  name: 'idle',
  subjects: STEADY_SUBJECTS,
  figures: {
    requests: { text: 'requests to the API server for each VNode and minute', unit: '', atMost: 6.2 },
    reads: { text: 'GET and LIST among them', unit: '', atMost: 0 },
    cpu: { text: 'CPU, of one core', unit: '%', atMost: 4, timesFloorAtMost: 1.5 },
    mostCommands: { text: 'commands a minute to the base that gets the most', unit: '', atMost: 2 },
    resident: { text: 'memory with all modules in place', unit: 'MiB', atMost: 150 },
    heap: { text: 'heap that lives after a collection', unit: 'MiB' },
    external: { text: 'buffers outside of the heap', unit: 'MiB' },
    loopDelay: { text: 'event loop delay, p99', unit: 'ms' },
  },

  async prepare(stage: ScaleStage) {
    await untilAtRest(await stage.loaded());
  },

  watched: (stage) => [stage.world.subject],

  async measure({ world }) {
    const { subject } = world;
    await subject.probe?.watchLoopDelay(LOOP_DELAY_RESOLUTION_MS);
    const cpuBefore = cpuSecondsOf(subject.pid);
    const rest = await restCostOf(world);
    const cpuSeconds = cpuSecondsOf(subject.pid) - cpuBefore;
    const loop = await subject.probe?.takeLoopDelay();
    // As it is, and then without its garbage.
    const resident = residentMibOf(subject.pid);
    const memory = await subject.probe?.memory();
    const { requests, minutes, details } = rest;
    return {
      values: {
        requests: rest.requestsPerVNodeMinute,
        reads: requests.count({ verb: 'get' }) + requests.count({ verb: 'list' }),
        cpu: (100 * cpuSeconds) / (60 * minutes),
        mostCommands: rest.mostCommands,
        resident,
        ...(memory ? { heap: mib(memory.heapUsed), external: mib(memory.external) } : {}),
        ...(loop ? { loopDelay: loop.p99 } : {}),
      },
      details,
    };
  },
});

function mib(bytes: number): number {
  return bytes / 1024 ** 2;
}
