import { type Clock, sleep } from '../clock.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from '../metrics.ts';
import { workloadLevelOf } from './claim-order.ts';
import { excessOf, type LeadLease, spread } from './hand-over.ts';
import type { HandOverReason } from './lease-hold.ts';
import type { Member } from './member.ts';
import type { MembershipController } from './membership-controller.ts';
import type { NodeLeaseController } from './node-lease-controller.ts';

/** A tunnel, as far as it matters who has it. */
export interface TunnelState {
  readonly name: string;
  /** On the local clock; undefined = up. */
  downSince(): number | undefined;
}

export interface HandOverControllerOptions {
  readonly membership: Pick<MembershipController, 'isCurrent' | 'isValid' | 'members' | 'announce'>;
  readonly leases: Pick<NodeLeaseController, 'heldNames' | 'counts' | 'handOver' | 'size'>;
  readonly holder: string;
  readonly maxLevel: number;
  /** Whether the replicas keep their shares even when nothing forces them. */
  readonly isRebalancing: boolean;
  readonly tunnels: () => Iterable<TunnelState>;
  readonly tunnelOf: (nodeName: string) => string | undefined;
  /** Whether a command is under way at the base, or a write about it to the API server. */
  readonly isBusy: (nodeName: string) => boolean;
  /** No new commands are to be sent. */
  readonly onLeaving: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

const ROUND_MS = 1_000;
/** Handovers in one round: bases move a few at a time. */
const MOVES_PER_ROUND = 5;
/** How long the members have to stay the same before leases are moved for balance. */
const STABLE_MS = 10_000;
/** How long a tunnel is down before its bases are handed to a replica that has it up. */
const TUNNEL_DOWN_MS = 10_000;
/** How long a replica that ends waits for running commands. */
const COMMANDS_END_MS = 1_000;
const LOOK_AGAIN_MS = 50;

/** Gives leases away of its own will: when it ends, when it cannot reach the bases, and for balance. */
export class HandOverController {
  readonly #options: HandOverControllerOptions;
  #isGiving = false;
  /** The moves of the last round are still being written. */
  #isMoving = false;
  #memberText = '';
  #stableSince = Number.NEGATIVE_INFINITY;

  constructor(options: HandOverControllerOptions) {
    this.#options = options;
  }

  /** Looks every second until `signal` is aborted; then hands everything over and resolves. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(this.#options.clock, ROUND_MS, signal);
      if (!signal.aborted) this.round();
    }
    await this.#leave();
  }

  round(): void {
    const { membership, clock, isRebalancing, leases } = this.#options;
    this.#count();
    const members = membership.members();
    const text = JSON.stringify(members);
    if (!membership.isCurrent() || text !== this.#memberText) this.#stableSince = clock.now();
    this.#memberText = text;
    if (!membership.isCurrent() || this.#giveUnreachable()) return;
    const isStable = clock.now() - this.#stableSince >= STABLE_MS && leases.size().free === 0 && !this.#isMoving;
    if (isRebalancing && isStable) this.#rebalance(members);
  }

  /** Whether there was something to give. */
  #giveUnreachable(): boolean {
    const { tunnels, tunnelOf, leases } = this.#options;
    const given = [...tunnels()]
      .filter((tunnel) => this.#isLongDown(tunnel))
      .flatMap(({ name }) => {
        const others = this.#others().filter(({ tunnels: up }) => up.includes(name));
        const names = leases.heldNames().filter((nodeName) => tunnelOf(nodeName) === name);
        if (others.length > 0) void this.#give(names, others, 'TunnelDown');
        return others.length > 0 ? names : [];
      });
    return given.length > 0;
  }

  #isLongDown(tunnel: TunnelState): boolean {
    const since = tunnel.downSince();
    return since !== undefined && this.#options.clock.now() - since >= TUNNEL_DOWN_MS;
  }

  #rebalance(all: readonly Member[]): void {
    const { holder: self, leases, tunnels, isBusy } = this.#options;
    const names = [...tunnels()].map(({ name }) => name);
    const members = all.filter(({ isLeaving, tunnels: up }) => !isLeaving && names.every((name) => up.includes(name)));
    if (!members.some(({ id }) => id === self)) return;
    const receivers = excessOf({ self, members, held: leases.counts(), isGiving: this.#isGiving });
    this.#isGiving = receivers.length > 0;
    if (!this.#isGiving) return;
    const idle = leases.heldNames().filter((nodeName) => !isBusy(nodeName));
    const moves = receivers.slice(0, Math.min(MOVES_PER_ROUND, idle.length));
    this.#isMoving = true;
    const ended = moves.map((to, index) => leases.handOver(idle[index] ?? '', to, 'Rebalancing'));
    void Promise.all(ended).then(() => {
      this.#isMoving = false;
    });
  }

  async #leave(): Promise<void> {
    const { membership, leases, isBusy, onLeaving, clock, logger } = this.#options;
    if (!membership.isValid()) return;
    const startedAt = clock.now();
    onLeaving();
    const count = leases.heldNames().length;
    await membership.announce({ isLeaving: true });
    // Other replicas may be ending too: one that has announced it gets nothing.
    await sleep(clock, LOOK_AGAIN_MS);
    for (let held = leases.heldNames(); held.length > 0; held = leases.heldNames()) {
      const isOver = clock.now() - startedAt >= COMMANDS_END_MS;
      await this.#give(isOver ? held : held.filter((nodeName) => !isBusy(nodeName)), this.#others(), 'Leaving');
      if (isOver) break;
      await sleep(clock, LOOK_AGAIN_MS);
    }
    logger.info({ nodes: count, tookMs: Math.round(clock.now() - startedAt) }, 'all nodes are handed over');
  }

  /** The other replicas that stay. */
  #others(): Member[] {
    const { membership, holder } = this.#options;
    return membership.members().filter(({ id, isLeaving }) => id !== holder && !isLeaving);
  }

  async #give(names: readonly string[], others: readonly Member[], reason: HandOverReason): Promise<void> {
    const { leases, tunnelOf } = this.#options;
    const leads: LeadLease[] = names.map((nodeName) => ({ nodeName, tunnel: tunnelOf(nodeName) }));
    const given = spread(leads, others, leases.counts());
    await Promise.all(given.map(({ nodeName, to }) => leases.handOver(nodeName, to, reason)));
  }

  #count(): void {
    const { leases, metrics, holder, maxLevel } = this.#options;
    const held = leases.counts().get(holder) ?? 0;
    metrics.leasesHeld.set(leases.heldNames().length);
    const { known } = leases.size();
    metrics.leasesKnown.set(known);
    metrics.workloadLevel.set(workloadLevelOf(held, known, maxLevel));
  }
}
