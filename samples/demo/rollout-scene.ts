import type { Stage } from './stage.ts';
import type { Step } from './step.ts';

/** What a rollout is shown on: the bases, the manifest, and the callers of the module. */
export interface RolloutScene {
  /** Name of the ModuleDeployment and of its module, and value of its Pods' label `app`. */
  readonly name: string;
  /** As in the manifest. */
  readonly replicas: number;
  /** What has to be on this machine. */
  readonly prerequisites: readonly Step[];
  /** Start the bases until they are Ready Nodes, and prepare the manifest. */
  readonly bases: readonly Step[];
  /** Path of the manifest of version 1.0.0: absolute, or from the root of the repository. */
  manifest(): string;
  /** From now on every base is called without a break, until the verdict or the end of the stage. */
  startCalls(stage: Stage): void;
  /** Resolves when each base answers with the version that is given for its Node. */
  untilAnswered(versions: ReadonlyMap<string, string>): Promise<void>;
  /** Ends the calls, and fails when one of them failed. */
  readonly verdict: readonly Step[];
}
