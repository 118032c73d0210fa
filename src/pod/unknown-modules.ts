import { type Clock, sleep } from '../clock.ts';
import { messageOf } from '../errors.ts';
import type { KubeClient } from '../kube/client.ts';
import { COMPONENT, COMPONENT_LABEL } from '../labels.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from '../metrics.ts';
import { type ModuleId, type ModuleKey, moduleKeyOf } from '../tunnel/module.ts';
import { ASK_AGAIN_MS } from './base-plan.ts';
import type { ManagedBase } from './managed-base.ts';
import { moduleSpecsOf } from './module-spec.ts';
import { projectPod } from './vpod.ts';

export type UnknownModulePolicy = 'remove' | 'keep';

export interface UnknownModulesOptions {
  readonly api: KubeClient;
  readonly policy: UnknownModulePolicy;
  /** Makes the plan of a base anew. */
  readonly enqueue: (nodeName: string) => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** So long after it was first seen a list is asked for that has to have the module too. */
const SECOND_LIST_AFTER_MS = 10_000;
/** One read of the API server serves all bases that wait for it; the next begins this much later. */
const READ_INTERVAL_MS = 10_000;

/** By node name, the modules that some Pod there asks for. */
type WantedByNode = ReadonlyMap<string, ReadonlySet<ModuleKey>>;

/**
 * Modules that no Pod asks for: somebody installed them past us, or their Pod was deleted by force while nobody
 * looked. They are told of once, and with the policy `remove` they become debts of the base when two lists have
 * them, the second asked for 10 s later, and then a read past our cache shows no Pod that asks for them.
 */
export class UnknownModules {
  readonly #options: UnknownModulesOptions;
  /** Nodes whose bases wait for a read. Emptied by its end. */
  readonly #waiting = new Set<string>();
  /** The read that has not begun yet: whoever comes now may share it. */
  #nextRead: Promise<WantedByNode> | undefined;
  #lastRead: Promise<unknown> = Promise.resolve();
  #readAt = Number.NEGATIVE_INFINITY;
  readonly #stopped = new AbortController();

  constructor(options: UnknownModulesOptions) {
    this.#options = options;
  }

  /** Nothing is read any more. */
  stop(): void {
    this.#stopped.abort();
  }

  /** Takes what the plan of a base found. Returns whether its list should be asked for, and when to look again. */
  observe(base: ManagedBase, found: readonly ModuleId[]): { askList: boolean; wakeAt: number | undefined } {
    const now = this.#options.clock.now();
    if (!base.ledger.isKnown) {
      // The next list counts as the first one.
      for (const [key, { id }] of base.unknown) base.unknown.set(key, { id, seenAt: now });
      return { askList: false, wakeAt: undefined };
    }
    // Some agents list the base itself, and only its health tells by which name.
    const modules = found.filter(({ name }) => name !== base.masterName);
    const keys = new Set(modules.map(moduleKeyOf));
    for (const key of base.unknown.keys()) if (!keys.has(key)) base.unknown.delete(key);
    const news = modules.filter((id) => !base.unknown.has(moduleKeyOf(id)));
    for (const id of news) base.unknown.set(moduleKeyOf(id), { id, seenAt: now });
    if (news.length > 0) this.#tell(base, news.map(moduleKeyOf));
    if (this.#options.policy === 'keep' || base.unknown.size === 0) return { askList: false, wakeAt: undefined };
    return this.#follow(base, now);
  }

  #follow(base: ManagedBase, now: number): { askList: boolean; wakeAt: number | undefined } {
    const times: number[] = [];
    const confirmed: ModuleKey[] = [];
    for (const [key, { seenAt }] of base.unknown) {
      const dueAt = seenAt + SECOND_LIST_AFTER_MS;
      if (base.ledger.listedAt >= dueAt) confirmed.push(key);
      else times.push(Math.max(dueAt, base.ledger.askedAt + ASK_AGAIN_MS));
    }
    if (confirmed.length > 0) this.#confirm(base, confirmed);
    const askAt = times.length === 0 ? undefined : Math.min(...times);
    const askList = askAt !== undefined && askAt <= now;
    return { askList, wakeAt: askList ? now + ASK_AGAIN_MS : askAt };
  }

