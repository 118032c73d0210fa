import type { BaseInfo } from '../tunnel/base.ts';
import type { TunnelName } from '../tunnel/tunnel.ts';
import { ChangeLimit } from './change-limit.ts';
import { type Liveness, UNREACHABLE_AFTER_MS } from './liveness.ts';
import { isOffBeat } from './restart-signs.ts';
import type { TunnelClaim } from './tunnel-claim.ts';

/** How often two bases with one identity are reported. */
const REPORT_REFUSAL_EVERY_MS = 60_000;
/** A question takes 5 s to be asked again and 10 s to end. */
const GOODBYE_COUNTS_MS = 15_000;

interface PlaceOptions {
  readonly base: BaseInfo;
  readonly tunnel: TunnelName;
  readonly now: number;
}

/** Address and tunnel of a base, and whether the base is the one there. The VNodeAdmission changes it. */
export class BasePlace implements TunnelClaim {
  /** Bounds how often its own words about itself change. */
  readonly changes: ChangeLimit;
  #base: BaseInfo;
  #tunnel: TunnelName;
  #placedAt: number;
  #settledAt: string | undefined;
  #isDisplaced = false;
  #hasRegained = false;
  #hasAnswered = false;
  #addressFault: string | undefined;
  #refusalReportedAt = Number.NEGATIVE_INFINITY;

  constructor({ base, tunnel, now }: PlaceOptions) {
    this.#base = base;
    this.#tunnel = tunnel;
    this.#placedAt = now;
    this.changes = new ChangeLimit(now);
  }

  get base(): BaseInfo {
    return this.#base;
  }

  get tunnel(): TunnelName {
    return this.#tunnel;
  }

  /** When the base came to its tunnel and address: answers to older questions are another process's. */
  get placedAt(): number {
    return this.#placedAt;
  }

  /** Its entry in the addresses of the store. */
  get settledAt(): string | undefined {
    return this.#settledAt;
  }

  /** Another base was heard at its address since it was last heard: whoever answers there is not this one. */
  get isDisplaced(): boolean {
    return this.#isDisplaced;
  }

  /** An arklet has answered there since the base came there: until then its port is only what somebody said. */
  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  /** What is wrong with the address that the base reports, in words for its Node. Undefined: nothing. */
  get addressFault(): string | undefined {
    return this.#addressFault;
  }

  noteAddress(fault: string | undefined): void {
    this.#addressFault = fault;
  }

  /** It was heard at its address after another base had been heard there. */
  get hasRegained(): boolean {
    return this.#hasRegained;
  }

