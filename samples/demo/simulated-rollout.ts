import type { DemoOptions } from './options.ts';
import type { RolloutScene } from './rollout-scene.ts';
import { simulatedBasesStep } from './simulated-bases.ts';

/** The sample manifest as it is. Simulated bases have no module that could be called. */
export function simulatedScene({ broken }: Pick<DemoOptions, 'broken'>): RolloutScene {
  return {
    name: 'orders',
    replicas: 4,
    prerequisites: [],
    bases: [simulatedBasesStep(broken)],
    manifest: () => 'samples/module-rollout.yaml',
    startCalls: () => {},
    untilAnswered: async () => {},
    verdict: [],
  };
}
