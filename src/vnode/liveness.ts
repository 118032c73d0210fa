/** What a base's silence means. `Dead` is final for its VNode; a heartbeat later makes a new one. */
export type Liveness = 'Reachable' | 'Unreachable' | 'Dead';

/** Heartbeats come every 10 s (MQTT) or 12 s (HTTP). */
export const UNREACHABLE_AFTER_MS = 25_000;
export const DEAD_AFTER_MS = 60_000;
/** A base that is this silent has missed a heartbeat: it is counted when many fall silent at once. */
export const MISSED_HEARTBEAT_MS = 15_000;

/**
 * Bases that pass the limit this close together have one cause: the controller or the broker, rather than each of them.
 */
const TOGETHER_MS = 25_000;
/** With fewer bases on a tunnel, half of them may well die at once. */
const BRAKE_FROM_BASES = 5;
/** How long an unproven link protects silent bases; a broker may refuse the controller's message to itself. */
export const BRAKE_MAX_MS = 300_000;
/** How long a base that was asked directly has to answer. */
export const ANSWER_WITHIN_MS = 5_000;
/** The agent sends its first heartbeat before its port is bound: for this long it is asked again in each sweep. */
export const BINDS_WITHIN_MS = 5_000;

export interface Silence {
  /** Negative while the base may still be reconnecting. */
  readonly silentMs: number;
  /** It was asked directly while the link was proven, and did not answer. */
  readonly isConfirmed: boolean;
}

/** Judges one base. `isFrozen`: its tunnel's brake is on, so only confirmed silence counts. */
export function livenessOf({ silentMs, isConfirmed }: Silence, isFrozen: boolean): Liveness | 'Suspended' {
  if (silentMs < UNREACHABLE_AFTER_MS) return 'Reachable';
  if (isFrozen && !isConfirmed) return 'Suspended';
  return silentMs < DEAD_AFTER_MS ? 'Unreachable' : 'Dead';
}

/** Whether enough bases of a tunnel fell silent together that the link has to be proven first. */
export function isMassSilence(bases: readonly Silence[]): boolean {
  if (bases.length < BRAKE_FROM_BASES) return false;
  const together = bases.filter(
    ({ silentMs, isConfirmed }) =>
      !isConfirmed && silentMs >= MISSED_HEARTBEAT_MS && silentMs <= UNREACHABLE_AFTER_MS + TOGETHER_MS,
  );
  return together.length * 2 > bases.length && together.some(({ silentMs }) => silentMs >= UNREACHABLE_AFTER_MS);
}

export type BrakeReason = 'LinkDown' | 'MassSilence' | 'Paused';

/**
 * The brake of one tunnel. Released: bases are judged by their silence. Proving: nobody is judged until a message
 * of the controller to itself came back. Asking: silent bases were asked directly; those that do not answer are judged.
 */
export type Brake =
  | { readonly kind: 'Released' }
  | {
      readonly kind: 'Proving';
      readonly since: number;
      readonly reason: BrakeReason;
      /** Since when the link is up without being proven; undefined while it is down. */
      readonly upSince: number | undefined;
    }
  | { readonly kind: 'Asking'; readonly since: number; readonly reason: BrakeReason };

export interface BrakeInput {
  readonly now: number;
  readonly isLinkUp: boolean;
  /** A message of the controller to itself came back since the brake went on. */
  readonly isLinkProven: boolean;
  readonly isMassSilence: boolean;
  /** The process did not run for a while (stopped, or overloaded): the silence may be its own. */
  readonly wasPaused: boolean;
}

/** The next state of a brake; the same object when nothing changes. */
export function nextBrake(brake: Brake, input: BrakeInput): Brake {
  if (brake.kind === 'Proving') return nextProving(brake, input);
  const reason = reasonToProve(input);
  const isNews = reason !== undefined && (brake.kind === 'Released' || reason !== 'MassSilence');
  if (isNews) return { kind: 'Proving', since: input.now, reason, upSince: input.isLinkUp ? input.now : undefined };
  if (brake.kind === 'Asking' && input.now - brake.since >= ANSWER_WITHIN_MS) return { kind: 'Released' };
  return brake;
}

function nextProving(brake: Extract<Brake, { kind: 'Proving' }>, { now, isLinkUp, isLinkProven }: BrakeInput): Brake {
  if (!isLinkUp) {
    const isKnown = brake.reason === 'LinkDown' && brake.upSince === undefined;
    return isKnown ? brake : { ...brake, reason: 'LinkDown', upSince: undefined };
  }
  if (brake.upSince === undefined) return { ...brake, upSince: now };
  // A broker may refuse the controller's message to itself: then the time that the link has been up decides.
  const isOver = isLinkProven || now - brake.upSince >= BRAKE_MAX_MS;
  return isOver ? { kind: 'Asking', since: now, reason: brake.reason } : brake;
}

function reasonToProve({ isLinkUp, wasPaused, isMassSilence: isMass }: BrakeInput): BrakeReason | undefined {
  if (!isLinkUp) return 'LinkDown';
  if (wasPaused) return 'Paused';
  return isMass ? 'MassSilence' : undefined;
}

/**
 * From when on silence counts again after an outage of the controller of `outageMs`: a base that tried to reconnect
 * with a doubling delay waits at most about as long again as the outage took.
 */
export function graceAfterOutageMs(outageMs: number): number {
  return Math.min(outageMs, 120_000);
}
