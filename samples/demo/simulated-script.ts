import { type Rollout, removalFaults, rolloutFaults } from './checks.ts';
import { deleteDeployment, openingSteps, type ScriptOf } from './script.ts';
import { BASE_COUNT, simulatedBasesStep } from './simulated-bases.ts';
import { type Step, type StepContext, untilFaultless } from './step.ts';

const MODULE = 'shop';
const MANIFEST = 'samples/module-deployment.yaml';
const DEPLOYMENT = `/apis/apps/v1/namespaces/default/deployments/${MODULE}`;
const REPLICAS = 3;

/** A module on simulated bases. It ends with the module still there, or, with `--once`, removed again. */
export const simulatedScript: ScriptOf = ({ isOnce, broken }, output) => {
  const shown: Step[] = [
    ...openingSteps(output),
    simulatedBasesStep(broken),
    applyStep(`Deployment ${MODULE} 1.0.0 rolls out on ${REPLICAS} bases`, '1.0.0'),
    applyStep('rolling update to 2.0.0, and 1.0.0 is uninstalled', '2.0.0'),
    scaleStep(`scale up to ${BASE_COUNT}`, BASE_COUNT),
    scaleStep('scale down to 2', 2),
  ];
  return {
    steps: isOnce ? [...shown, removeStep(`Deployment ${MODULE} is deleted, and the module with it`)] : shown,
    hints: () => ['kubectl scale deployment/shop --replicas=4', 'kubectl apply -f samples/module-daemonset.yaml'],
  };
};

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
      await deleteDeployment(stage, MODULE);
      await untilFaultless(context, () => removalFaults(stage.cluster(), stage.bases(), MODULE));
    },
  };
}

function untilRolledOut(context: StepContext, wanted: Rollout): Promise<void> {
  const { stage } = context;
  return untilFaultless(context, () => rolloutFaults(stage.cluster(), stage.bases(), wanted));
}
