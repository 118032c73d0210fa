import { CATALOG } from './catalog/suite.ts';
import { EXPORT } from './export/suite.ts';
import { FLEET } from './fleet/suite.ts';
import { SCALE } from './scale/suite.ts';
import { SHARDING } from './sharding/suite.ts';
import { SOAK } from './soak/suite.ts';

/** By the name that stands in the command line. */
export const SUITES = {
  scale: SCALE,
  sharding: SHARDING,
  export: EXPORT,
  fleet: FLEET,
  catalog: CATALOG,
  soak: SOAK,
} as const;

/** The one that runs when none is named. */
export const DEFAULT_SUITE = 'scale';
