import { seededRandom } from '../../support/api-fault-proxy.ts';

/** Something that happens to the world at a moment, and ends after a time. */
export interface Act {
  readonly atSeconds: number;
  /**
   * `kill`: a replica, started again; `die`: a base without a word, and it comes back; `silence`: a base says nothing
   * for a while; `end`: a base dies for good.
   */
  readonly kind: 'kill' | 'die' | 'silence' | 'end';
  /** Of the replica or of the base. */
  readonly index: number;
  /** Infinity: for good. */
  readonly forSeconds: number;
}

export interface PlanOptions {
  readonly seed: number;
  /** In which acts begin. */
  readonly seconds: number;
  readonly bases: number;
  readonly replicas: number;
  readonly killEverySeconds: number;
  readonly flapsEachMinute: number;
}

const FIRST_SECONDS = 5;
/** Before a replica is started again, and before a base is. */
const REPLICA_AWAY = { from: 3, to: 10 } as const;
const BASE_AWAY = { from: 5, to: 90 } as const;
const SILENT_SECONDS = 30;
/** A base is left alone for so long after it came back. */
const REST_SECONDS = 30;
/** Of the acts' time: a base that ends does so while there is time left to see that it is gone. */
const END_AT = 0.3;

/** 1 % of the bases, at least one. */
export function flapsEachMinuteOf(bases: number): number {
  return Math.max(1, Math.round(0.01 * bases));
}

/** The same acts for the same seed, in the order of time. The last base is the one that ends; replica 0 is spared. */
export function planOf(options: PlanOptions): Act[] {
  const random = seededRandom(options.seed);
  const between = ({ from, to }: { from: number; to: number }): number => from + random() * (to - from);
  const { seconds, bases, replicas, killEverySeconds, flapsEachMinute } = options;
  const acts: Act[] = [];
  const mortal = bases - 1;
  if (mortal > 0) {
    acts.push({ atSeconds: END_AT * seconds, kind: 'end', index: mortal, forSeconds: Number.POSITIVE_INFINITY });
  }
  for (let turn = 0; replicas > 1 && (turn + 1) * killEverySeconds <= seconds; turn++) {
    const index = 1 + (turn % (replicas - 1));
    acts.push({ atSeconds: (turn + 1) * killEverySeconds, kind: 'kill', index, forSeconds: between(REPLICA_AWAY) });
  }
  const freeAt = Array.from({ length: mortal }, () => 0);
  const flaps = Math.floor((flapsEachMinute * seconds) / 60);
  const every = 60 / flapsEachMinute;
  for (let flap = 0; flap < flaps; flap++) {
    const latest = Math.max(FIRST_SECONDS, (flap + 1) * every);
    const atSeconds = between({ from: Math.max(FIRST_SECONDS, flap * every), to: latest });
    const free = [...freeAt.keys()].filter((index) => (freeAt[index] ?? 0) <= atSeconds);
    const index = free[Math.floor(random() * free.length)];
    const kind = flap % 2 === 0 ? 'die' : 'silence';
    const forSeconds = kind === 'die' ? between(BASE_AWAY) : SILENT_SECONDS;
    // All are away, or have just come back: a small world that flaps much.
    if (index === undefined) continue;
    freeAt[index] = atSeconds + forSeconds + REST_SECONDS;
    acts.push({ atSeconds, kind, index, forSeconds });
  }
  return acts.sort((a, b) => a.atSeconds - b.atSeconds);
}
