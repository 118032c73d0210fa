import type { DemoOptions } from './options.ts';
import type { Stage } from './stage.ts';
import type { Step } from './step.ts';

/** Where a script tells what happens while a step is under way. */
export interface Output {
  /** How far something long is; may be overwritten by the next. */
  readonly onProgress: (line: string) => void;
  /** Stays on the screen. */
  readonly print: (line: string) => void;
}

/** What a demo does. */
export interface Script {
  readonly steps: readonly Step[];
  /** What the user may try when all steps are through and everything stays up; after the line with KUBECONFIG. */
  readonly hints: () => readonly string[];
}

export type ScriptOf = (options: DemoOptions, output: Output) => Script;

/** Everything but the bases. */
export function openingSteps({ onProgress }: Output): Step[] {
  return [
    {
      name: 'control plane is up',
      isUnlimited: true, // the first time on a machine it is built
      run: ({ stage }) => stage.startControlPlane(onProgress),
    },
    { name: 'MQTT broker is up', run: ({ stage }) => stage.startBroker() },
    { name: 'controller is ready', run: ({ stage }) => stage.startController() },
  ];
}

/** The whole of a Deployment and its Pods, by `kubectl delete`'s default. */
export async function deleteDeployment(stage: Stage, name: string): Promise<void> {
  const path = `/apis/apps/v1/namespaces/default/deployments/${name}`;
  await stage.controlPlane.admin.delete(path, { propagationPolicy: 'Background' });
}
