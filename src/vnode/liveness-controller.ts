import type { Clock } from '../clock.ts';
import type { Traffic } from '../kube/transport/concurrency-limit.ts';
import type { Leadership } from '../leadership.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from '../metrics.ts';
import { phaseOf } from '../queue/phase.ts';
import type { Tunnel } from '../tunnel/tunnel.ts';
import type { Tunnels } from '../tunnel/tunnels.ts';
import type { BaseCandidates } from './base-candidates.ts';
import type { BaseInquirer } from './base-inquirer.ts';
import type { BaseQuestions } from './base-questions.ts';
import {
  ANSWER_WITHIN_MS,
  BINDS_WITHIN_MS,
  type Brake,
  type BrakeReason,
  graceAfterOutageMs,
  isMassSilence,
  livenessOf,
  MISSED_HEARTBEAT_MS,
  nextBrake,
  type Silence,
} from './liveness.ts';
import type { VNode, VNodeStore } from './vnode.ts';

export interface LivenessControllerOptions {
  readonly store: VNodeStore;
  readonly tunnels: Tunnels;
  readonly inquirer: BaseInquirer;
  readonly candidates: BaseCandidates;
  /** Bases of Nodes that another replica may lead are that replica's to judge. */
  readonly leadership: Pick<Leadership, 'isFollowed'>;
  /** Traffic of requests to the API server. */
  readonly traffic: Pick<Traffic, 'isCalm'>;
  readonly enqueueNode: (nodeName: string) => void;
  readonly enqueuePods: (nodeName: string) => void;
  /** Called in each sweep. */
  readonly onSweep: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

const SWEEP_INTERVAL_MS = 1_000;
/**
 * A sweep that comes this late means that the process did not run: messages that arrived meanwhile are not read yet.
 */
const PAUSED_AFTER_MS = 5_000;
const PROBE_TIMEOUT_MS = 5_000;
/** In steady state a base is asked for list and health this often: not more than twice a minute in all. */
const ROUTINE_INTERVAL_MS = 65_000;
/** A question that was sent less than this before its routine moment counts as the routine one. */
const FRESH_MS = 10_000;

interface TunnelState {
  brake: Brake;
  isLinkProven: boolean;
  isProbing: boolean;
  /** When the controller's last outage began: a base that was heard since has reconnected. */
  hearingSince: number;
  /** Time until which the other bases may still be reconnecting. */
  graceUntil: number;
}

/** One sweep a second judges all bases, and asks those that are due for list and health. */
export class LivenessController {
  readonly #options: LivenessControllerOptions;
  readonly #tunnels = new Map<Tunnel, TunnelState>();
  #sweptAt: number;

  constructor(options: LivenessControllerOptions) {
    this.#options = options;
    this.#sweptAt = options.clock.now();
  }

  run(signal: AbortSignal): Promise<void> {
    this.#sweptAt = this.#options.clock.now();
    return new Promise((resolve) => {
      const { clock } = this.#options;
      const next = (): void => {
        if (signal.aborted) return;
        this.sweep();
        timer = clock.setTimer(next, SWEEP_INTERVAL_MS);
      };
      let timer = clock.setTimer(next, SWEEP_INTERVAL_MS);
      signal.addEventListener(
        'abort',
        () => {
          timer.cancel();
          resolve();
        },
        { once: true },
      );
    });
  }

  /** One round over all bases; called every second. */
  sweep(): void {
    const now = this.#options.clock.now();
    const wasPaused = now - this.#sweptAt > PAUSED_AFTER_MS;
    this.#sweptAt = now;
    const byTunnel = Map.groupBy(this.#options.store.values(), ({ place }) => place.tunnel);
    for (const tunnel of this.#options.tunnels.all()) {
      const vnodes = (byTunnel.get(tunnel.name) ?? []).filter(({ life }) => life.liveness !== 'Dead');
      const state = this.#stateOf(tunnel);
      this.#brake(tunnel, state, vnodes, { now, wasPaused });
      for (const vnode of vnodes) {
        this.#judge(vnode, state, now);
        if (tunnel.isUp()) this.#askWhenDue(vnode, now);
      }
    }
    this.#options.candidates.sweep();
    this.#options.onSweep();
    this.#count();
  }

  #brake(tunnel: Tunnel, state: TunnelState, vnodes: readonly VNode[], at: { now: number; wasPaused: boolean }): void {
    const { now, wasPaused } = at;
    const silences = vnodes.map((vnode) => silenceOf(vnode, state, now));
    const before = state.brake;
    if (!tunnel.isUp()) state.isLinkProven = false;
    const { isLinkProven } = state;
    state.brake = nextBrake(before, {
      now,
      isLinkUp: tunnel.isUp(),
      isLinkProven,
      isMassSilence: isMassSilence(silences),
      wasPaused,
    });
    if (state.brake !== before) this.#onBrakeChange(tunnel, state, before, vnodes, now);
    if (state.brake.kind === 'Proving' && tunnel.isUp() && !state.isProbing) this.#probe(tunnel, state);
  }

