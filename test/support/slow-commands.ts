import type { ModuleCommand, ModuleKey } from '../../src/tunnel/module.ts';
import { idOf, isSibling } from './builders.ts';
import type { CoreRig } from './core-rig.ts';
import { execute, type RigBase } from './rig-base.ts';

/** A span in which something held, in ms since the watch began. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/**
 * A base of a CoreRig that takes its time for commands, as arklet does: a module is RESOLVED while it is installed and
 * DEACTIVATED while it is uninstalled. Records the time in which no version of `name` was active, as the base sees it,
 * and the time in which a Pod was Ready although its version was not active.
 */
export class SlowCommands {
  readonly #rig: CoreRig;
  readonly #base: RigBase;
  readonly #name: string;
  readonly #startedAt: number;
  readonly gaps: Span[] = [];
  /** By Pod. */
  readonly falselyReady = new Map<string, Span[]>();
  /** How a command ends. `unanswered`: it is done, and nobody says so; `never`: the base works on it for ever. */
  answer: (command: ModuleCommand, key: ModuleKey) => 'done' | 'failed' | 'unanswered' | 'never' = () => 'done';

  constructor(rig: CoreRig, base: RigBase, takesMs: Readonly<Record<ModuleCommand, number>>, name = 'biz1') {
    this.#rig = rig;
    this.#base = base;
    this.#name = name;
    this.#startedAt = rig.clock.now();
    base.answersCommands = false;
    const tunnel = base.tunnel === rig.http.name ? rig.http : rig.tunnel;
    const { onSent } = tunnel;
    tunnel.onSent = (question, identity, key) => {
      onSent(question, identity, key);
      if (question === 'list' || question === 'health') return;
      this.#begin(question, key);
      rig.clock.setTimer(() => this.#end(identity, question, key), takesMs[question]);
    };
  }

  /** Time without an active version, in ms. */
  get lostMs(): number {
    return this.gaps.reduce((sum, { from, to }) => sum + to - from, 0);
  }

  /** Lets time pass in small steps, and looks at the base and at the Pods after each. */
  async pass(ms: number, pods: Readonly<Record<string, ModuleKey>> = {}): Promise<void> {
    const stepMs = 20;
    for (let passed = 0; passed < ms; passed += stepMs) {
      await this.#rig.pass(stepMs);
      const now = this.#rig.clock.now() - this.#startedAt;
      const span = { from: now - stepMs, to: now };
      if (!this.#isServed()) extend(this.gaps, span);
      for (const [pod, key] of Object.entries(pods)) {
        if (this.#rig.podState(pod) !== 'Running True' || this.#base.modules.get(key) === 'ACTIVATED') continue;
        const spans = this.falselyReady.get(pod) ?? [];
        this.falselyReady.set(pod, spans);
        extend(spans, span);
      }
    }
  }

  #isServed(): boolean {
    return [...this.#base.modules].some(([key, state]) => idOf(key).name === this.#name && state === 'ACTIVATED');
  }

  #begin(command: ModuleCommand, key: ModuleKey): void {
    const { modules } = this.#base;
    if (command === 'uninstall' && modules.has(key)) modules.set(key, 'DEACTIVATED');
    if (command !== 'install' || modules.has(key)) return;
    if (this.#specOf(key)?.strategy === 'uninstallThenInstall') {
      for (const other of [...modules.keys()]) if (isSibling(other, key)) modules.delete(other);
    }
    modules.set(key, 'RESOLVED');
  }

  #end(identity: string, command: ModuleCommand, key: ModuleKey): void {
    const answer = this.answer(command, key);
    if (answer === 'done') this.#rig.answer(identity, command, key);
    if (answer === 'unanswered') execute(this.#base, command, this.#specOf(key) ?? idOf(key));
    if (answer !== 'failed') return;
    if (command === 'install') this.#base.modules.delete(key);
    this.#rig.fail(identity, command, key, 'no');
  }

  #specOf(key: ModuleKey) {
    return (this.#base.tunnel === this.#rig.http.name ? this.#rig.http : this.#rig.tunnel).specs.get(key);
  }
}

function extend(spans: Span[], span: Span): void {
  const last = spans.at(-1);
  if (last?.to === span.from) spans[spans.length - 1] = { from: last.from, to: span.to };
  else spans.push(span);
}
