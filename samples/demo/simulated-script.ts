import { nodeFaults, type Rollout, removalFaults, rolloutFaults } from './checks.ts';
import type { DemoOptions } from './options.ts';
import { BASE_COUNT, BASES, ENV } from './stage.ts';
import { type Step, type StepContext, untilFaultless } from './step.ts';

const MODULE = 'shop';
const MANIFEST = 'samples/module-deployment.yaml';
const DEPLOYMENT = `/apis/apps/v1/namespaces/default/deployments/${MODULE}`;
const REPLICAS = 3;

/** The whole demo. It ends with the module still there, or, with `--once`, removed again. */
export function stepsOf({ isOnce, broken }: DemoOptions, onProgress: (line: string) => void): Step[] {
  const shown: Step[] = [
    {
      name: 'control plane is up',
      isUnlimited: true, // the first time on a machine it is built
      run: ({ stage }) => stage.startControlPlane(onProgress),
    },
    { name: 'MQTT broker is up', run: ({ stage }) => stage.startBroker() },
    { name: 'controller is ready', run: ({ stage }) => stage.startController() },
    {
      name: `${BASE_COUNT} bases become Ready Nodes: ${BASES.mqtt} over MQTT, ${BASES.http} over HTTP`,
      run: async (context) => {
        await context.stage.startBases(broken);
        await untilFaultless(context, () => nodeFaults(context.stage.cluster(), context.stage.bases(), ENV));
      },
    },
    applyStep(`Deployment ${MODULE} 1.0.0 rolls out on ${REPLICAS} bases`, '1.0.0'),
    applyStep('rolling update to 2.0.0, and 1.0.0 is uninstalled', '2.0.0'),
    scaleStep(`scale up to ${BASE_COUNT}`, BASE_COUNT),
    scaleStep('scale down to 2', 2),
  ];
  return isOnce ? [...shown, removeStep(`Deployment ${MODULE} is deleted, and the module with it`)] : shown;
}

function applyStep(name: string, version: string): Step {
  return {
    name,
    run: async (context) => {
      const generation = await context.stage.apply(MANIFEST, (text) => text.replaceAll('1.0.0', version));
      await untilRolledOut(context, { name: MODULE, version, replicas: REPLICAS, generation });
    },
  };
}

function scaleStep(name: string, replicas: number): Step {
  return {
    name,
    run: async (context) => {
      const { admin } = context.stage.controlPlane;
      const { metadata } = await admin.mergePatch(DEPLOYMENT, { spec: { replicas } });
      await untilRolledOut(context, { name: MODULE, version: '2.0.0', replicas, generation: metadata.generation });
    },
  };
}

function removeStep(name: string): Step {
  return {
    name,
    run: async (context) => {
      const { stage } = context;
      await stage.controlPlane.admin.delete(DEPLOYMENT, { propagationPolicy: 'Background' });
      await untilFaultless(context, () => removalFaults(stage.cluster(), stage.bases(), MODULE));
    },
  };
}

function untilRolledOut(context: StepContext, wanted: Rollout): Promise<void> {
  const { stage } = context;
  return untilFaultless(context, () => rolloutFaults(stage.cluster(), stage.bases(), wanted));
}