  /** The base, or its Node, reports this of the base now. */
  update(base: BaseInfo, tunnel: TunnelName): void {
    if (base.ip !== this.#base.ip || base.port !== this.#base.port) this.#hasAnswered = false;
    this.#base = base;
    this.#tunnel = tunnel;
  }

  move(now: number): void {
    this.#placedAt = now;
    this.#hasRegained = false;
    this.#hasAnswered = false;
  }

  /** An answer came from there. Returns whether it is the first one. Called by the VNodeController. */
  answer(): boolean {
    const isFirst = !this.#hasAnswered;
    this.#hasAnswered = true;
    return isFirst;
  }

  displace(): void {
    this.#isDisplaced = true;
  }

  regain(): void {
    this.#isDisplaced = false;
    this.#hasRegained = true;
  }

  /** Called by the VNodeStore only. */
  settle(address: string | undefined): void {
    this.#settledAt = address;
  }

  /** True, once in a minute, when another base was refused: the caller reports it. */
  takeRefusalReport(now: number): boolean {
    if (now - this.#refusalReportedAt < REPORT_REFUSAL_EVERY_MS) return false;
    this.#refusalReportedAt = now;
    return true;
  }

  /** Answers to questions of the former leader do not count. */
  changeLeader(now: number): void {
    this.#placedAt = now;
  }
}

interface LifeOptions {
  readonly now: number;
  readonly lastBeatAt: number | undefined;
  readonly liveness: Liveness;
}

export interface FormerLead {
  /** The former leader had the base Ready, so this replica does not judge it by earlier silence. */
  readonly wasReady: boolean;
  /** Silence counts from then on at the latest. */
  readonly mayBeSilentSince: number;
}

/**
 * Signs of life of a base, and the verdict on its silence. The VNodeController notes the signs, and the
 * LivenessController judges the silence.
 */
export class BaseLife {
  #liveness: Liveness;
  #isSuspended = false;
  #isConfirmedSilent = false;
  #isRefusing = false;
  #wasHeard = false;
  #isHearsay = false;
  #lastHeardAt: number;
  #lastBeatAt: number | undefined;
  #firstSaidAt: number | undefined;
  #metAt: number;

  constructor({ now, lastBeatAt, liveness }: LifeOptions) {
    this.#liveness = liveness;
    this.#lastHeardAt = now;
    this.#metAt = now;
    this.#lastBeatAt = lastBeatAt;
  }

  get liveness(): Liveness {
    return this.#liveness;
  }

  /** It is silent, but not judged while the tunnel's brake is on. */
  get isSuspended(): boolean {
    return this.#isSuspended;
  }

  /** It is silent, judged or not. */
  get isSilent(): boolean {
    return this.#isSuspended || this.#liveness !== 'Reachable';
  }

  /** It is silent, was asked directly over a proven link, and did not answer. */
  get isConfirmedSilent(): boolean {
    return this.#isConfirmedSilent;
  }

  /** Nobody listened at its address since it was last heard (HTTP). */
  get isRefusing(): boolean {
    return this.#isRefusing;
  }

  /** False for a base that is known only from its Node: nothing is written of it before it speaks or is judged. */
  get wasHeard(): boolean {
    return this.#wasHeard;
  }

  /** It was last heard only through a heartbeat from another address; the leader verifies it. */
  get isHearsay(): boolean {
    return this.#isHearsay;
  }

  /** Monotonic time of its last message; of the start of this process for one that is known only from its Node. */
  get lastHeardAt(): number {
    return this.#lastHeardAt;
  }

  /** When its own heartbeat came last. */
  get lastBeatAt(): number | undefined {
    return this.#lastBeatAt;
  }

  /** The time of the base's first message, by its own wall clock, ms. */
  get firstSaidAt(): number | undefined {
    return this.#firstSaidAt;
  }

  /** When it was met, or this replica started to lead it. */
  get metAt(): number {
    return this.#metAt;
  }

  beat(now: number): void {
    this.#lastBeatAt = now;
  }

  /** It has said something. Returns whether this process hears of it for the first time. */
  hear(now: number, publishedAt: number | undefined): boolean {
    const isFirst = !this.#wasHeard;
    if (isFirst) this.#firstSaidAt = publishedAt;
    this.#wasHeard = true;
    this.#lastHeardAt = now;
    this.#isConfirmedSilent = false;
    this.#isHearsay = false;
    this.#isRefusing = false;
    return isFirst;
  }

  /** It was heard only through another address. */
  noteHearsay(): void {
    this.#isHearsay = true;
  }

  /** Nobody listens at its address. */
  refuse(): void {
    this.#isRefusing = true;
  }

  /** The verdict of a sign of life, of its silence, or of its goodbye. */
  judge(liveness: Liveness): void {
    this.#liveness = liveness;
    this.#isSuspended = false;
  }

  /** It is silent, and the tunnel's brake is on. */
  suspend(): void {
    this.#isSuspended = true;
  }

  /** The brake is released: bases that did not answer are silent for sure. */
  confirmSilence(isConfirmed: boolean): void {
    this.#isConfirmedSilent = isConfirmed;
  }

  /** The next leader judges by what it hears itself, and by the Node that the former one left. */
  changeLeader(now: number, { wasReady, mayBeSilentSince }: FormerLead): void {
    this.#metAt = now;
    this.#isRefusing = false;
    this.#isConfirmedSilent = false;
    if (this.#liveness === 'Dead') this.#liveness = 'Unreachable';
    if (this.#isHearsay) {
      this.#isHearsay = false;
      this.#lastHeardAt = mayBeSilentSince;
      this.#liveness = 'Unreachable';
    }
    if (!wasReady) return;
    this.#liveness = 'Reachable';
    this.#lastHeardAt = Math.max(this.#lastHeardAt, mayBeSilentSince);
  }
}

/**
 * Evidence about a base from messages that come from other addresses, and from answers that name the base. A base behind
 * a gateway has no other evidence. The VNodeController changes it.
 */
export class BaseProof {
  #hintedAt = Number.NEGATIVE_INFINITY;
  #namedAt = Number.NEGATIVE_INFINITY;
  #goodbyeAt: number | undefined;
  readonly #adoptedAt: number;

  /** `adoptedAt`: when the base came to be known from its Node; −∞ for one that was heard first. */
  constructor(adoptedAt: number) {
    this.#adoptedAt = adoptedAt;
  }

  /** When a heartbeat for its address came last from another one. */
  get hintedAt(): number {
    return this.#hintedAt;
  }

  /** When an answer from its address last named its identity. */
  get namedAt(): number {
    return this.#namedAt;
  }

  /** When a goodbye came from an address that is not the base's; it counts when the base refuses a connection now. */
  get goodbyeAt(): number | undefined {
    return this.#goodbyeAt;
  }

  /** A heartbeat for its address comes from another one. Returns whether it comes at an odd moment. */
  hint(now: number): boolean {
    const isOdd = isOffBeat(this.#hintedAt, now);
    this.#hintedAt = now;
    return isOdd;
  }

  /** An answer from its address names its identity. */
  named(now: number): void {
    this.#namedAt = now;
  }

  /** True while its last answer proves what heartbeats from other addresses say of it. */
  provesHints(now: number): boolean {
    // An earlier answer may be of one that beats by itself, and had not done so yet.
    const isSettled = this.#namedAt - this.#adoptedAt >= UNREACHABLE_AFTER_MS;
    return isSettled && now - this.#namedAt < UNREACHABLE_AFTER_MS;
  }

  /** A goodbye came from another address. An earlier one that still waits keeps its time. */
  sayGoodbye(now: number): void {
    if (!this.awaitsEnd(now)) this.#goodbyeAt = now;
  }

  /** True while a goodbye waits for a refused connection, or an answer. */
  awaitsEnd(now: number): boolean {
    return this.#goodbyeAt !== undefined && now - this.#goodbyeAt < GOODBYE_COUNTS_MS;
  }

  /** A message of the base, or the answer to a question after the goodbye, refutes it. */
  refuteGoodbye(askedAt: number | undefined): void {
    if (this.#goodbyeAt === undefined) return;
    if (askedAt === undefined || this.#goodbyeAt <= askedAt) this.#goodbyeAt = undefined;
  }
}
