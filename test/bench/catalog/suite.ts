import type { Suite } from '../suite.ts';
import { BURST, FLOOR } from './burst.ts';
import { CONFIGS } from './configs.ts';
import { FILL } from './fill.ts';
import { NAMESPACES } from './objects.ts';
import { REST } from './rest.ts';
import { CatalogStage } from './stage.ts';

/** The order saves time: each case leaves what the next one begins with. */
export const CATALOG: Suite<CatalogStage> = {
  name: 'catalog',
  text: 'what the catalog promises: many Modules, changes of them, and rest',
  // 12,000 Modules; `modules` is the mean, the scheduler chooses.
  defaults: { runs: 1, bases: 750, modules: 16, seconds: 60, rate: 100, configs: 10_000 },
  notes: [
    `Each Module has one Pod, one port and a release, in ${NAMESPACES} namespaces: half of them in one, the others spread evenly.`,
    'A change is another maxSurge of the strategy: the workload gets it as it is, and the Pods stay.',
    'The floor applies the same bodies for the same Modules in the same world, and writes the status of each; rollout runs in both cases, in a process of its own.',
    'Off: webhooks and policies of the platform, and the controllers that make EndpointSlices.',
  ],
  steps: [[FILL], [BURST], [FLOOR], [REST], [CONFIGS]],
  open: (options) => new CatalogStage(options),
};
