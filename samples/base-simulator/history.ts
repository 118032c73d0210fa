import { type Clock, systemClock } from '../../src/clock.ts';
import type { BizRequest, BizState, CommandName, Outcome } from './model.ts';
import type { TunnelName } from './transport.ts';

export interface CommandRecord extends BizRequest {
  /** Counts up over the whole fleet; a mark is the sequence of the next command. */
  sequence: number;
  base: string;
  /** A name outside of `CommandName` is a command that the agent does not take. */
  command: CommandName | (string & {});
  /** How it came. */
  tunnel?: TunnelName;
  /** Wall clock, ms. */
  receivedAt: number;
  /** Absent while in work. */
  finishedAt?: number;
  /** The packet id of the MQTT message. */
  requestMessageId?: number;
  /** The header `User-Agent` over HTTP: who sent it. */
  userAgent?: string;
  /** The state of that very module when the command came; absent when it was not listed. */
  stateAtReceipt?: BizState;
  outcome: Outcome;
}

export interface HistoryFilter {
  base?: string;
  command?: string;
  bizName?: string;
  bizVersion?: string;
  outcome?: Outcome;
  tunnel?: TunnelName;
  /** A mark: only what was received after it. */
  since?: number;
}

/** The commands that are counted; any command can be asked for by `records`. */
export type CountedCommand = Exclude<CommandName, 'switchBiz' | 'queryBizOps' | 'help'>;

export type CommandCounts = Record<CountedCommand, number>;

export interface InstallCount {
  base: string;
  bizName: string;
  bizVersion: string;
  count: number;
}

interface Waiter {
  filter: HistoryFilter;
  missing: number;
  resolve: () => void;
}

/**
 * Every command that the bases of a fleet received. A baseline counts as one `batchInstallBiz` per module in it.
 * The newest `limit` records are kept at least.
 */
export class CommandHistory {
  readonly #clock: Clock;
  readonly #limit: number;
  /** Emptied by `clear`, and from its old end beyond the limit. */
  #records: CommandRecord[] = [];
  #forgotten = 0;
  /** Emptied as waits end. */
  readonly #waiters = new Set<Waiter>();
  readonly #listeners = new Set<(record: CommandRecord) => void>();

  constructor(options: { clock?: Clock; limit?: number } = {}) {
    this.#clock = options.clock ?? systemClock;
    this.#limit = options.limit ?? 200_000;
  }

  receive(entry: Omit<CommandRecord, 'sequence' | 'receivedAt' | 'finishedAt' | 'outcome'>): CommandRecord {
    const sequence = this.mark();
    const record: CommandRecord = {
      ...entry,
      sequence,
      receivedAt: this.#clock.wallTime().getTime(),
      outcome: 'in work',
    };
    this.#records.push(record);
    if (this.#records.length > 2 * this.#limit) {
      this.#forgotten += this.#records.length - this.#limit;
      this.#records = this.#records.slice(-this.#limit);
    }
    this.#changed(record);
    return record;
  }

  finish(record: CommandRecord, outcome: Outcome): void {
    record.outcome = outcome;
    record.finishedAt = this.#clock.wallTime().getTime();
    this.#changed(record);
  }

  /** Called when a command came and again when it ended. Returns what removes the listener. */
  subscribe(listener: (record: CommandRecord) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** A point in time for `since`; stays valid after `clear`. */
  mark(): number {
    return this.#forgotten + this.#records.length;
  }

  clear(): void {
    this.#forgotten += this.#records.length;
    this.#records = [];
  }

  records(filter: HistoryFilter = {}): CommandRecord[] {
    const first = Math.max(0, (filter.since ?? 0) - this.#forgotten);
    const records = first === 0 ? this.#records : this.#records.slice(first);
    return records.filter((record) => isMatch(record, filter));
  }

  /** Installs that took place, by `installBiz` and by baseline. */
  installsExecuted(filter: HistoryFilter = {}): CommandRecord[] {
    return this.records({ ...filter, outcome: 'executed' }).filter(isInstall);
  }

  /** How often each module was installed on each base. */
  installCounts(filter: HistoryFilter = {}): InstallCount[] {
    const counts = new Map<string, InstallCount>();
    for (const { base, bizName = '', bizVersion = '' } of this.installsExecuted(filter)) {
      const key = JSON.stringify([base, bizName, bizVersion]);
      const count = counts.get(key) ?? { base, bizName, bizVersion, count: 0 };
      count.count += 1;
      counts.set(key, count);
    }
    return [...counts.values()];
  }

  /** Installs that came while that very module was active or in work, whatever the base made of them. */
  installsWhileActiveOrInWork(filter: HistoryFilter = {}): CommandRecord[] {
    return this.records(filter).filter(
      (record) => isInstall(record) && (record.stateAtReceipt === 'ACTIVATED' || record.stateAtReceipt === 'RESOLVED'),
    );
  }

  /** Commands per base and kind since a mark; a base that received none is absent. */
  commandCounts(since = 0): Map<string, CommandCounts> {
    const counts = new Map<string, CommandCounts>();
    for (const record of this.records({ since })) {
      if (!isCounted(record.command)) continue;
      const ofBase = counts.get(record.base) ?? noCommands();
      ofBase[record.command] += 1;
      counts.set(record.base, ofBase);
    }
    return counts;
  }

  /** Resolves with all matching commands that have ended once there are `count`, those of before the call included. */
  async waitFor(filter: HistoryFilter, options: { count?: number; timeoutMs?: number } = {}): Promise<CommandRecord[]> {
    const { count = 1, timeoutMs = 5_000 } = options;
    const ended = (): CommandRecord[] => this.records(filter).filter((record) => record.outcome !== 'in work');
    const missing = count - ended().length;
    if (missing > 0) await this.#wait(filter, missing, timeoutMs);
    return ended();
  }

  #wait(filter: HistoryFilter, missing: number, timeoutMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { filter, missing, resolve: () => end(resolve) };
      const timer = this.#clock.setTimer(() => {
        const text = `${waiter.missing} commands that match ${JSON.stringify(filter)} missing after ${timeoutMs} ms`;
        end(() => reject(new Error(text)));
      }, timeoutMs);
      const end = (settle: () => void): void => {
        timer.cancel();
        this.#waiters.delete(waiter);
        settle();
      };
      this.#waiters.add(waiter);
    });
  }

  #changed(record: CommandRecord): void {
    for (const listener of this.#listeners) listener(record);
    if (record.outcome === 'in work') return;
    for (const waiter of this.#waiters) {
      if (!isMatch(record, waiter.filter)) continue;
      waiter.missing -= 1;
      if (waiter.missing === 0) waiter.resolve();
    }
  }
}

function isMatch(record: CommandRecord, filter: HistoryFilter): boolean {
  if (filter.since !== undefined && record.sequence < filter.since) return false;
  return (['base', 'command', 'bizName', 'bizVersion', 'outcome', 'tunnel'] as const).every(
    (field) => filter[field] === undefined || filter[field] === record[field],
  );
}

function isInstall(record: CommandRecord): boolean {
  return record.command === 'installBiz' || record.command === 'batchInstallBiz';
}

function noCommands(): CommandCounts {
  return { installBiz: 0, uninstallBiz: 0, queryAllBiz: 0, health: 0, batchInstallBiz: 0 };
}

function isCounted(command: string): command is CountedCommand {
  return Object.hasOwn(noCommands(), command);
}
