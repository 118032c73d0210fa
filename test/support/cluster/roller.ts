import { setTimeout as delay } from 'node:timers/promises';
import { moduleWorkload, type WorkloadOptions } from '../manifests.ts';
import type { World } from '../world.ts';

const LOOK_EVERY_MS = 250;
/** Between two roll-outs of a Deployment: with shorter rests, clusters side by side need more than two cores. */
const REST_MS = 8_000;

/** A Deployment whose module goes from version to version. */
export class RollingDeployment {
  readonly name: string;
  readonly #world: World;
  readonly #options: WorkloadOptions;
  #version = 0;

  constructor(world: World, name: string, options: WorkloadOptions) {
    this.#world = world;
    this.name = name;
    this.#options = options;
  }

  /** Asks for the next version; throws while the API server is away. */
  async next(): Promise<void> {
    const version = `1.0.${this.#version + 1}`;
    await this.#world.controlPlane.apply(moduleWorkload(this.name, [{ name: this.name, version }], this.#options));
    this.#version += 1;
  }

  /** Every Pod has the version asked for last, and is Ready. Throws while the API server is away. */
  async isRolled(): Promise<boolean> {
    const path = `/apis/apps/v1/namespaces/default/deployments/${this.name}`;
    const { metadata, spec, status } = await this.#world.admin.get(path);
    if (status?.observedGeneration !== metadata.generation) return false;
    return [status.replicas, status.updatedReplicas, status.availableReplicas].every((n) => n === spec.replicas);
  }

  async untilRolled(timeoutMs: number): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    while (!(await this.isRolled().catch(() => false))) {
      if (performance.now() > deadline) throw new Error(`${this.name} has not rolled within ${timeoutMs} ms`);
      await delay(LOOK_EVERY_MS);
    }
  }
}

/** Rolls Deployments on and on, each for itself, whatever becomes of the API server meanwhile. */
export class Roller {
  readonly #deployments: readonly RollingDeployment[];
  readonly #stopped = new AbortController();
  readonly #running: Promise<unknown>;
  /** Roll-outs that are complete. */
  count = 0;

  constructor(deployments: readonly RollingDeployment[]) {
    this.#deployments = deployments;
    this.#running = Promise.all(this.#deployments.map((deployment) => this.#roll(deployment)));
  }

  /** Begins no further roll-out; one under way is left to whoever waits for it. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }

  async #roll(deployment: RollingDeployment): Promise<void> {
    let isAsked = false;
    while (!this.#stopped.signal.aborted) {
      let restMs = LOOK_EVERY_MS;
      try {
        if (!isAsked) await deployment.next();
        isAsked = true;
        if (await deployment.isRolled()) {
          isAsked = false;
          this.count += 1;
          restMs = REST_MS;
        }
      } catch {
        // The API server is away.
      }
      await delay(restMs, undefined, { signal: this.#stopped.signal }).catch(() => {});
    }
  }
}
