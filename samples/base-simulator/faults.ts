import type { BizRequest, CommandName, InstallPlan } from './model.ts';

/** What a fault changes; it holds for commands that fit all given parts of the match. */
export interface Fault extends InstallPlan {
  command?: CommandName;
  bizName?: string;
  bizVersion?: string;
  urlIncludes?: string;
  /** How many commands it meets. Default: all, until removed. */
  times?: number;
  /**
   * `never`: the command runs, its answer is lost; over HTTP the connection stays. `cut`: the same, and over HTTP the
   * connection is closed without a word. `twice`: two answers over MQTT, one over HTTP.
   */
  answers?: 'twice' | 'never' | 'cut';
  /** The answer comes this much after the command is done. */
  answerDelayMs?: number;
  /** Comes instead of the answer, as it is. */
  garbage?: string;
}

export type Effect = Omit<Fault, 'command' | 'bizName' | 'bizVersion' | 'urlIncludes' | 'times'>;

interface Rule {
  fault: Fault;
  remaining: number;
}

/** The faults of one base, or those of a whole fleet. */
export class FaultScript {
  /** Newest first. Emptied by use, removal and `clear`. */
  #rules: Rule[] = [];

  /** A later fault goes before an earlier one. Returns what removes it. */
  add(fault: Fault): () => void {
    const rule = { fault, remaining: fault.times ?? Number.POSITIVE_INFINITY };
    this.#rules.unshift(rule);
    return () => {
      this.#rules = this.#rules.filter((other) => other !== rule);
    };
  }

  clear(): void {
    this.#rules = [];
  }

  /** What the faults do to one command together; uses up one time of each that fits. */
  take(command: CommandName, request: BizRequest): Effect {
    let effect: Effect = {};
    for (const rule of this.#rules) {
      if (!isMatch(rule.fault, command, request)) continue;
      rule.remaining -= 1;
      effect = { ...effectOf(rule.fault), ...effect };
    }
    this.#rules = this.#rules.filter((rule) => rule.remaining > 0);
    return effect;
  }
}

function isMatch(fault: Fault, command: CommandName, request: BizRequest): boolean {
  if (fault.command !== undefined && fault.command !== command) return false;
  if (fault.bizName !== undefined && fault.bizName !== request.bizName) return false;
  if (fault.bizVersion !== undefined && fault.bizVersion !== request.bizVersion) return false;
  return fault.urlIncludes === undefined || (request.bizUrl ?? '').includes(fault.urlIncludes);
}

function effectOf(fault: Fault): Effect {
  const { command: _c, bizName: _n, bizVersion: _v, urlIncludes: _u, times: _t, ...effect } = fault;
  return effect;
}
