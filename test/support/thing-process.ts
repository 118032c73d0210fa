import { REGISTRY, type Registry } from '../../src/assembly/registry.ts';
import { runProcess } from '../../src/run.ts';
import { THING_CONTROLLER } from './thing-controller.ts';

/** The program with one more controller. */
const registry: Registry = new Map([...REGISTRY, ['things', async () => THING_CONTROLLER]]);
process.exit(await runProcess(registry));
