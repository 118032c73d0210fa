import { setTimeout as delay } from 'node:timers/promises';
import type { Act } from './plan.ts';
import type { SoakWorld } from './soak-world.ts';

/** Does to the world what the plan says, and undoes it. */
export class Actor {
  readonly #world: SoakWorld;
  readonly #onProblem: (error: unknown) => void;
  readonly #stopped = new AbortController();
  readonly #running: Promise<unknown>;
  /** How often what was done. */
  readonly counts: Record<Act['kind'], number> = { kill: 0, die: 0, silence: 0, end: 0 };

  /** Begins at once. */
  constructor(world: SoakWorld, acts: readonly Act[], onProblem: (error: unknown) => void) {
    this.#world = world;
    this.#onProblem = onProblem;
    const startedAt = performance.now();
    this.#running = Promise.all(acts.map((act) => this.#play(act, startedAt + act.atSeconds * 1000)));
  }

  /** What was not begun does not happen; what is away comes back now, but for a base that ended. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }

  async #play(act: Act, at: number): Promise<void> {
    await this.#pause(at - performance.now());
    if (this.#stopped.signal.aborted) return;
    this.counts[act.kind] += 1;
    try {
      if (act.kind === 'kill') await this.#kill(act);
      else await this.#takeAway(act);
    } catch (error) {
      this.#onProblem(error);
    }
  }

  async #kill({ index, forSeconds }: Act): Promise<void> {
    const { history } = this.#world;
    const replica = this.#world.replica(index);
    history.note(`SIGKILL of ${replica.name}`);
    await replica.kill();
    await this.#pause(forSeconds * 1000);
    history.note(`${replica.name} is started again`);
    await replica.start();
  }

  async #takeAway({ kind, index, forSeconds }: Act): Promise<void> {
    const { history } = this.#world;
    const base = this.#world.base(index);
    const { identity } = base;
    history.note(`${identity}: ${kind} for ${forSeconds.toFixed(1)} s`);
    const endOutage = history.outageOf(identity);
    if (kind === 'silence') base.silence();
    else await base.kill();
    if (kind === 'end') return;
    await this.#pause(forSeconds * 1000);
    history.note(`${identity} is back`);
    if (kind === 'silence') base.speak();
    else {
      history.restarted(identity);
      await base.restart();
    }
    endOutage();
  }

  /** Ends early when all ends. */
  async #pause(ms: number): Promise<void> {
    await delay(Math.max(0, ms), undefined, { signal: this.#stopped.signal }).catch(() => {});
  }
}
