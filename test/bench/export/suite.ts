import type { Suite } from '../suite.ts';
import { CHURN } from './churn.ts';
import { FILL } from './fill.ts';
import { KILL } from './kill.ts';
import { BACKENDS, NAMESPACES } from './objects.ts';
import { REST } from './rest.ts';
import { ROLL } from './roll.ts';
import { ExportStage } from './stage.ts';

/** The order saves time: each case leaves what the next one begins with. */
export const EXPORT: Suite<ExportStage> = {
  name: 'export',
  text: 'what the export of Services to load balancers promises',
  defaults: { runs: 3, bases: 500, services: 1000 },
  notes: [
    `Each Service has ${BACKENDS} Pods of its own, in ${NAMESPACES} namespaces: half of them in one, the others spread evenly.`,
    'Nodes and statuses of Pods are the bench’s own; a fifth of all changes is of five Services.',
  ],
  steps: [[FILL], [CHURN], [REST], [ROLL], [KILL]],
  open: (options) => new ExportStage(options),
};