  #onBrakeChange(tunnel: Tunnel, state: TunnelState, before: Brake, vnodes: readonly VNode[], now: number): void {
    const { brake } = state;
    if (brake.kind === 'Proving') {
      if (before.kind !== 'Proving') this.#freeze(tunnel, state, brake.reason);
    } else if (brake.kind === 'Asking') {
      this.#askSilent(tunnel, state, before, vnodes, now);
    } else {
      this.#release(tunnel, before, vnodes, now);
    }
    this.#options.metrics.livenessFrozen.set({ tunnel: tunnel.name }, brake.kind === 'Released' ? 0 : 1);
  }

  #freeze(tunnel: Tunnel, state: TunnelState, reason: BrakeReason): void {
    state.isLinkProven = false;
    this.#options.logger.warn({ tunnel: tunnel.name, reason }, 'liveness is frozen until the link is proven');
  }

  #askSilent(tunnel: Tunnel, state: TunnelState, before: Brake, vnodes: readonly VNode[], now: number): void {
    if (before.kind === 'Proving' && before.reason === 'LinkDown') {
      state.hearingSince = before.since;
      state.graceUntil = now + graceAfterOutageMs(now - before.since);
    }
    const silent = vnodes.filter(({ life }) => now - life.lastHeardAt >= MISSED_HEARTBEAT_MS);
    for (const vnode of silent) this.#options.inquirer.askHealth(vnode);
    this.#options.logger.info({ tunnel: tunnel.name, asked: silent.length }, 'link is proven, silent bases are asked');
  }

  #release(tunnel: Tunnel, before: Brake, vnodes: readonly VNode[], now: number): void {
    const askedAt = before.kind === 'Asking' ? before.since : now;
    for (const { life } of vnodes) life.confirmSilence(askedAt - life.lastHeardAt >= MISSED_HEARTBEAT_MS);
    const silent = vnodes.filter(({ life }) => life.isConfirmedSilent).length;
    this.#options.logger.info({ tunnel: tunnel.name, silent }, 'liveness is judged again');
  }

  #probe(tunnel: Tunnel, state: TunnelState): void {
    state.isProbing = true;
    void tunnel.probeLink(PROBE_TIMEOUT_MS).then((isProven) => {
      state.isProbing = false;
      state.isLinkProven = isProven && tunnel.isUp();
    });
  }

  #judge(vnode: VNode, state: TunnelState, now: number): void {
    const { enqueueNode, enqueuePods, logger, leadership } = this.#options;
    const isOthers = leadership.isFollowed(vnode.nodeName);
    const found = livenessOf(silenceOf(vnode, state, now), state.brake.kind !== 'Released');
    const verdict = isOthers && found === 'Dead' ? 'Unreachable' : found;
    const { life } = vnode;
    // Only a sign of life makes a base reachable again: the VNodeController sees to that.
    if (verdict === 'Reachable') return;
    if (verdict === 'Suspended' && life.isSilent) return;
    if (verdict === life.liveness && !life.isSuspended) return;
    const silentSeconds = Math.round((now - life.lastHeardAt) / 1000);
    if (verdict === 'Suspended') {
      life.suspend();
    } else {
      vnode.fallSilent(verdict);
      if (!isOthers) logger.warn({ node: vnode.nodeName, liveness: verdict, silentSeconds }, 'base is silent');
    }
    enqueueNode(vnode.nodeName);
    enqueuePods(vnode.nodeName);
  }

  #askWhenDue(vnode: VNode, now: number): void {
    const { life, questions } = vnode;
    if (life.isSilent) return;
    const { inquirer } = this.#options;
    const missedAt = life.lastHeardAt + MISSED_HEARTBEAT_MS;
    // A heartbeat may be lost: the base is asked before it is judged.
    if (now >= missedAt && questions.healthAskedAt < missedAt) inquirer.askHealth(vnode);
    if (now >= questions.healthDueAt || isOnlyHinted(vnode, now)) inquirer.askHealth(vnode);
    if (isRefreshDue(questions.refresh, this.#options.traffic, now)) {
      inquirer.ask(vnode);
      return;
    }
    if (questions.lists.takeSkipped(now)) inquirer.askList(vnode);
    if (isBinding(vnode, now)) inquirer.askList(vnode);
    // What follows operations is asked for soon.
    if (questions.refresh !== undefined) return;
    const routineAt = routineMomentOf(vnode, now);
    if (vnode.ledger.askedAt + FRESH_MS < routineAt) inquirer.askList(vnode);
    if (questions.healthAskedAt + FRESH_MS < routineAt) inquirer.askHealth(vnode);
  }

  #count(): void {
    const counts = { Reachable: 0, Unreachable: 0, Dead: 0, Suspended: 0 };
    let unknownModules = 0;
    let preexistingModules = 0;
    for (const vnode of this.#options.store.values()) {
      counts[vnode.life.isSuspended ? 'Suspended' : vnode.life.liveness]++;
      unknownModules += vnode.unknown.size + vnode.pendingRemovals.size;
      preexistingModules += vnode.contact.keptCount;
    }
    const { metrics } = this.#options;
    for (const [state, count] of Object.entries(counts)) metrics.vnodes.set({ state }, count);
    metrics.unknownModules.set(unknownModules);
    metrics.preexistingModules.set(preexistingModules);
  }

  #stateOf(tunnel: Tunnel): TunnelState {
    const known = this.#tunnels.get(tunnel);
    if (known) return known;
    const state: TunnelState = {
      brake: { kind: 'Released' },
      isLinkProven: false,
      isProbing: false,
      hearingSince: Number.NEGATIVE_INFINITY,
      graceUntil: Number.NEGATIVE_INFINITY,
    };
    this.#tunnels.set(tunnel, state);
    this.#options.metrics.livenessFrozen.set({ tunnel: tunnel.name }, 0);
    return state;
  }
}

