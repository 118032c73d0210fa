import { setFlagsFromString } from 'node:v8';

/**
 * Loaded into a controller that is soaked (`--import`). Each collection of a sample makes V8 throw away the bytecode
 * of what was not called lately, which is then made again: half a MiB up and down that tells nothing of what is kept.
 */
setFlagsFromString('--no-flush-bytecode');
