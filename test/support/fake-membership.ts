import type { Clock } from '../../src/clock.ts';
import type { Member } from '../../src/lease/member.ts';
import type { HolderState, Membership } from '../../src/lease/membership.ts';

/** A membership that a test says what it is: valid, with a view that is never old. */
export class FakeMembership implements Membership {
  readonly #clock: Clock;
  term = 1;
  valid = true;
  others: Member[] = [];
  readonly gone = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  isValid(): boolean {
    return this.valid;
  }

  isCurrent(): boolean {
    return this.valid;
  }

  members(): readonly Member[] {
    const me = { id: 'me', nonce: 'me#0', address: undefined, tunnels: ['mqtt_tunnel_provider'], isLeaving: false };
    return [me, ...this.others];
  }

  stateOf(holder: string): HolderState {
    if (this.gone.has(holder)) return 'Gone';
    return this.members().some(({ id }) => id === holder) ? 'Alive' : 'Unknown';
  }

  silentMs(changedAt: number): number {
    return this.#clock.now() - changedAt;
  }
}
