import type { Clock } from '../../src/clock.ts';
import { canonicalAddress, sourceOf } from '../../src/ip-address.ts';
import type { Logger } from '../../src/logger.ts';
import type { Metrics } from '../../src/metrics.ts';
import type { AddressPolicy, Network } from '../../src/tunnel/address-policy.ts';
import type { InvalidMessage, TunnelHandler, TunnelName } from '../../src/tunnel/tunnel.ts';
import { IntakeGate, type IntakeLimits, type InvalidMessages, type Sender } from '../arklet/intake.ts';
import type { BodyReader } from './body-reader.ts';
import { heartbeatApp } from './heartbeat-app.ts';
import { type ListenerLimits, listen } from './listener.ts';
import { MemberVerifier } from './member-proof.ts';
import { MemberInbox, MemberRelay, type Members } from './member-relay.ts';
import { type Accepted, type MessageType, receive } from './receive.ts';

/** Limit of one source: a gateway may stand before 3,000 bases, which send every 12 s and start at once. */
const SOURCE = { burst: 2_500, refillMs: 4 };
export const HTTP_INTAKE: IntakeLimits = { known: SOURCE, unknown: SOURCE, allUnknown: { burst: 10_000, refillMs: 1 } };

export interface MessageIntakeOptions {
  readonly tunnel: TunnelName;
  readonly port: number;
  readonly tokens?: readonly string[] | undefined;
  readonly trustedProxies?: readonly Network[] | undefined;
  readonly members?: Members | undefined;
  readonly limits?: Partial<ListenerLimits> | undefined;
  readonly intake?: IntakeLimits | undefined;
  readonly policy: AddressPolicy;
  readonly bodies: BodyReader;
  readonly invalid: InvalidMessages;
  /** Who a base is to the core. Default: all are known. */
  readonly senderOf?: ((identity: string) => Sender) | undefined;
  /** Calls `hear` with whoever is to hear a message of this type, and returns what it returns. */
  readonly take: (
    type: MessageType,
    hear: (handler: TunnelHandler) => InvalidMessage | undefined,
  ) => InvalidMessage | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** A message as it came, with the address of the base that sent it. */
interface Arrival {
  readonly type: MessageType;
  readonly sender: string;
  readonly payload: Uint8Array;
}

/** Messages of bases: those that arrive here, which go on to other members, and those that other members pass on. */
export class MessageIntake {
  readonly #options: MessageIntakeOptions;
  readonly #relay: MemberRelay | undefined;
  readonly #inbox: MemberInbox;
  readonly #gate: IntakeGate;

  constructor(options: MessageIntakeOptions) {
    this.#options = options;
    this.#gate = new IntakeGate({ ...options, limits: options.intake ?? HTTP_INTAKE });
    const { tunnel, members, invalid, metrics } = options;
    this.#relay = members && new MemberRelay({ ...options, members });
    this.#inbox = new MemberInbox({
      tunnel,
      metrics,
      // Never passed on again.
      onMessage: ({ type, sender, body }) => this.#receive({ type, sender, payload: Buffer.from(body) }),
      onInvalid: (refused) => invalid.add(refused),
    });
  }

  /** Something of the source was not read to its end. */
  noteDropped(source: string): void {
    this.#gate.refuse(source, 'Unfinished');
  }

  /** Listens until `signal` is aborted; resolves when every connection is closed. Rejects when the port is taken. */
  async run(onListening: () => void, signal: AbortSignal): Promise<void> {
    const { tunnel, port, tokens, trustedProxies, members, limits, bodies, invalid, logger } = this.#options;
    if (tokens === undefined) {
      logger.warn({ tunnel }, 'HTTP_TUNNEL_TOKEN is not set: whoever reaches the port can pose as a base');
    }
    const app = heartbeatApp({
      tunnel,
      tokens,
      trustedProxies,
      logger,
      bodies,
      admits: (sender) => this.#gate.admitsSource(sourceOf(sender)),
      onMessage: (type, sender, payload) => this.#hear({ type, sender, payload }),
      onInvalid: (refused) => invalid.add(refused),
      members: members && {
        verifier: new MemberVerifier(members),
        onBatch: (member, payload) => this.#inbox.take(member, payload),
      },
    });
    const onRefused = (source: string): void => this.#gate.refuse(source, 'Sockets');
    await listen({ name: tunnel, port, app, logger, limits, onListening, onRefused }, signal);
    await this.#relay?.stop();
  }

  #hear(arrival: Arrival): InvalidMessage | undefined {
    const { type, sender, payload } = arrival;
    return this.#receive(arrival, (accepted) =>
      this.#relay?.pass({ type, sender, body: Buffer.from(payload).toString() }, accepted),
    );
  }

  #receive({ type, sender, payload }: Arrival, onAccepted?: (accepted: Accepted) => void): InvalidMessage | undefined {
    const { tunnel, policy, take, senderOf } = this.#options;
    // A member of an earlier version passes on the address as its socket has it.
    const source = { tunnel, identity: canonicalAddress(sender) };
    const noteAccepted = (accepted: Accepted): void => {
      const isKnown = accepted.isFromBase && (senderOf?.(accepted.identity) ?? 'Known') === 'Known';
      if (isKnown) this.#gate.noteKnown(sourceOf(sender));
      onAccepted?.(accepted);
    };
    return take(type, (handler) => receive(type, { source, payload, handler, policy, onAccepted: noteAccepted }));
  }
}
