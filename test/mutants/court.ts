import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import type { JudgeMessage, Trial, TrialResult } from './trial.ts';

const JUDGE = resolve(import.meta.dirname, 'judge.ts');

/** Judges that take trials in turn. One that takes too long is killed with all that it started, and replaced. */
export class Court {
  readonly #directory: string;
  readonly #judges: ChildProcess[] = [];
  #idle: ChildProcess[] = [];
  testFiles: readonly string[] = [];

  /** @param directory for all that tests and tools write */
  constructor(directory: string) {
    this.#directory = directory;
  }

  async open(judges: number): Promise<void> {
    this.#idle = await Promise.all(Array.from({ length: judges }, () => this.#start()));
  }

  /** Kills at once. */
  close(): void {
    for (const judge of [...this.#judges]) this.#kill(judge);
  }

  /** Runs the work of each item on one judge, as many at a time as there are judges. */
  async forEach<Item>(items: readonly Item[], work: (item: Item, run: Runner) => Promise<void>): Promise<void> {
    const left = [...items];
    await Promise.all(
      this.#idle.map(async (first, place) => {
        let judge = first;
        const run: Runner = async (trial, limitMs) => {
          const result = await runOn(judge, trial, limitMs);
          if (result !== undefined) return result;
          this.#kill(judge);
          judge = await this.#start();
          this.#idle[place] = judge;
          return {
            outcome: 'timed out',
            failure: `no end after ${limitMs} ms`,
            ms: limitMs,
            slowestTestMs: 0,
            probes: [],
          };
        };
        for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item, run);
      }),
    );
  }

  async #start(): Promise<ChildProcess> {
    const judge = fork(JUDGE, [this.#directory], {
      // A process group of its own, to be killed as a whole: its workers are processes too.
      detached: true,
      env: { ...process.env, TMPDIR: this.#directory },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    this.#judges.push(judge);
    const message = await messageOf(judge);
    if (message?.kind !== 'ready') throw new Error('the process that runs tests did not start');
    this.testFiles = message.testFiles;
    return judge;
  }

  #kill(judge: ChildProcess): void {
    this.#judges.splice(this.#judges.indexOf(judge), 1);
    if (judge.pid === undefined || judge.exitCode !== null || judge.signalCode !== null) return;
    process.kill(-judge.pid, 'SIGKILL');
  }
}

export type Runner = (trial: Trial, limitMs: number) => Promise<TrialResult>;

/** Undefined after the time. */
async function runOn(judge: ChildProcess, trial: Trial, limitMs: number): Promise<TrialResult | undefined> {
  const signal = AbortSignal.timeout(limitMs);
  judge.send(trial);
  const message = await messageOf(judge, signal);
  if (message === undefined) return;
  if (message.kind !== 'result') throw new Error(`unexpected message ${message.kind}`);
  return message.result;
}

async function messageOf(judge: ChildProcess, signal?: AbortSignal): Promise<JudgeMessage | undefined> {
  const ended = new AbortController();
  const either = AbortSignal.any(signal === undefined ? [ended.signal] : [ended.signal, signal]);
  const onExit = (): void => ended.abort();
  judge.once('exit', onExit);
  try {
    const [message] = await once(judge, 'message', { signal: either });
    return message as JudgeMessage;
  } catch (error) {
    if (signal?.aborted && !ended.signal.aborted) return;
    throw new Error('the process that runs tests has ended', { cause: error });
  } finally {
    judge.off('exit', onExit);
  }
}
