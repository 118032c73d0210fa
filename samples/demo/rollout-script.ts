import { ANNOTATION } from '../../src/labels.ts';
import type { KubeObject } from '../control-plane/api-client.ts';
import { poll } from '../control-plane/poll.ts';
import { podsOf } from './checks.ts';
import { JavaScene } from './java-rollout.ts';
import { type ModuleRollout, moduleRemovalFaults, moduleRolloutFaults } from './rollout-checks.ts';
import type { RolloutScene } from './rollout-scene.ts';
import { type Output, openingSteps, type ScriptOf } from './script.ts';
import { simulatedScene } from './simulated-rollout.ts';
import type { Stage } from './stage.ts';
import { type Step, type StepContext, untilFaultless } from './step.ts';
import { MODULE_DEPLOYMENTS_PATH as PATH } from './watcher.ts';

const EVENT_WITHIN_MS = 10_000;

/** A ModuleDeployment in two batches, each confirmed by the demo, and the way back. */
export const rolloutScript: ScriptOf = (options, output) => {
  const scene = options.isJava ? new JavaScene(output) : simulatedScene(options);
  const play = new RolloutPlay(scene, output);
  const { name, replicas } = scene;
  // As batchSizes in src/platform/rollout has it for two batches.
  const first = Math.ceil(replicas / 2);
  const confirm = `kubectl annotate --overwrite md ${name} ${ANNOTATION.confirmBatch}=1`;
  const steps: Step[] = [
    ...scene.prerequisites,
    ...openingSteps(output),
    {
      name: 'rollout controller is ready, and has installed its CRD',
      command: () => 'kubectl apply -k deploy/platform',
      run: ({ stage }) => stage.startPlatform(),
    },
    ...scene.bases,
    {
      name: `ModuleDeployment ${name} 1.0.0 rolls out on ${replicas} bases`,
      command: () => `kubectl apply -f ${scene.manifest()}`,
      run: (context) => play.create(context),
    },
    {
      name: `update to 2.0.0: batch 1 of 2 replaces ${first} Pods on their own bases, then the rollout waits`,
      command: () => `sed 's/1\\.0\\.0/2.0.0/' ${scene.manifest()} | kubectl apply -f -`,
      run: (context) => play.update(context, { '2.0.0': first, '1.0.0': replicas - first }),
    },
    {
      name: 'batch 1 is confirmed, and batch 2 replaces the other Pods',
      command: () => confirm,
      run: (context) => play.confirm(context, { '2.0.0': replicas }),
    },
    {
      name: `rollback to 1.0.0: batch 1 of 2 replaces ${first} Pods, then the rollout waits`,
      command: () => `kubectl patch md ${name} --type merge -p '${JSON.stringify(ROLLBACK)}'`,
      run: (context) => play.rollBack(context, { '1.0.0': first, '2.0.0': replicas - first }),
    },
    {
      name: `batch 1 is confirmed, and all ${replicas} Pods are of 1.0.0 again, on the bases where they began`,
      command: () => confirm,
      run: (context) => play.confirm(context, { '1.0.0': replicas }),
    },
    ...scene.verdict,
  ];
  const removal: Step = {
    name: `ModuleDeployment ${name} is deleted, and the module with it`,
    command: () => `kubectl delete md ${name}`,
    run: (context) => play.remove(context),
  };
  const hints = (): string[] => [
    `kubectl get md ${name} --watch`,
    `kubectl describe md ${name}`,
    `sed 's/1\\.0\\.0/2.0.0/' ${scene.manifest()} | kubectl apply -f -`,
    confirm,
  ];
  return { steps: options.isOnce ? [...steps, removal] : steps, hints };
};

const ROLLBACK = { spec: { rollbackTo: {} } };

/** How many Pods there are of each version. */
type Versions = Readonly<Record<string, number>>;

