import type { BenchReplica } from './bench-replica.ts';
import { type Succession, successionsOf } from './lease-history.ts';
import type { ReplicaWorld } from './replica-world.ts';

const WITHIN_MS = 90_000;

/** Seconds from the signal on. */
export interface SuccessionTimes {
  /** Until the last of its leases named another living replica. */
  readonly held: number;
  /** Until the last of them was written by that replica itself, which leads from then on. */
  readonly led: number;
  /** The same for half of them. */
  readonly halfLed: number;
  readonly leases: number;
}

/** Several replicas, and what a watch of their leases has told. */
export type Sharers = Pick<ReplicaWorld, 'living' | 'livingNames' | 'leases' | 'end'>;

/** The replica with the most leases. */
export function busiestOf({ living, leases }: Pick<Sharers, 'living' | 'leases'>): BenchReplica {
  const [busiest] = living.toSorted((a, b) => leases.heldBy(b.name).length - leases.heldBy(a.name).length);
  if (!busiest) throw new Error('no replica lives');
  return busiest;
}

/** Sends the signal, and waits until others lead all that it led. `onSent`: at once after it, wall clock in ms. */
export async function endAndWatch(
  replicas: Sharers,
  {
    victim,
    signal,
    onSent = () => {},
  }: { victim: BenchReplica; signal: 'SIGKILL' | 'SIGTERM'; onSent?: (at: number) => void },
): Promise<SuccessionTimes & { exit: number }> {
  const { leases } = replicas;
  const bases = leases.heldBy(victim.name);
  const others = replicas.livingNames.filter((name) => name !== victim.name);
  const view = leases.view();
  const since = Date.now();
  const ended = replicas.end(victim, signal).then(() => Date.now());
  onSent(since);
  const look = (): Succession[] => successionsOf(view(), { bases, since, others, isHolderDead: signal === 'SIGKILL' });
  const isLed = ({ confirmedAt }: Succession): boolean => confirmedAt !== undefined;
  const notYet = (): string => {
    const waiting = look().filter((succession) => !isLed(succession));
    const some = waiting.slice(0, 3).map(({ base }) => leases.wordsOf(base));
    return `others lead what ${victim.name} led; missing: ${waiting.length} of ${bases.length}: ${some.join(', ')}`;
  };
  const all = await leases.until(notYet, WITHIN_MS, () => {
    const successions = look();
    return successions.every(isLed) ? successions : undefined;
  });
  const exit = ((await ended) - since) / 1000;
  const seconds = (key: 'heldAt' | 'confirmedAt'): number[] => {
    return all.map((succession) => ((succession[key] ?? Number.NaN) - since) / 1000).sort((a, b) => a - b);
  };
  const [held, led] = [seconds('heldAt'), seconds('confirmedAt')];
  return {
    held: held.at(-1) ?? Number.NaN,
    led: led.at(-1) ?? Number.NaN,
    halfLed: led[Math.floor(led.length / 2)] ?? Number.NaN,
    leases: bases.length,
    exit,
  };
}
