import type { PodLine } from './watch-line.ts';

const STEPS = ['bound', 'ready', 'gone'] as const;
export type PodStep = (typeof STEPS)[number];

/** Wall clock, ms: when a watch first told of each step. */
type PodLife = { restarts: number } & Partial<Record<PodStep, number>>;

export interface PodsSeen {
  /** Pods that got so far. */
  readonly counts: Readonly<Record<PodStep, number>>;
  /** Wall clock, ms: when the last of them did; 0 where none has. */
  readonly last: Readonly<Record<PodStep, number>>;
  /** From bound to Ready, ms, sorted. */
  readonly startups: readonly number[];
  readonly restarts: number;
}

/** What became of the Pods of one group. */
class PodGroup {
  /** By UID. Kept for the whole run: it is the result. */
  readonly #lives = new Map<string, PodLife>();
  readonly counts: Record<PodStep, number> = { bound: 0, ready: 0, gone: 0 };
  readonly #last: Record<PodStep, number> = { bound: 0, ready: 0, gone: 0 };

  take({ uid, isBound, isReady, isGone, restarts }: PodLine, at: number): void {
    const life = this.#lives.get(uid) ?? { restarts: 0 };
    this.#lives.set(uid, life);
    if (isBound) this.#step(life, 'bound', at);
    if (isReady) this.#step(life, 'ready', at);
    if (isGone) this.#step(life, 'gone', at);
    life.restarts = Math.max(life.restarts, restarts);
  }

  seen(): PodsSeen {
    const lives = [...this.#lives.values()];
    const startups = lives.flatMap(({ bound, ready }) =>
      bound === undefined || ready === undefined ? [] : [ready - bound],
    );
    return {
      counts: this.counts,
      last: this.#last,
      startups: startups.sort((a, b) => a - b),
      restarts: lives.reduce((sum, { restarts }) => sum + restarts, 0),
    };
  }

  #step(life: PodLife, step: PodStep, at: number): void {
    if (life[step] !== undefined) return;
    life[step] = at;
    this.counts[step] += 1;
    this.#last[step] = at;
  }
}

/** The groups of all Pods that a watch tells of. */
export class PodBook {
  readonly #groups = new Map<string, PodGroup>();

  take(pod: PodLine, at: number): void {
    if (pod.group !== undefined) this.#of(pod.group).take(pod, at);
  }

  count(group: string, step: PodStep): number {
    return this.#of(group).counts[step];
  }

  seen(group: string): PodsSeen {
    return this.#of(group).seen();
  }

  #of(name: string): PodGroup {
    const group = this.#groups.get(name) ?? new PodGroup();
    this.#groups.set(name, group);
    return group;
  }
}
