import { ControllerError } from '../../../src/errors.ts';
import type { LeaseClient } from '../../../src/kube/lease-client.ts';
import type { Host } from './host.ts';
import { type LeaseServer, refusal } from './lease-server.ts';
import type { Dice } from './timeline.ts';

/** How a path is broken: connections are refused at once, or nothing comes back. */
export type Breakage = 'Refuses' | 'Drops';

/** What may befall each request, as probabilities. */
export interface Noise {
  /** It never arrives. */
  readonly lost: number;
  /** It is carried out, and nothing is heard of it. */
  readonly unanswered: number;
  /** It is carried out much later. */
  readonly late: number;
  /** The connection is cut under it, before it is carried out or after. */
  readonly cut: number;
  /** 500 or 429, and nothing is carried out. */
  readonly refused: number;
}

const FATES = ['lost', 'unanswered', 'late', 'cut', 'refused'] as const;
type Fate = (typeof FATES)[number] | 'none';

export const NO_NOISE: Noise = { lost: 0, unanswered: 0, late: 0, cut: 0, refused: 0 };

const LATE_MS = 20_000;

/** The server as a machine: it may be down or stand still. */
export class ServerMachine {
  breakage: Breakage | undefined;
  /** Requests that it has taken and will carry out when it goes on; undefined = it is not frozen. */
  #frozen: (() => void)[] | undefined;

  freeze(): void {
    this.#frozen ??= [];
  }

  thaw(): void {
    const waiting = this.#frozen ?? [];
    this.#frozen = undefined;
    for (const act of waiting) act();
  }

  get isFrozen(): boolean {
    return this.#frozen !== undefined;
  }

  /** Now, or when it is thawed. */
  carryOut(act: () => void): void {
    if (this.#frozen) this.#frozen.push(act);
    else act();
  }
}

export interface LinkOptions {
  readonly host: Host;
  readonly server: LeaseServer;
  readonly machine: ServerMachine;
  readonly dice: Dice;
  readonly maxLatencyMs: number;
  readonly onRequest: (request: string) => void;
}

interface CallOptions {
  readonly timeoutMs: number;
  /** A request whose connection was cut is sent once more, as `HttpLane` does. */
  readonly isResent: boolean;
}

const lost = (why: string): ControllerError => new ControllerError('Kube.ConnectionFailed', why);

/** The path of one process to the API server. */
export class Link {
  readonly #options: LinkOptions;
  breakage: Breakage | undefined;
  noise: Noise = NO_NOISE;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  get brokenBy(): Breakage | undefined {
    return this.breakage ?? this.#options.machine.breakage;
  }

  latencyMs(): number {
    return 0.2 + this.#options.dice.below(this.#options.maxLatencyMs);
  }

  clientOf(namespace: string, options: { readonly timeoutMs: number; readonly isOnce: boolean }): LeaseClient {
    const { server } = this.#options;
    const call = { timeoutMs: options.timeoutMs, isResent: !options.isOnce };
    const created = { timeoutMs: options.timeoutMs, isResent: false };
    return {
      get: (name) => this.#ask(`get ${namespace}/${name}`, () => server.get(namespace, name), call),
      create: (lease) => this.#ask(`post ${namespace}/${lease.metadata.name}`, () => server.create(lease), created),
      patch: (name, body) => this.#ask(`patch ${namespace}/${name}`, () => server.patch(namespace, name, body), call),
      delete: (name, uid, version) =>
        this.#ask(`delete ${namespace}/${name}`, () => server.delete(namespace, name, uid, version), call),
    };
  }

  async #ask<T>(request: string, act: () => T, options: CallOptions): Promise<T> {
    this.#options.onRequest(request);
    try {
      return await this.#send(act, options);
    } catch (error) {
      const isCut = error instanceof ControllerError && error.message === 'cut';
      if (!isCut || !options.isResent) throw error;
      return await this.#send(act, options);
    }
  }

  #send<T>(act: () => T, { timeoutMs }: CallOptions): Promise<T> {
    const { host, machine } = this.#options;
    const { timeline } = host;
    return new Promise<T>((resolve, reject) => {
      const timer = host.setTimer(() => reject(lost('no whole answer in time')), timeoutMs);
      const answer = (settle: () => void): void =>
        timeline.after(this.latencyMs(), () => {
          // An answer that cannot come through is a lost one.
          if (this.breakage !== undefined) return;
          host.deliver(() => {
            timer.cancel();
            settle();
          });
        });
      const carryOut = (isAnswered: boolean): void => {
        let settle: () => void;
        try {
          const value = act();
          settle = () => resolve(value);
        } catch (error) {
          settle = () => reject(error instanceof Error ? error : lost(String(error)));
        }
        if (isAnswered) answer(settle);
      };
      const arrive = (isAnswered: boolean): void => {
        if (machine.breakage === 'Refuses') answer(() => reject(lost('refused')));
        else if (machine.breakage === undefined) machine.carryOut(() => carryOut(isAnswered));
      };
      if (this.breakage === 'Drops') return;
      if (this.breakage === 'Refuses') {
        timeline.after(1, () => host.deliver(() => reject(lost('refused'))));
        return;
      }
      this.#befall(arrive, (error) => answer(() => reject(error)));
    });
  }

  #fate(): Fate {
    let luck = this.#options.dice.next();
    for (const fate of FATES) {
      luck -= this.noise[fate];
      if (luck < 0) return fate;
    }
    return 'none';
  }

  #befall(arrive: (isAnswered: boolean) => void, fail: (error: Error) => void): void {
    const { host, dice } = this.#options;
    const after = (act: () => void, ms = this.latencyMs()): void => host.timeline.after(ms, act);
    switch (this.#fate()) {
      case 'lost':
        break;
      case 'unanswered':
        after(() => arrive(false));
        break;
      case 'late':
        after(() => arrive(true), dice.below(LATE_MS));
        break;
      case 'cut':
        if (dice.chance(0.5)) after(() => arrive(false));
        after(() => fail(lost('cut')));
        break;
      case 'refused':
        after(() => fail(dice.chance(0.5) ? refusal(500, 'InternalError') : refusal(429, 'TooManyRequests')));
        break;
      case 'none':
        after(() => arrive(true));
        break;
    }
  }
}
