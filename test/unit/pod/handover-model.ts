import type { ModuleLedger } from '../../../src/module/module-ledger.ts';
import { type BasePlan, type PlannedCommand, planBase } from '../../../src/pod/base-plan.ts';
import { moduleSpecsOf } from '../../../src/pod/module-spec.ts';
import { type BaseFacts, computePodStatus } from '../../../src/pod/pod-status.ts';
import type { PendingRemoval } from '../../../src/pod/removals.ts';
import type { VPod } from '../../../src/pod/vpod.ts';
import { type ModuleKey, moduleKeyOf, type OperationResult } from '../../../src/tunnel/module.ts';
import { idOf, isSibling, makeLedger, makePod } from '../../support/builders.ts';
import { SlowBase } from './slow-base.ts';

const FACTS: BaseFacts = { identity: 'b1', ip: '198.51.100.1', isRoutable: true, unreachable: undefined };
export const STEP_MS = 1_000;
/** Longer than all deadlines and back-offs that a story may lead to. */
const STEPS = 1_200;
const UNKNOWN_FOR_STEPS = 10;
/** Longer than the time between two lists. */
const QUIET_STEPS = 35;

export interface PodStory {
  readonly key: ModuleKey;
  readonly createdIn: number;
  readonly deletedIn: number;
  readonly isForced: boolean;
  readonly sleepSteps: number;
}

/** What happens to a base and its Pods, by the step in which it does. */
export interface HandoverStory {
  readonly canSwitch: boolean;
  readonly activatesNew: boolean;
  readonly pods: readonly PodStory[];
  /** For one command after the other; when these are over, commands take a step, are answered once, and succeed. */
  readonly takes: readonly number[];
  readonly isLost: readonly boolean[];
  readonly fails: readonly boolean[];
  /** By how many steps answers are late, and whether they come again. Over HTTP neither happens. */
  readonly late: readonly number[];
  readonly twice: readonly boolean[];
  readonly newLeadersIn: readonly number[];
  readonly listEvery: number;
  readonly listsLate: number;
}

interface Message {
  readonly dueIn: number;
  readonly publishedAt: number | undefined;
  readonly askedAt: number | undefined;
  readonly result?: OperationResult;
  readonly list?: ReturnType<SlowBase['list']>;
}

function* then<T>(values: readonly T[], rest: T): Generator<T, never> {
  yield* values;
  while (true) yield rest;
}

/** A controller, a base and its Pods, in steps of a second. */
export class HandoverModel {
  /** What must not happen, in words. */
  readonly faults: string[] = [];
  readonly sent: string[] = [];
  readonly base: SlowBase;
  readonly #story: HandoverStory;
  readonly #late: Generator<number, never>;
  readonly #twice: Generator<boolean, never>;
  readonly #pods = new Map<string, VPod>();
  readonly #sleeps = new Map<string, number>();
  readonly #pendingRemovals = new Map<ModuleKey, PendingRemoval>();
  /** Since which step no Pod asks for a module of the base. */
  readonly #unknownSince = new Map<ModuleKey, number>();
  /** Versions that are uninstalled to be installed again, so that they become active: their Pods stay. */
  readonly #takeovers = new Set<ModuleKey>();
  #messages: Message[] = [];
  #ledger: ModuleLedger = makeLedger();

  constructor(story: HandoverStory) {
    this.#story = story;
    const { takes, isLost, fails, late, twice, activatesNew } = story;
    this.#late = then(late, 0);
    this.#twice = then(twice, false);
    const streams = { takes: then(takes, 1), isLost: then(isLost, false), fails: then(fails, false) };
    this.base = new SlowBase({ ...streams, there: [], stepMs: STEP_MS, activatesNew });
  }