class RolloutPlay {
  readonly #scene: RolloutScene;
  readonly #output: Output;
  /** Nodes of the Pods of the first version: an update leaves each Pod where it is. */
  #nodes: ReadonlySet<string> | undefined;
  /** As the API server answered the last write of the demo. */
  #generation = 0;

  constructor(scene: RolloutScene, output: Output) {
    this.#scene = scene;
    this.#output = output;
  }

  async create(context: StepContext): Promise<void> {
    const { stage } = context;
    this.#generation = await stage.apply(this.#scene.manifest());
    await this.#untilSeen(context, { versions: { '1.0.0': this.#scene.replicas }, reason: 'RolloutComplete' });
    this.#nodes = new Set(podsOf(stage.cluster(), this.#scene.name).map(({ node }) => node));
    this.#scene.startCalls(stage);
    await this.#untilAnswered(stage);
  }

  async update(context: StepContext, versions: Versions): Promise<void> {
    const edit = (text: string): string => text.replaceAll('1.0.0', '2.0.0');
    this.#generation = await context.stage.apply(this.#scene.manifest(), edit);
    await this.#untilSeen(context, { versions, reason: 'WaitingConfirm' });
    this.#output.print(`  event WaitingConfirm: ${await this.#waitingEvent(context.stage)}`);
    await this.#untilAnswered(context.stage);
  }

  async confirm(context: StepContext, versions: Versions): Promise<void> {
    await this.#patch(context.stage, { metadata: { annotations: { [ANNOTATION.confirmBatch]: '1' } } });
    await this.#untilSeen(context, { versions, reason: 'RolloutComplete' });
    await this.#untilAnswered(context.stage);
  }

  async rollBack(context: StepContext, versions: Versions): Promise<void> {
    await this.#patch(context.stage, ROLLBACK);
    await this.#untilSeen(context, { versions, reason: 'WaitingConfirm' });
    await this.#untilAnswered(context.stage);
  }

  async remove(context: StepContext): Promise<void> {
    const { stage } = context;
    const { name } = this.#scene;
    // Whoever deletes a ModuleDeployment right after its CRD was installed waits for that.
    this.#output.print('  Kubernetes deletes its Pods when its garbage collector knows the new kind: within a minute');
    await stage.controlPlane.admin.delete(`${PATH}/${name}`, { propagationPolicy: 'Background' });
    await untilFaultless(context, () => moduleRemovalFaults(stage.cluster(), stage.bases(), name));
  }

  async #patch({ controlPlane }: Stage, patch: object): Promise<void> {
    const { metadata } = await controlPlane.admin.mergePatch(`${PATH}/${this.#scene.name}`, patch);
    this.#generation = metadata.generation;
  }

  #untilSeen(context: StepContext, seen: Pick<ModuleRollout, 'versions' | 'reason'>): Promise<void> {
    const { stage } = context;
    const wanted = { ...seen, name: this.#scene.name, generation: this.#generation, nodes: this.#nodes };
    return untilFaultless(context, () => moduleRolloutFaults(stage.cluster(), stage.bases(), wanted));
  }

  #untilAnswered(stage: Stage): Promise<void> {
    const pods = podsOf(stage.cluster(), this.#scene.name);
    return this.#scene.untilAnswered(new Map(pods.map(({ node, modules }) => [node, modules[0]?.split(':')[1] ?? ''])));
  }

  /** What `kubectl describe` shows of it. */
  #waitingEvent({ controlPlane }: Stage): Promise<string> {
    const isWanted = ({ involvedObject, reason }: KubeObject): boolean =>
      involvedObject.kind === 'ModuleDeployment' &&
      involvedObject.name === this.#scene.name &&
      reason === 'WaitingConfirm';
    const find = async () => (await controlPlane.admin.list('/api/v1/namespaces/default/events')).find(isWanted);
    const options = { what: 'the event WaitingConfirm', timeoutMs: EVENT_WITHIN_MS, intervalMs: 100 };
    return poll(async () => (await find())?.message as string | undefined, options);
  }
}