  #tell(base: ManagedBase, keys: readonly ModuleKey[]): void {
    const fate = this.#options.policy === 'keep' ? 'kept' : 'removed';
    const modules = shortened(keys);
    this.#options.logger.warn({ node: base.nodeName, modules, fate }, 'base has modules that no Pod asks for');
    base.onUnknownModules(`no Pod asks for ${modules.join(', ')}: to be ${fate}`);
  }

  #confirm(base: ManagedBase, keys: readonly ModuleKey[]): void {
    const { nodeName } = base;
    if (this.#waiting.has(nodeName) || base.masterName === undefined) return;
    this.#waiting.add(nodeName);
    const { logger, enqueue } = this.#options;
    this.#read()
      .then((wanted) => {
        const orphans = keys.filter((key) => this.#settle(base, key, wanted.get(nodeName)?.has(key) === true));
        if (orphans.length === 0) return;
        const modules = shortened(orphans);
        logger.warn({ node: nodeName, modules }, 'modules that no Pod asks for are removed');
      })
      .catch((error: unknown) => {
        if (this.#stopped.signal.aborted) return;
        logger.warn({ node: nodeName, reason: messageOf(error) }, 'Pods could not be read: nothing is removed');
      })
      .finally(() => {
        this.#waiting.delete(nodeName);
        enqueue(nodeName);
      });
  }

  /** Whether the module is to be removed. */
  #settle(base: ManagedBase, key: ModuleKey, isWanted: boolean): boolean {
    const entry = base.unknown.get(key);
    if (entry === undefined) return false;
    if (isWanted) {
      // Our cache lags behind: the watch will tell of the Pod.
      base.unknown.set(key, { id: entry.id, seenAt: this.#options.clock.now() });
      return false;
    }
    base.unknown.delete(key);
    base.debts.set(key, entry.id);
    this.#options.metrics.unknownModulesRemoved.inc();
    return true;
  }

  /** A read that begins after this call; one for all who call before it begins. */
  #read(): Promise<WantedByNode> {
    if (this.#nextRead !== undefined) return this.#nextRead;
    const next = this.#readInTurn();
    this.#nextRead = next;
    this.#lastRead = next.catch(() => {});
    return next;
  }

  async #readInTurn(): Promise<WantedByNode> {
    const { clock, api } = this.#options;
    await this.#lastRead;
    const waitMs = this.#readAt + READ_INTERVAL_MS - clock.now();
    if (waitMs > 0) await sleep(clock, waitMs, this.#stopped.signal);
    this.#stopped.signal.throwIfAborted();
    this.#nextRead = undefined;
    this.#readAt = clock.now();
    return wantedByNode(await api.listPods(`${COMPONENT_LABEL}=${COMPONENT.module}`));
  }
}

function wantedByNode(pods: readonly Parameters<typeof projectPod>[0][]): WantedByNode {
  const wanted = new Map<string, Set<ModuleKey>>();
  for (const object of pods) {
    const pod = projectPod(object);
    if (pod.nodeName === undefined) continue;
    const keys = wanted.get(pod.nodeName) ?? new Set<ModuleKey>();
    for (const spec of moduleSpecsOf(pod)) keys.add(moduleKeyOf(spec));
    wanted.set(pod.nodeName, keys);
  }
  return wanted;
}

const MAX_TOLD = 20;

/** For people: the first few, and how many there are besides. */
function shortened(keys: readonly ModuleKey[]): string[] {
  if (keys.length <= MAX_TOLD) return [...keys];
  return [...keys.slice(0, MAX_TOLD), `${keys.length - MAX_TOLD} more`];
}
