import { setTimeout as delay } from 'node:timers/promises';
import { ApiError } from '../../../samples/control-plane/api-client.ts';
import { nodeNameOf } from '../../../src/labels.ts';
import { RollingDeployment } from '../../support/cluster/roller.ts';
import { modulePod } from '../../support/manifests.ts';
import type { World } from '../../support/world.ts';

export interface ChurnOptions {
  readonly world: World;
  /** Of its Pods and their modules, with a number behind it. */
  readonly name: string;
  readonly podsEachSecond: number;
  readonly lifeMs: { readonly from: number; readonly to: number };
  /** Where Pods may go. */
  readonly bases: () => readonly string[];
  /** Gives [0, 1). */
  readonly random: () => number;
  /** What should not have happened. */
  readonly onProblem: (error: unknown) => void;
}

const PODS = '/api/v1/namespaces/default/pods';
const HOSTNAME = 'kubernetes.io/hostname';

/** Pods, each with a module of its own, come at a steady rate, and each goes after a while. */
export class PodChurn {
  readonly #options: ChurnOptions;
  readonly #stopped = new AbortController();
  /** Emptied as Pods are deleted. */
  readonly #living = new Set<Promise<void>>();
  readonly #running: Promise<void>;
  /** Pods made. */
  count = 0;

  constructor(options: ChurnOptions) {
    this.#options = options;
    this.#running = this.#run();
  }

  /** Resolves when the last Pod was asked to go. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
    await Promise.all(this.#living);
  }

  async #run(): Promise<void> {
    const { name, podsEachSecond, lifeMs: life, random, onProblem } = this.#options;
    const { signal } = this.#stopped;
    const startedAt = performance.now();
    while (!signal.aborted) {
      const lifeMs = life.from + random() * (life.to - life.from);
      const living = this.#live(`${name}-${this.count++}`, lifeMs).catch(onProblem);
      this.#living.add(living);
      void living.then(() => this.#living.delete(living));
      const nextAt = startedAt + (this.count * 1000) / podsEachSecond;
      await delay(Math.max(0, nextAt - performance.now()), undefined, { signal }).catch(() => {});
    }
  }

  async #live(name: string, lifeMs: number): Promise<void> {
    const { world, bases, random } = this.#options;
    const { admin } = world;
    const among = bases();
    // Left to itself the scheduler gives nearly all to one base, and one replica has all the work.
    const nodeSelector = { [HOSTNAME]: nodeNameOf(among[Math.floor(random() * among.length)] ?? '') };
    await admin.post(PODS, modulePod(name, [{ name }], { spec: { nodeSelector } }));
    await delay(lifeMs, undefined, { signal: this.#stopped.signal }).catch(() => {});
    await admin.delete(`${PODS}/${name}`).catch((error: unknown) => {
      // It went with its base.
      if (!(error instanceof ApiError && error.statusCode === 404)) throw error;
    });
  }
}

const PAUSE_MS = { from: 2_000, to: 8_000 } as const;
const LOOK_EVERY_MS = 500;
const DEPLOYMENTS = 3;
/** A base that is dead keeps no roll-out from its end: there are others. */
const BASES_FOR_EACH_COPY = 5;
/** A quarter of them may be away, by default: with fewer than four that is none, and docs/limits.md says what follows. */
const LEAST_COPIES = 4;

type RollingOptions = Pick<ChurnOptions, 'world' | 'random' | 'onProblem'>;

/**
 * Deployments that roll on and on, with a pause after each roll-out: what else happens is to be seen beside them.
 * test/support/cluster/roller.ts, which makes none, would be most of the churn.
 */
export class RollingChurn {
  readonly #options: RollingOptions;
  readonly #deployments: readonly RollingDeployment[];
  readonly #stopped = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  /** Roll-outs that are complete. */
  count = 0;

  constructor(options: RollingOptions, bases: number) {
    this.#options = options;
    const replicas = Math.max(LEAST_COPIES, Math.floor(bases / BASES_FOR_EACH_COPY));
    this.#deployments = Array.from({ length: DEPLOYMENTS }, (_, index) => {
      return new RollingDeployment(options.world, `rolling${index}`, { replicas });
    });
  }

  /** The first versions. */
  async deploy(): Promise<void> {
    for (const deployment of this.#deployments) await deployment.next();
  }

  start(): void {
    this.#running = Promise.all(this.#deployments.map((deployment) => this.#roll(deployment)));
  }

  /** Begins no further roll-out; one under way is left to whoever waits for it. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }

  async untilRolled(timeoutMs: number): Promise<void> {
    await Promise.all(this.#deployments.map((deployment) => deployment.untilRolled(timeoutMs)));
  }

  async #roll(deployment: RollingDeployment): Promise<void> {
    const { random, onProblem } = this.#options;
    const { signal } = this.#stopped;
    const pause = (ms: number): Promise<unknown> => delay(ms, undefined, { signal }).catch(() => {});
    while (!signal.aborted) {
      try {
        if (await deployment.isRolled()) {
          this.count += 1;
          await pause(PAUSE_MS.from + random() * (PAUSE_MS.to - PAUSE_MS.from));
          if (!signal.aborted) await deployment.next();
        }
      } catch (error) {
        onProblem(error);
      }
      await pause(LOOK_EVERY_MS);
    }
  }
}
