import { SHARDING } from './sharding/suite.ts';

/** By the name that stands in the command line. */
export const SUITES = { sharding: SHARDING } as const;