/** The last of the base's own moments for routine questions: bases that came together are not asked together for ever. */
function routineMomentOf({ life, nodeName }: VNode, now: number): number {
  const firstAt = life.metAt + phaseOf(nodeName) * ROUTINE_INTERVAL_MS;
  if (now < firstAt) return Number.NEGATIVE_INFINITY;
  return now - ((now - firstAt) % ROUTINE_INTERVAL_MS);
}

/** What follows operations waits while there is a burst of them: many at one base share one question. */
function isRefreshDue(refresh: BaseQuestions['refresh'], { isCalm }: Pick<Traffic, 'isCalm'>, now: number): boolean {
  return refresh !== undefined && (isCalm ? refresh.at : refresh.latestAt) <= now;
}

/** Whether heartbeats of the base prove nothing, so that it lives by its answers: one lost question is not its end. */
function isOnlyHinted({ life, proof, questions }: VNode, now: number): boolean {
  return (
    now - proof.hintedAt < MISSED_HEARTBEAT_MS &&
    now - life.lastHeardAt >= MISSED_HEARTBEAT_MS &&
    now - questions.healthAskedAt >= ANSWER_WITHIN_MS
  );
}

/** Whether nobody listens at the address of a base whose heartbeat just came. A dead base sends none. */
function isBinding({ life, place, proof }: VNode, now: number): boolean {
  if (!life.isRefusing || place.isDisplaced) return false;
  return now - Math.max(life.lastBeatAt ?? proof.hintedAt, proof.hintedAt) < BINDS_WITHIN_MS;
}

/** A base that has spoken since the outage is past it; for others it is unknown when they would have spoken. */
function silenceOf({ life }: VNode, { hearingSince, graceUntil }: TunnelState, now: number): Silence {
  const since = life.lastHeardAt >= hearingSince ? life.lastHeardAt : Math.max(life.lastHeardAt, graceUntil);
  return { silentMs: now - since, isConfirmed: life.isConfirmedSilent };
}
