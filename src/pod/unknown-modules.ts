import { sleep } from '../clock.ts';
import { messageOf } from '../errors.ts';
import type { KubeClient } from '../kube/client.ts';
import { nodeSubject } from '../kube/events/event-object.ts';
import type { EventRecorder } from '../kube/events/event-recorder.ts';
import { COMPONENT, COMPONENT_LABEL } from '../labels.ts';
import { plainLine } from '../shortened.ts';
import { type ModuleId, type ModuleKey, moduleKeyOf } from '../tunnel/module.ts';
import { ASK_AGAIN_MS, type BasePlan } from './base-plan.ts';
import { FirstContacts, type FirstContactsOptions } from './first-contacts.ts';
import type { LedBase, UnknownModule } from './led-base.ts';
import { NameOwners, type OwnerOf } from './name-owners.ts';
import { projectPod, type VPod } from './vpod.ts';

export type UnknownModulePolicy = 'remove' | 'keep';

export interface UnknownModulesOptions extends FirstContactsOptions {
  readonly api: KubeClient;
  readonly recorder: EventRecorder;
  readonly policy: UnknownModulePolicy;
  readonly ownerOf: OwnerOf;
}

/** A list that is asked for this long after the module was first seen has to have it too. */
const SECOND_LIST_AFTER_MS = 10_000;
/** One read of the API server serves all bases that wait for it; the next begins this much later. */
const READ_INTERVAL_MS = 10_000;

type Attention = Pick<BasePlan, 'askList' | 'wakeAt'>;
const NOTHING_TO_DO: Attention = { askList: false, wakeAt: undefined };

const KEPT_MESSAGE =
  'The base had these modules when this ENV first met it, and they are kept. To manage one, create a Pod on this Node ' +
  'with its name and version: it adopts the module without an install';

/** Modules that some Pod asks for, and whose name belongs to that Pod's namespace, by the name of the Pod's Node. */
type WantedByNode = ReadonlyMap<string, ReadonlySet<ModuleKey>>;

