import type { Suite } from '../suite.ts';
import { BALANCE } from './balance.ts';
import { HTTP_IDLE } from './http-idle.ts';
import { IDLE } from './idle.ts';
import { JOIN } from './join.ts';
import { KILL } from './kill.ts';
import { ShardingStage } from './stage.ts';
import { TERM } from './term.ts';

/** The order saves time: each case leaves what the next one begins with. */
export const SHARDING: Suite<ShardingStage> = {
  name: 'sharding',
  text: 'what several replicas promise',
  defaults: { runs: 5, bases: 300 },
  steps: [[BALANCE], [IDLE, HTTP_IDLE], [JOIN], [TERM], [KILL]],
  open: (options) => new ShardingStage(options),
};
