import { serveCalls } from '../../../../samples/process/serve.ts';
import { profileCalls } from '../../profiler.ts';
import { Floor } from './floor.ts';
import type { FloorCalls } from './floor-process.ts';

/** The other end of `startFloor`. */

let floor: Floor | undefined;

serveCalls<FloorCalls>({
  start: async (options) => {
    floor = await Floor.start(options);
  },
  counters: () => {
    if (!floor) throw new Error('start: the floor is not started');
    return floor.counters;
  },
  ...profileCalls(),
});
