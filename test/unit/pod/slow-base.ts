import type { PlannedCommand } from '../../../src/pod/base-plan.ts';
import {
  isReplacing,
  type ModuleCommand,
  type ModuleKey,
  type ModuleState,
  type ModuleStatus,
  moduleKeyOf,
  type OperationResult,
} from '../../../src/tunnel/module.ts';
import { idOf, isSibling, LEDGER_OPTIONS, makeResult } from '../../support/builders.ts';

interface Work {
  readonly command: ModuleCommand;
  readonly key: ModuleKey;
  readonly isReplacing: boolean;
  readonly sentAt: number;
  readonly sentIn: number;
  readonly endsAt: number;
  readonly isLost: boolean;
  readonly fails: boolean;
}

export interface SlowBaseOptions {
  readonly there: readonly ModuleKey[];
  /** For one command after the other: how long it takes, in steps; whether its answer is lost; whether it fails. */
  readonly takes: Iterator<number>;
  readonly isLost: Iterator<boolean>;
  readonly fails: Iterator<boolean>;
  readonly stepMs: number;
  /** `-Dactivate.new.module`: of two versions of a name the one that was installed last is active. Default: it is. */
  readonly activatesNew?: boolean;
}

/** A base that works on commands for a while, and refuses a second one about the same version, as arklet does. */
export class SlowBase {
  readonly #options: SlowBaseOptions;
  readonly #modules: Map<ModuleKey, ModuleState>;
  /** Of the commands that it took, those in work. */
  #works: Work[] = [];
  #refusals: OperationResult[] = [];

  constructor(options: SlowBaseOptions) {
    this.#options = options;
    this.#modules = new Map(options.there.map((key) => [key, 'ACTIVATED']));
  }

  get isIdle(): boolean {
    return this.#works.length === 0;
  }

  isWorkingOn(key: ModuleKey): boolean {
    return this.#works.some((work) => work.key === key);
  }

  stateOf(key: ModuleKey): ModuleState | undefined {
    return this.#modules.get(key);
  }

  list(): ModuleStatus[] {
    return [...this.#modules].map(([key, state]) => ({ ...idOf(key), state }));
  }

  /** Ends what is over, and returns the answers. */
  advance(now: number): OperationResult[] {
    const over = this.#works.filter(({ endsAt }) => endsAt <= now);
    this.#works = this.#works.filter(({ endsAt }) => endsAt > now);
    const answers = over.map((work) => this.#end(work)).filter((_, index) => over[index]?.isLost === false);
    return [...this.#refusals.splice(0), ...answers];
  }

  receive(planned: PlannedCommand, now: number, step: number): void {
    const { takes, isLost, fails, stepMs } = this.#options;
    const key = keyOf(planned);
    const { command } = planned;
    if (this.#works.some((work) => work.key === key)) {
      this.#refusals.push(makeResult(command, key, { outcome: 'busy' }));
      return;
    }
    // A switch only changes states, and what is not there need not be uninstalled.
    const isIdle = command === 'switch' || (command === 'uninstall' && !this.#modules.has(key));
    const endsAt = isIdle ? now : now + Number(takes.next().value) * stepMs;
    const end = { endsAt, isLost: isLost.next().value === true, fails: fails.next().value === true };
    this.#works.push({ command, key, isReplacing: doesReplace(planned), sentAt: now, sentIn: step, ...end });
    if (command === 'uninstall' && this.#modules.has(key)) this.#modules.set(key, 'DEACTIVATED');
    if (command !== 'install') return;
    if (doesReplace(planned)) for (const other of this.#siblingsOf(key)) this.#modules.delete(other);
    this.#modules.set(key, 'RESOLVED');
  }

  /**
   * What is in work and conflicts with a command, in words. Left out: what was sent longer ago than its deadline, and
   * uninstalls that were sent before the step `since` by another controller, since no list shows those.
   */
  conflictsOf(planned: PlannedCommand, { now, since }: { now: number; since: number }): string[] {
    const key = keyOf(planned);
    return this.#works
      .filter((work) => {
        const isConflict = isSibling(work.key, key) && (work.isReplacing || doesReplace(planned));
        const isForeign = work.sentIn < since;
        if (work.endsAt <= now) return false;
        return isConflict && now < work.sentAt + deadlineOf(work.command) && !(isForeign && work.command !== 'install');
      })
      .map((work) => `${planned.command} ${key} beside ${work.command} ${work.key}`);
  }

  #end({ command, key, fails }: Work): OperationResult {
    if (fails) {
      if (command === 'install') this.#modules.delete(key);
      return makeResult(command, key, { outcome: 'failed', message: 'no' });
    }
    if (command === 'uninstall') this.#modules.delete(key);
    else if (command === 'install' && this.#keepsAnother(key)) this.#modules.set(key, 'DEACTIVATED');
    else if (command === 'install' || this.#modules.has(key)) this.#activate(key);
    return makeResult(command, key);
  }

  #keepsAnother(key: ModuleKey): boolean {
    const isActive = (other: ModuleKey): boolean => this.#modules.get(other) === 'ACTIVATED';
    return this.#options.activatesNew === false && this.#siblingsOf(key).some(isActive);
  }

  #activate(key: ModuleKey): void {
    for (const other of this.#siblingsOf(key)) {
      if (this.#modules.get(other) === 'ACTIVATED') this.#modules.set(other, 'DEACTIVATED');
    }
    this.#modules.set(key, 'ACTIVATED');
  }

  #siblingsOf(key: ModuleKey): ModuleKey[] {
    return [...this.#modules.keys()].filter((other) => isSibling(other, key));
  }
}

function keyOf(planned: PlannedCommand): ModuleKey {
  return moduleKeyOf(planned.command === 'install' ? planned.spec : planned.id);
}

function doesReplace(planned: PlannedCommand): boolean {
  return planned.command === 'install' && isReplacing(planned.spec);
}

function deadlineOf(command: ModuleCommand): number {
  return command === 'install' ? LEDGER_OPTIONS.installDeadlineMs : LEDGER_OPTIONS.uninstallDeadlineMs;
}