/**
 * Modules that no Pod asks for: somebody installed them past this controller, or their Pod was deleted by force while
 * no controller ran. They are reported once. With the policy `remove` their removal is required when the record
 * of first contacts does not keep them, two lists have them, the second asked for 10 s later, and then a read past the
 * cache shows no Pod that asks for them.
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
  /** undefined with the policy `keep`: nothing is removed, so nothing has to be remembered. */
  readonly #contacts: FirstContacts | undefined;

  constructor(options: UnknownModulesOptions) {
    this.#options = options;
    this.#contacts = options.policy === 'remove' ? new FirstContacts(options) : undefined;
  }

  /** Reads the API server until `signal` is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const stop = (): void => this.#stopped.abort();
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    await this.#contacts?.run(signal);
  }

  /** Takes what the plan of a base found. Returns whether its list should be asked for, and when to look again. */
  observe(base: LedBase, plan: Pick<BasePlan, 'unknown' | 'isWanted' | 'isOfFormerOwner'>): Attention {
    const { unknown: found } = plan;
    const now = this.#options.clock.now();
    // A list that came after the plan was made is for the next plan.
    if (found === undefined || !base.ledger.isKnown) {
      // The next list counts as the first one.
      for (const [key, entry] of base.unknown) base.unknown.set(key, { ...entry, seenAt: now });
      return NOTHING_TO_DO;
    }
    const isKept = this.#contacts === undefined ? keepsNone(base) : this.#contacts.observe(base, plan);
    // Some agents list the base itself, and only its health has the name.
    const modules = found.filter(({ name }) => name !== base.masterName);
    track(base, isKept ? modules.filter((id) => !isKept(moduleKeyOf(id))) : modules, now);
    // What becomes of them is not known yet: the record of first contacts is being read.
    if (isKept === undefined) return NOTHING_TO_DO;
    this.#reportKept(base, modules.map(moduleKeyOf).filter(isKept));
    if (base.unknown.size === 0) return NOTHING_TO_DO;
    this.#reportUnknown(base);
    return this.#options.policy === 'keep' ? NOTHING_TO_DO : this.#follow(base, now);
  }

  #follow(base: LedBase, now: number): Attention {
    const times: number[] = [];
    const confirmed: ModuleKey[] = [];
    for (const [key, entry] of base.unknown) {
      if (isInTwoLists(base, entry)) confirmed.push(key);
      else times.push(Math.max(entry.seenAt + SECOND_LIST_AFTER_MS, base.ledger.askedAt + ASK_AGAIN_MS));
    }
    if (confirmed.length > 0) this.#confirm(base, confirmed);
    const askAt = times.length === 0 ? undefined : Math.min(...times);
    const askList = askAt !== undefined && askAt <= now;
    return { askList, wakeAt: askList ? now + ASK_AGAIN_MS : askAt };
  }

  #reportUnknown(base: LedBase): void {
    const news = [...base.unknown].filter(([, { isReported }]) => !isReported);
    if (news.length === 0) return;
    for (const [key, entry] of news) base.unknown.set(key, { ...entry, isReported: true });
    const fate = this.#options.policy === 'keep' ? 'kept' : 'removed';
    const modules = shortened(news.map(([key]) => key));
    const admitted = base.reports.admit(this.#options.clock.now());
    if (admitted === undefined) return;
    this.#options.logger.warn(
      { node: base.nodeName, modules, fate, ...admitted },
      'base has modules that no Pod asks for',
    );
    this.#report(base, `no Pod asks for ${modules.join(', ')}: they will be ${fate}`);
  }

  /** Once in the life of this process, also when other replicas lead the base in between. */
  #reportKept(base: LedBase, keys: readonly ModuleKey[]): void {
    const { contact } = base;
    if (keys.length === 0 && contact.reported.size === 0) return;
    const news = keys.filter((key) => !contact.reported.has(key));
    contact.keptCount = keys.length;
    contact.reported = new Set(keys);
    if (news.length === 0) return;
    const admitted = base.reports.admit(this.#options.clock.now());
    if (admitted === undefined) return;
    const modules = shortened(news);
    this.#options.logger.warn(
      { node: base.nodeName, modules, ...admitted },
      'modules from before the first contact are kept',
    );
    this.#report(base, `${KEPT_MESSAGE}: ${modules.join(', ')}`);
  }

  #report({ nodeName }: LedBase, message: string): void {
    this.#options.recorder.event(nodeSubject(nodeName), 'Warning', 'UnknownModule', message);
  }

  #confirm(base: LedBase, keys: readonly ModuleKey[]): void {
    const { nodeName, contact } = base;
    if (this.#waiting.has(nodeName) || base.masterName === undefined) return;
    this.#waiting.add(nodeName);
    const { logger, enqueue } = this.#options;
    this.#read()
      .then((wanted) => {
        // Another replica led the base during the read, and all of it begins again.
        if (base.contact !== contact) return;
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
  #settle(base: LedBase, key: ModuleKey, isWanted: boolean): boolean {
    const entry = base.unknown.get(key);
    if (entry === undefined || !base.contact.isRecorded || !isInTwoLists(base, entry)) return false;
    if (isWanted) {
      // The cache lags behind: the watch will bring the Pod.
      base.unknown.set(key, { ...entry, seenAt: this.#options.clock.now() });
      return false;
    }
    base.unknown.delete(key);
    base.pendingRemovals.set(key, entry.id);
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
    const { clock, api, ownerOf } = this.#options;
    await this.#lastRead;
    const waitMs = this.#readAt + READ_INTERVAL_MS - clock.now();
    if (waitMs > 0) await sleep(clock, waitMs, this.#stopped.signal);
    this.#stopped.signal.throwIfAborted();
    this.#nextRead = undefined;
    this.#readAt = clock.now();
    return wantedByNode(await api.listPods(`${COMPONENT_LABEL}=${COMPONENT.module}`, projectPod), ownerOf);
  }
}

/** With the policy `keep` no record says what the base had, and nothing of its lists has to be remembered. */
function keepsNone({ contact }: LedBase): () => boolean {
  contact.listed = undefined;
  return () => false;
}

/** Keeps `base.unknown` in step with the newest list. */
function track(base: LedBase, modules: readonly ModuleId[], now: number): void {
  if (modules.length === 0) {
    base.unknown.clear();
    return;
  }
  const keys = new Set(modules.map(moduleKeyOf));
  for (const key of base.unknown.keys()) if (!keys.has(key)) base.unknown.delete(key);
  for (const id of modules) {
    const key = moduleKeyOf(id);
    if (!base.unknown.has(key)) base.unknown.set(key, { id, seenAt: now, isReported: false });
  }
}

function isInTwoLists({ ledger }: LedBase, { seenAt }: UnknownModule): boolean {
  return ledger.listedAt >= seenAt + SECOND_LIST_AFTER_MS;
}

function wantedByNode(found: readonly VPod[], ownerOf: OwnerOf): WantedByNode {
  const byNode = Map.groupBy(found, ({ nodeName }) => nodeName);
  const wanted = new Map<string, ReadonlySet<ModuleKey>>();
  for (const [nodeName, pods] of byNode) {
    if (nodeName === undefined) continue;
    const owners = new NameOwners({ pods, pendingRemovals: new Map(), isLeft: () => true, ownerOf });
    wanted.set(nodeName, new Set(pods.flatMap((pod) => owners.specsOf(pod)).map(moduleKeyOf)));
  }
  return wanted;
}

const MAX_TOLD = 20;
const MAX_KEY_LENGTH = 128;

/** The first few keys for people, and how many there are besides. */
function shortened(keys: readonly ModuleKey[]): string[] {
  // Whoever made the jar chose them, or the base invented them.
  const first = keys.slice(0, MAX_TOLD).map((key) => plainLine(key, MAX_KEY_LENGTH));
  return keys.length <= MAX_TOLD ? first : [...first, `${keys.length - MAX_TOLD} more`];
}
