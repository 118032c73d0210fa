import { type ClientRequest, request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { isIPv6 } from 'node:net';
import type { Readable } from 'node:stream';
import axios from 'axios';
import type { Clock } from '../../src/clock.ts';
import type { ControllerError } from '../../src/errors.ts';
import { sourceOf } from '../../src/ip-address.ts';
import type { AddressPolicy } from '../../src/tunnel/address-policy.ts';
import type { BaseAddress } from '../../src/tunnel/tunnel.ts';
import { assertSendable } from '../arklet/parse.ts';
import { baseKeyOf } from './addresses.ts';
import { Attempt } from './attempt.ts';
import { BaseAgent } from './base-agent.ts';
import type { BodyReader } from './body-reader.ts';
import { CommandSlots } from './command-slots.ts';
import type { Command, CommandName } from './commands.ts';
import { notAllowed, notConnected } from './failures.ts';

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
  /** Questions by kind and base; emptied when they are answered or have failed. */
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

export interface ArkletRequest {
  readonly base: BaseAddress;
  /** arklet's word, the path. */
  readonly command: string;
  readonly payload: object;
  /** It changes nothing, and so does no harm when it runs after it was abandoned. */
  readonly isQuestion: boolean;
  /** It leaves also where `isOurs` says no. */
  readonly isForAnybody?: boolean | undefined;
  /** Whose memory the answer shares; see `Command`. */
  readonly isOfStranger?: boolean | undefined;
  readonly maxAnswerBytes: number;
  /** From now until the payload leaves, on whichever connection. */
  readonly leaveWithinMs: number;
  /** From now to the whole answer. */
  readonly timeoutMs: number;
  /** Ends the request at once. */
  readonly signal: AbortSignal;
  /** Called once when the whole payload is with the operating system. */
  readonly onLeft?: () => void;
}

export interface ArkletClientOptions {
  readonly clock: Clock;
  /** Read the answers. */
  readonly bodies: { readonly ofBases: BodyReader; readonly ofStrangers: BodyReader };
  /** What every command says of who sends it. */
  readonly userAgent: string;
  /** Asked before each connection and again when the payload is about to leave. Default: always. */
  readonly isOurs?: ((identity: string) => boolean) | undefined;
  /** Nobody listens at the base's address; called once for every `post`, before it rejects. */
  readonly onConnectionRefused: (base: BaseAddress) => void;
}

/**
 * Speaks HTTP to the arklet of a base: no proxy, no redirect, no compression, bounded bodies. A payload is sent
 * once, to an event loop of the base that is free.
 * The caller checks that the address may be called.
 */
export class ArkletClient {
  readonly #options: ArkletClientOptions;
  readonly #agent: BaseAgent;
  readonly #ignorers = new ExpectIgnorers();
  /** What ends each command that is under way; emptied when they have ended. */
  readonly #underWay = new Set<AbortController>();

  constructor(options: ArkletClientOptions) {
    this.#options = options;
    this.#agent = new BaseAgent(options.clock);
  }

  /**
   * Resolves with the bytes of the answer, of one that is too long with one more than it may have. Rejects with
   * `Tunnel.NotConnected` where the payload has not left (no connection, no event loop that was free), with
   * `Tunnel.SendFailed` in every other case.
   */
  async post(request: ArkletRequest): Promise<Uint8Array> {
    const { timeoutMs, signal } = request;
    const payload = Buffer.from(JSON.stringify(request.payload));
    assertSendable(payload.byteLength);
    const over = new AbortController();
    const stop = (): void => over.abort('the tunnel was stopped');
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    this.#underWay.add(over);
    const timer = this.#options.clock.setTimer(() => over.abort(`no answer within ${timeoutMs} ms`), timeoutMs);
    try {
      return await this.#offer(request, payload, over.signal);
    } finally {
      timer.cancel();
      this.#underWay.delete(over);
      signal.removeEventListener('abort', stop);
    }
  }

  /** Ends every command that is under way. */
  abandon(reason: string): void {
    for (const over of this.#underWay) over.abort(reason);
  }

  /** Closes the connections that nobody uses. */
  close(): void {
    this.#agent.destroy();
  }

  /** On one connection after the other: each lands on another event loop of the base. */
  async #offer(request: ArkletRequest, payload: Uint8Array, signal: AbortSignal): Promise<Uint8Array> {
    const { base, isQuestion: leavesUnproven, isForAnybody = false, leaveWithinMs, onLeft = () => {} } = request;
    const { clock, isOurs = () => true } = this.#options;
    const mayLeave = (): boolean => isForAnybody || isOurs(base.identity);
    const leaveBy = clock.now() + leaveWithinMs;
    for (let busyCount = 0; ; busyCount++) {
      if (!mayLeave()) throw notAllowed();
      const isProofAwaited = !this.#ignorers.has(base);
      const attempt = new Attempt({
        clock,
        payload,
        isProofAwaited,
        leavesUnproven,
        leaveBy,
        mayLeave,
        onLeft,
        signal,
      });
      try {
        return await this.#exchange(request, attempt);
      } catch (error) {
        if (!attempt.isBusy) throw this.#failureOf(error, { request, attempt, busyCount });
        if (attempt.isLast) {
          throw notConnected(`no event loop of the base answered 100 Continue, on ${busyCount + 1} connections`);
        }
      } finally {
        attempt.end();
        if (attempt.isExpectIgnored) this.#ignorers.add(base);
      }
    }
  }

  async #exchange(request: ArkletRequest, attempt: Attempt): Promise<Uint8Array> {
    const { base, command } = request;
    const response = await axios.request<Readable>({
      method: 'POST',
      url: `http://${isIPv6(base.ip) ? `[${base.ip}]` : base.ip}:${base.port}/${command}`,
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        'accept-encoding': 'identity',
        'user-agent': this.#options.userAgent,
        ...attempt.headers,
      },
      data: attempt.body,
      transformRequest: asIs,
      transformResponse: asIs,
      responseType: 'stream',
      decompress: false,
      maxRedirects: 0,
      proxy: false,
      validateStatus: () => true,
      httpAgent: this.#agent,
      transport: { request: (options, onResponse) => attempt.watch(httpRequest(options, onResponse)) } as Transport,
      signal: attempt.signal,
    });
    try {
      if (response.status === 200) return await this.#readAnswer(response.data, request);
      throw new Error(`the base answered HTTP ${response.status}`);
    } finally {
      response.data.destroy();
    }
  }

  #readAnswer(stream: Readable, { base, isOfStranger, maxAnswerBytes: maxBytes }: ArkletRequest): Promise<Uint8Array> {
    const { ofBases, ofStrangers } = this.#options.bodies;
    return (isOfStranger ? ofStrangers : ofBases).read(stream, { source: sourceOf(base.ip), maxBytes });
  }

  #failureOf(error: unknown, { request, attempt, busyCount }: Failed): ControllerError {
    const { base, signal } = request;
    this.#ignorers.delete(base);
    const isRefused = axios.isAxiosError(error) && error.code === 'ECONNREFUSED';
    if (isRefused && !signal.aborted) this.#options.onConnectionRefused(base);
    return attempt.failureOf(error, busyCount);
  }
}

interface Failed {
  readonly request: ArkletRequest;
  readonly attempt: Attempt;
  /** Connections before this one that no event loop took up. */
  readonly busyCount: number;
}

/** axios leaves the type open. */
interface Transport {
  request(options: RequestOptions, onResponse: (response: IncomingMessage) => void): ClientRequest;
}

function asIs(value: unknown): unknown {
  return value;
}

/** Far more than there should ever be; a question finds out again about the rest. */
const MAX_SIZE = 1_000;

/** Bases whose agent was seen to ignore `Expect: 100-continue`, as the public one does not. */
export class ExpectIgnorers {
  /** In the order in which they were found out, the oldest goes when there are too many. */
  readonly #keys = new Set<string>();

  has(base: BaseAddress): boolean {
    return this.#keys.has(baseKeyOf(base));
  }

  add(base: BaseAddress): void {
    this.#keys.add(baseKeyOf(base));
    const [oldest] = this.#keys;
    if (oldest !== undefined && this.#keys.size > MAX_SIZE) this.#keys.delete(oldest);
  }

  /** Another agent may be there now. */
  delete(base: BaseAddress): void {
    this.#keys.delete(baseKeyOf(base));
  }
}
