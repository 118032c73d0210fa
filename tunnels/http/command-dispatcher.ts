import type { Clock } from '../../src/clock.ts';
import type { BaseAddress } from '../../src/tunnel/tunnel.ts';
import { type AddressPolicy, baseKeyOf } from './addresses.ts';
import type { ArkletClient } from './arklet-client.ts';
import { CommandSlots } from './command-slots.ts';
import type { Command, CommandName } from './commands.ts';
import { notConnected } from './failures.ts';

/** Operations in work at one base; arklet itself works on a few at a time. */
export const MAX_OPERATIONS = 8;
/** A command that has not left by then has failed; waiting, connecting and finding a free event loop count together. */
const LEAVE_WITHIN_MS = 10_000;
/** A question that leaves last has still a second for its answer. */
const QUESTION_LEAVES_WITHIN_MS = 9_000;
/** Also for one that has waited for its place until the end. */
const MIN_LEAVE_WITHIN_MS = 1_000;
const ABANDONED = 'all running commands were abandoned';

export interface CommandDispatcherOptions {
  readonly clock: Clock;
  readonly client: Pick<ArkletClient, 'post' | 'abandon'>;
  readonly policy: AddressPolicy;
  /** How long a command may take from when it has its place. */
  readonly timeoutsMs: Readonly<Record<CommandName, number>>;
  /** Gets every answer; throws to refuse it. */
  readonly onAnswer: (base: BaseAddress, command: Command, answered: Answered) => void;
}

export interface Answered {
  /** Local monotonic clock before the command was offered to the base. */
  readonly askedAt: number;
  readonly body: Uint8Array;
}

/** What the client is to know of one command. */
interface Course {
  readonly signal: AbortSignal;
  readonly leaveWithinMs: number;
  /** The one in which it was queued. */
  readonly round: symbol;
  readonly onLeft?: () => void;
}

/**
 * Sends commands to bases, a few at a time to each. Questions have places of their own, so that no hanging install
 * prevents a question; one that is asked twice at a time goes out once. No base waits for another.
 */
export class CommandDispatcher {
  readonly #options: CommandDispatcherOptions;
  readonly #slots: CommandSlots;
  /**
   * Operations leave for a base one after the other. Two that are offered to one event loop at a time both hear that it
   * is free, and the second would lie there unseen for as long as the first takes.
   */
  readonly #sendGate: CommandSlots;
  /** By kind and base; emptied when they are answered or have failed. */
  readonly #questions = new Map<string, Promise<void>>();
  /** Emptied when they have ended. */
  readonly #underWay = new Set<Promise<void>>();
  /** Another one after each `abandon`. */
  #round = Symbol();

  constructor(options: CommandDispatcherOptions) {
    this.#options = options;
    const { clock } = options;
    this.#slots = new CommandSlots({ clock, size: MAX_OPERATIONS, what: 'commands were running on the base' });
    this.#sendGate = new CommandSlots({ clock, size: 1, what: 'command was about to leave for the base' });
  }

  /** Keys and promises that are kept; 0 at rest. */
  get size(): number {
    return this.#underWay.size + this.#questions.size + this.#slots.lineCount + this.#sendGate.lineCount;
  }

  /** Resolves when `onAnswer` has taken the answer. Aborting `signal` ends it. */
  send(base: BaseAddress, command: Command, signal: AbortSignal): Promise<void> {
    return command.isQuestion ? this.#ask(base, command, signal) : this.#track(this.#operate(base, command, signal));
  }

  /** After `signal` was aborted: lets nobody wait any longer, and resolves when all has ended. */
  async stop(): Promise<void> {
    for (const places of [this.#slots, this.#sendGate]) places.giveUp('the tunnel was stopped');
    await Promise.allSettled(this.#underWay);
  }

  /** Ends running commands at once, and those that wait for them. Later commands are not affected. */
  abandon(): void {
    this.#round = Symbol();
    this.#questions.clear();
    this.#options.client.abandon(ABANDONED);
  }

  #ask(base: BaseAddress, command: Command, signal: AbortSignal): Promise<void> {
    const key = `${command.name} ${baseKeyOf(base)}`;
    const asked = this.#questions.get(key);
    if (asked !== undefined) return asked;
    const question = this.#question(base, command, key, signal);
    this.#questions.set(key, question);
    return this.#track(question);
  }

  async #question(base: BaseAddress, command: Command, key: string, signal: AbortSignal): Promise<void> {
    const round = this.#round;
    let answered: Answered;
    try {
      answered = await this.#exchange(base, command, { signal, round, leaveWithinMs: QUESTION_LEAVES_WITHIN_MS });
    } finally {
      // Before the answer is heard: whoever asks again because of it wants a new one.
      if (round === this.#round) this.#questions.delete(key);
    }
    this.#options.onAnswer(base, command, answered);
  }

  async #operate(base: BaseAddress, command: Command, signal: AbortSignal): Promise<void> {
    const { clock, onAnswer } = this.#options;
    const round = this.#round;
    const leaveBy = clock.now() + LEAVE_WITHIN_MS;
    const release = await this.#slots.take(baseKeyOf(base), LEAVE_WITHIN_MS);
    try {
      const onLeft = await this.#sendGate.take(baseKeyOf(base), leaveBy - clock.now());
      try {
        const leaveWithinMs = Math.max(MIN_LEAVE_WITHIN_MS, leaveBy - clock.now());
        onAnswer(base, command, await this.#exchange(base, command, { signal, round, leaveWithinMs, onLeft }));
      } finally {
        onLeft();
      }
    } finally {
      release();
    }
  }

  async #exchange(
    base: BaseAddress,
    { hear: _hear, name, ...command }: Command,
    { round, ...course }: Course,
  ): Promise<Answered> {
    const { client, policy, clock, timeoutsMs } = this.#options;
    // It waited when all were abandoned, or had just been let in.
    if (round !== this.#round) throw notConnected(ABANDONED);
    // A Node of an earlier process shows an address that was not checked, and no port.
    const fault = policy.faultOf(base.ip);
    if (fault !== undefined) throw notConnected(`the address ${base.ip} ${fault}`);
    if (base.port === 0) throw notConnected('the base has not reported its address yet');
    const askedAt = clock.now();
    const timeoutMs = timeoutsMs[name];
    return {
      askedAt,
      body: await client.post({ base, command: name, ...command, timeoutMs, ...course }),
    };
  }

  #track(work: Promise<void>): Promise<void> {
    const forget = (): void => void this.#underWay.delete(work);
    this.#underWay.add(work);
    work.then(forget, forget);
    return work;
  }
}
