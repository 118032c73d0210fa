import type { Suite } from '../suite.ts';
import { ANNOUNCE, APPLY, GROW, KILL, REST, ROLL, SLOW_REST } from './cases.ts';
import { FleetStage } from './stage.ts';

/** The order saves time: each case leaves what the next one begins with. */
export const FLEET: Suite<FleetStage> = {
  name: 'fleet',
  text: 'what several replicas make of thousands of bases',
  defaults: { runs: 1, bases: 2000, modules: 2, replicas: 3, minutes: 5 },
  notes: ['In the end 2.5 times as many bases, which come within the minutes that are given.'],
  steps: [[ANNOUNCE], [APPLY], [REST], [KILL], [ROLL], [SLOW_REST], [GROW]],
  open: (options) => new FleetStage(options),
};
