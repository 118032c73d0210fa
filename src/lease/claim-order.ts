import { phaseOf } from '../queue/phase.ts';
import type { Member } from './member.ts';

/** How much longer a replica waits for each level of its load. */
export const LEVEL_DELAY_MS = 100;
/** A replica waits this long for each that is before it in order: those may be gone, or not have heard of the base. */
export const TURN_MS = 2_000;

export interface ClaimInput {
  readonly nodeName: string;
  /** The tunnel of the base; undefined = not known. */
  readonly tunnel: string | undefined;
  readonly self: string;
  readonly members: readonly Member[];
  /** Leases held, by member; absent = 0. */
  readonly held: ReadonlyMap<string, number>;
  /** How many VNodes there are. */
  readonly known: number;
  readonly maxLevel: number;
}

/**
 * Which of `maxLevel` equal parts of [0, 1] the share of VNodes held falls into; 0 when there are none.
 * The parts are half open, and all VNodes are of the last part.
 */
export function workloadLevelOf(held: number, known: number, maxLevel: number): number {
  return known === 0 ? 0 : Math.max(0, Math.min(maxLevel - 1, Math.floor((held / known) * maxLevel)));
}

/** Who may lead a VNode of that tunnel: who does not leave and has the tunnel up; where nobody has, whoever stays. */
export function eligibleFor(tunnel: string | undefined, members: readonly Member[]): readonly Member[] {
  const staying = members.filter(({ isLeaving }) => !isLeaving);
  if (tunnel === undefined) return staying;
  const able = staying.filter(({ tunnels }) => tunnels.includes(tunnel));
  return able.length > 0 ? able : staying;
}

/** No member has more than its fair share and one before all others have theirs. */
export function isFull(held: number, known: number, memberCount: number): boolean {
  return held >= Math.ceil(known / memberCount) + 1;
}

/**
 * How long `self` waits before it tries to take a free lease; undefined = it should not try. The least loaded go
 * first; among equals it is a matter of the two names (rendezvous hashing), so that one of them tries and the others
 * see it.
 */
export function claimDelayMs(input: ClaimInput): number | undefined {
  const { nodeName, tunnel, self, members, held, known, maxLevel } = input;
  const eligible = eligibleFor(tunnel, members);
  const ranks = eligible.map(({ id }) => {
    const count = held.get(id) ?? 0;
    const level = workloadLevelOf(count, known, maxLevel);
    return { id, level, isFull: isFull(count, known, eligible.length), score: scoreOf(id, nodeName) };
  });
  const own = ranks.find(({ id }) => id === self);
  if (own === undefined) return undefined;
  const isBefore = (a: typeof own): boolean =>
    a.isFull !== own.isFull ? own.isFull : a.level !== own.level ? a.level < own.level : a.score > own.score;
  return ranks.filter(isBefore).length * TURN_MS + own.level * LEVEL_DELAY_MS;
}

/** In [0, 1), as good as by chance, and the same for everybody. */
export function scoreOf(memberId: string, nodeName: string): number {
  return phaseOf(`${memberId}/${nodeName}`);
}
