import { constants, setPriority } from 'node:os';

/**
 * Unit tests wait for nothing and promise no time, so they take only the CPU time that others leave: those of
 * `test/attacks/floods.test.ts` and `cost.test.ts`, which wait half of the time, run beside them.
 */
setPriority(constants.priority.PRIORITY_LOW);