  play(): this {
    const events = this.#story.pods.flatMap(({ createdIn, deletedIn, sleepSteps }) => [
      createdIn,
      deletedIn + sleepSteps,
    ]);
    const last = Math.max(...[...events, ...this.#story.newLeadersIn].filter((step) => step < STEPS));
    for (let step = 0, quiet = 0; step < STEPS && quiet < QUIET_STEPS; step++) {
      const isQuiet = this.#step(step) && step > last;
      quiet = isQuiet ? quiet + 1 : 0;
    }
    return this;
  }

  get pods(): readonly VPod[] {
    return [...this.#pods.values()];
  }

  /** Returns whether nothing is under way. */
  #step(step: number): boolean {
    const now = nowIn(step);
    this.#changePods(step);
    if (this.#story.newLeadersIn.includes(step)) this.#replaceLeader();
    for (const result of this.base.advance(now)) this.#publish(step, { result });
    if (step % this.#story.listEvery === 0) this.#ask(step);
    const inactive = this.#deliver(step);
    this.#ledger.expire(now);
    const plan = this.#plan(now);
    if (plan.askList) this.#ask(step);
    this.#write(plan, now);
    for (const key of inactive) this.#checkReady(key, step);
    const switches = plan.commands.filter(({ command }) => command === 'switch');
    if (switches.length > 1) this.faults.push(`step ${step}: two versions are switched to`);
    for (const command of plan.commands) this.#send(command, step);
    for (const key of this.#takeovers) {
      if (this.#livingOf(key).length === 0 || this.base.stateOf(key) === 'ACTIVATED') this.#takeovers.delete(key);
    }
    for (const pod of plan.finished) this.#pods.delete(pod.uid);
    for (const [key] of plan.settledRemovals) this.#pendingRemovals.delete(key);
    this.#removeUnknown(plan, step);
    this.#ledger.forgetUnless(plan.isWanted);
    return plan.wakeAt === undefined && this.base.isIdle && this.#unknownSince.size === 0;
  }

  #changePods(step: number): void {
    for (const { key, createdIn, deletedIn, isForced, sleepSteps } of this.#story.pods) {
      const uid = `${key}-${createdIn}`;
      if (createdIn === step) {
        const createdAt = new Date(Date.UTC(2026, 0, 1, 0, 0, createdIn)).toISOString().replace('.000Z', 'Z');
        this.#pods.set(uid, makePod({ name: uid, uid, modules: [key], createdAt }));
      }
      const pod = this.#pods.get(uid);
      if (deletedIn !== step || pod === undefined) continue;
      if (isForced) {
        this.#pods.delete(uid);
        this.#pendingRemovals.set(key, { ...idOf(key), namespace: pod.namespace });
      } else {
        this.#pods.set(uid, { ...pod, isDeleting: true });
        this.#sleeps.set(uid, nowIn(step + sleepSteps));
      }
    }
  }

  /** Another process goes on with what the API and the base have. */
  #replaceLeader(): void {
    this.#ledger = makeLedger();
    this.#pendingRemovals.clear();
    this.#unknownSince.clear();
    this.#takeovers.clear();
  }

  #ask(step: number): void {
    this.#ledger.listAsked(nowIn(step));
    this.#publish(step, { list: this.base.list() });
  }

  /** Over MQTT messages have the base's time and come late or twice; over HTTP lists have the time of the question. */
  #publish(step: number, content: Pick<Message, 'result' | 'list'>): void {
    const { canSwitch, listsLate } = this.#story;
    if (canSwitch) {
      this.#messages.push({ dueIn: step, publishedAt: undefined, askedAt: nowIn(step), ...content });
      return;
    }
    const publishedAt = 1_000_000 + nowIn(step) + this.#messages.length;
    const lateSteps = content.list ? listsLate : this.#late.next().value;
    const message = { publishedAt, askedAt: undefined, ...content };
    this.#messages.push({ ...message, dueIn: step + lateSteps });
    if (content.result && this.#twice.next().value) this.#messages.push({ ...message, dueIn: step + lateSteps + 3 });
  }

  /** Returns the versions that the newest list has shown DEACTIVATED. */
  #deliver(step: number): ModuleKey[] {
    const due = this.#messages.filter(({ dueIn }) => dueIn <= step);
    this.#messages = this.#messages.filter(({ dueIn }) => dueIn > step);
    let inactive: ModuleKey[] = [];
    for (const { result, list, publishedAt, askedAt } of due) {
      const times = { ...(publishedAt !== undefined && { publishedAt }), ...(askedAt !== undefined && { askedAt }) };
      if (result) this.#ledger.takeResult(result, times, nowIn(step));
      if (list && this.#ledger.takeList(list, times, nowIn(step))) {
        inactive = list.filter(({ state }) => state === 'DEACTIVATED').map(moduleKeyOf);
      }
    }
    return inactive;
  }

  #plan(now: number): BasePlan {
    return planBase({
      pods: this.pods,
      unadmitted: new Map(),
      pendingRemovals: this.#pendingRemovals,
      ledger: this.#ledger,
      sleepUntil: this.#sleeps,
      unwritten: new Set(),
      canSwitch: this.#story.canSwitch,
      ownerOf: (namespace) => namespace,
      now,
    });
  }

  #write(plan: BasePlan, now: number): void {
    const nowText = new Date(Date.UTC(2026, 0, 1) + now).toISOString().replace('.000Z', 'Z');
    for (const [pod, views] of plan.views) {
      this.#pods.set(pod.uid, { ...pod, status: computePodStatus({ pod, views, base: FACTS, now, nowText }) });
    }
  }

  #checkReady(key: ModuleKey, step: number): void {
    // An answer of this step may be newer than the list.
    if (this.#ledger.get(key)?.state !== 'DEACTIVATED') return;
    for (const pod of this.#livingOf(key)) {
      if (isReady(pod)) this.faults.push(`step ${step}: ${pod.name} is Ready, and ${key} is listed as DEACTIVATED`);
    }
  }

  #send(planned: PlannedCommand, step: number): void {
    const spec = planned.command === 'install' ? planned.spec : planned.id;
    const key = moduleKeyOf(spec);
    if (planned.command === 'uninstall') {
      this.#checkUninstall(key, step);
      if (this.base.stateOf(key) === 'DEACTIVATED' && this.#livingOf(key).length > 0) this.#takeovers.add(key);
    }
    if (planned.command === 'install') {
      if (this.#livingOf(key).length === 0) this.faults.push(`step ${step}: ${key} is installed for nobody`);
      this.#ledger.installSent(planned.spec, nowIn(step));
    } else this.#ledger.commandSent(planned.command, planned.id, nowIn(step), planned.isReturning);
    this.sent.push(`${step}: ${planned.command} ${key}`);
    this.base.receive(planned, nowIn(step), step);
  }

  /** The active version of a name goes only when no other one that a living Pod asks for can be made active first. */
  #checkUninstall(key: ModuleKey, step: number): void {
    if (this.base.stateOf(key) !== 'ACTIVATED') return;
    const heirs = [...new Set(this.pods.filter(isLiving).flatMap(moduleSpecsOf).map(moduleKeyOf))].filter(
      (other) => isSibling(other, key) && this.#isHeir(other) && this.#canServe(other),
    );
    for (const heir of heirs) {
      this.faults.push(`step ${step}: the active ${key} is uninstalled, and ${heir} is there`);
    }
  }

  #isHeir(key: ModuleKey): boolean {
    if (this.#takeovers.has(key)) return this.base.stateOf(key) !== 'ACTIVATED';
    // An uninstall for an earlier Pod may be lost, and may go on.
    const isLeaving = this.base.isWorkingOn(key) || this.#ledger.get(key)?.inFlight?.command === 'uninstall';
    return this.base.stateOf(key) === 'DEACTIVATED' && !isLeaving;
  }

  /** As far as the controller may know: what has failed is not waited for. */
  #canServe(key: ModuleKey): boolean {
    const record = this.#ledger.get(key);
    if (record?.failure !== undefined) {
      this.#takeovers.delete(key);
      return false;
    }
    if (this.#story.canSwitch) return true;
    const hasRun = this.#livingOf(key).some(({ status }) =>
      status.containerStatuses.some(
        ({ started, lastState }) => started === true || lastState?.terminated !== undefined,
      ),
    );
    return hasRun && this.#ledger.activatesNew !== false;
  }

  /** As with the policy `remove`. */
  #removeUnknown({ unknown = [] }: BasePlan, step: number): void {
    const keys = new Set(unknown.map(moduleKeyOf));
    for (const key of this.#unknownSince.keys()) if (!keys.has(key)) this.#unknownSince.delete(key);
    for (const key of keys) {
      const since = this.#unknownSince.get(key) ?? step;
      this.#unknownSince.set(key, since);
      if (step - since >= UNKNOWN_FOR_STEPS) this.#pendingRemovals.set(key, idOf(key));
    }
  }

  #livingOf(key: ModuleKey): VPod[] {
    return this.pods.filter((pod) => isLiving(pod) && moduleSpecsOf(pod).some((spec) => moduleKeyOf(spec) === key));
  }
}

function nowIn(step: number): number {
  return 10_000 + step * STEP_MS;
}

export function isLiving({ isDeleting }: VPod): boolean {
  return !isDeleting;
}

export function isReady({ status }: VPod): boolean {
  return status.conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True');
}
