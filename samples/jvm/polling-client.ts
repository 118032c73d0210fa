import { setTimeout as delay } from 'node:timers/promises';

const POLL_EVERY_MS = 50;
/** A call that takes longer has failed: a client of a shop would have gone. */
const ANSWER_WITHIN_MS = 2_000;

export interface Call {
  readonly base: string;
  /** Since the client was started. */
  readonly atMs: number;
  /** 0: no answer at all, `text` says why. */
  readonly status: number;
  readonly text: string;
}

export interface PollingClientOptions {
  /** Whom to call now. */
  readonly targets: () => readonly { readonly base: string; readonly url: string }[];
  /** Gets a line whenever a base answers otherwise than before, is called for the first time, or is called no more. */
  readonly onLine?: (line: string) => void;
}

/** Calls every target every 50 ms, and remembers what failed. */
export class PollingClient {
  readonly #options: PollingClientOptions;
  readonly #startedAt = performance.now();
  readonly #stopping = new AbortController();
  readonly #polling: Promise<void>;
  /** Those under way: emptied as they end. */
  readonly #calls = new Set<Promise<void>>();
  #called: ReadonlySet<string> = new Set();
  /** What each base that is called answered last. */
  readonly #answers = new Map<string, string>();
  readonly failures: Call[] = [];
  #count = 0;

  constructor(options: PollingClientOptions) {
    this.#options = options;
    this.#polling = this.#poll();
  }

  /** How many calls have ended. */
  get count(): number {
    return this.#count;
  }

  /** What each base that is called answered last. */
  answers(): ReadonlyMap<string, string> {
    return this.#answers;
  }

  /** Resolves when no call is under way. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#polling;
    await Promise.all(this.#calls);
  }

  async #poll(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const targets = this.#options.targets();
      this.#called = new Set(targets.map(({ base }) => base));
      for (const base of [...this.#answers.keys()].filter((known) => !this.#called.has(known))) {
        this.#answers.delete(base);
        this.#tell(base, 'is not called any more');
      }
      for (const { base, url } of targets) {
        const call = this.#call(base, url).then(() => void this.#calls.delete(call));
        this.#calls.add(call);
      }
      await delay(POLL_EVERY_MS, undefined, { signal }).catch(() => {});
    }
  }

  async #call(base: string, url: string): Promise<void> {
    const atMs = performance.now() - this.#startedAt;
    const { status, text } = await ask(url);
    this.#count++;
    if (status !== 200) this.failures.push({ base, atMs, status, text });
    const answer = status === 200 ? text : `${status} ${text}`;
    if (!this.#called.has(base) || this.#answers.get(base) === answer) return;
    this.#answers.set(base, answer);
    this.#tell(base, `answers ${answer}`);
  }

  #tell(base: string, what: string): void {
    const seconds = ((performance.now() - this.#startedAt) / 1000).toFixed(2);
    this.#options.onLine?.(`${seconds.padStart(7)} s  ${base} ${what}`);
  }
}

/** Status and body; status 0 and the reason where there is no answer. */
export async function ask(url: string): Promise<{ status: number; text: string }> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
    return { status: response.status, text: (await response.text()).trim() };
  } catch (error) {
    const { message, cause } = error as Error & { cause?: Error };
    return { status: 0, text: cause?.message ?? message };
  }
}
