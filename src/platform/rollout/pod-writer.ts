import { messageOf } from '../../errors.ts';
import { objectKey } from '../../kube/watch/informer-types.ts';
import type { Logger } from '../../logger.ts';
import { TerminalError } from '../../reconcile/reconciler.ts';
import type { CachedModuleDeployment, ModuleTemplate } from './module-deployment.ts';
import type { PodStore } from './pod-store.ts';
import { type Deletion, deletionEvent, type RolloutEvent } from './rollout-events.ts';
import type { RolloutPlan } from './rollout-plan.ts';
import { podFaultOf } from './rollout-pod.ts';
import type { Failure } from './rollout-status.ts';

/** Maximum number of Pods that one reconcile creates or deletes: another namespace may wait for the worker. */
const MAX_STEP = 64;
/**
 * Creations come in groups of 1, 2 and then 4: a template that the API server refuses costs one call, and the workers of
 * one namespace do not fill the lane to the API server.
 */
const MAX_AT_ONCE = 4;

export interface PodWriterOptions {
  readonly pods: Pick<PodStore, 'create' | 'delete' | 'namesOf'>;
  /** With what the author of a template has left out. */
  readonly complete: (template: ModuleTemplate) => ModuleTemplate;
  readonly logger: Logger;
}

export interface Step {
  readonly failure?: (Failure & { readonly error: unknown }) | undefined;
  /** There is more to do. */
  readonly isPart: boolean;
}

/** Carries out what a plan says about Pods. */
export class PodWriter {
  readonly #options: PodWriterOptions;
  /** How many were created at once without a failure, by the UID of the ModuleDeployment. Emptied by `forget`. */
  readonly #groups = new Map<string, number>();

  constructor(options: PodWriterOptions) {
    this.#options = options;
  }

  forget(uid: string): void {
    this.#groups.delete(uid);
  }

  /** Deletes, then creates. Stops at the first failure and returns it. `templates`: by their hash. */
  async carryOut(
    deployment: CachedModuleDeployment,
    { deletions, creations }: Pick<RolloutPlan, 'deletions' | 'creations'>,
    templates: ReadonlyMap<string, ModuleTemplate>,
    report: (event: RolloutEvent) => void,
  ): Promise<Step> {
    const now = creations.slice(0, Math.max(0, MAX_STEP - deletions.length));
    const step = await this.delete(deployment, deletions, report);
    const isPart = step.isPart || now.length < creations.length;
    if (step.failure !== undefined || now.length === 0) return { ...step, isPart };
    return { failure: await this.#create(deployment, now, templates, report), isPart };
  }

  async delete(
    deployment: CachedModuleDeployment,
    deletions: readonly Deletion[],
    report: (event: RolloutEvent) => void,
  ): Promise<Step> {
    const { pods, logger } = this.#options;
    const now = deletions.slice(0, MAX_STEP);
    for (const { pod, why } of now) {
      try {
        await pods.delete(deployment, pod);
      } catch (error) {
        const message = `Pod ${pod.name}: ${messageOf(error)}`;
        report(['Warning', 'FailedDelete', message]);
        return { failure: { reason: 'FailedDelete', message, error }, isPart: false };
      }
      logger.debug({ deployment: objectKey(deployment), pod: pod.name, why }, 'pod deleted');
      report(deletionEvent(pod, why));
    }
    return { isPart: now.length < deletions.length };
  }

  async #create(
    deployment: CachedModuleDeployment,
    creations: RolloutPlan['creations'],
    templates: ReadonlyMap<string, ModuleTemplate>,
    report: (event: RolloutEvent) => void,
  ): Promise<Step['failure']> {
    const { pods, complete } = this.#options;
    const { spec, uid } = deployment;
    const names = pods.namesOf(
      deployment,
      creations.map(({ revision }) => revision),
    );
    const create = async ({ revision: hash, place }: RolloutPlan['creations'][number], name: string): Promise<void> => {
      const template = templates.get(hash) ?? spec.template;
      const fault = podFaultOf(deployment, { hash, template });
      if (fault !== undefined) throw new TerminalError('Rollout.TemplateInvalid', fault);
      await pods.create(deployment, { name, hash, template: complete(template), replaces: place });
      report(['Normal', 'SuccessfulCreate', `created Pod ${name}`]);
    };
    let done = 0;
    for (let size = this.#groups.get(uid) ?? 1; done < creations.length; size = Math.min(2 * size, MAX_AT_ONCE)) {
      const group = creations.slice(done, done + size);
      const results = await Promise.allSettled(group.map((one, index) => create(one, names[done + index] ?? '')));
      const failed = results.find((result) => result.status === 'rejected');
      if (failed) {
        this.#groups.delete(uid);
        const message = `a Pod: ${messageOf(failed.reason)}`;
        report(['Warning', 'FailedCreate', message]);
        return { reason: 'FailedCreate', message, error: failed.reason };
      }
      done += group.length;
      this.#groups.set(uid, Math.min(2 * size, MAX_AT_ONCE));
    }
    return undefined;
  }
}
