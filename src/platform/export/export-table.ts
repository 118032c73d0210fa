import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../clock.ts';
import { isSameModulePod, type ModulePod } from '../../kinds/module-pod.ts';
import type { CachedTenancy } from '../../kinds/module-tenancy.ts';
import { type CachedNode, readyStatusOf } from '../../kinds/vnode-object.ts';
import { type Informer, isWatchAlive, objectKey } from '../../kube/watch/informer-types.ts';
import type { Logger } from '../../logger.ts';
import type { Metrics } from '../../metrics.ts';
import { Turns } from '../../queue/turns.ts';
import { namespaceOf } from '../../reconcile/reconciler.ts';
import { Arklets } from './arklets.ts';
import { servingPods } from './backends.ts';
import type { CachedService } from './cached-service.ts';
import { type Conflict, conflictsOf } from './conflicts.ts';
import type { CachedExportService } from './export-service.ts';
import { type ExportView, viewOf } from './export-view.ts';
import type { ExportSettings } from './exported-service.ts';
import { type Holding, holdingOf, placeOf } from './holdings.ts';
import { HostSharing } from './host-sharing.ts';
import { Selections } from './selections.ts';

export interface ExportTableOptions {
  readonly services: Informer<CachedService>;
  readonly pods: Informer<ModulePod>;
  readonly nodes: Informer<CachedNode>;
  /** Hosts that namespaces share with others. */
  readonly tenancies: Informer<CachedTenancy>;
  /** What is stored of an export says which Service had a host or a port first. */
  readonly exports: Informer<CachedExportService>;
  /** Names this cluster in what balancers get. */
  readonly cluster: string;
  readonly dropsLost: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'exportedServices' | 'exportViewSeconds'>;
}

/** One exported Service, as this replica sees it. */
export interface ExportEntry {
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  /** UID of the Service. */
  readonly uid: string;
  readonly createdAt: string;
  readonly settings: ExportSettings;
  readonly view: ExportView;
  /** Why it is left out, by group. */
  readonly conflicts: ReadonlyMap<string, Conflict>;
  /** Its hosts that another namespace shares with it. */
  readonly guestAt: readonly string[];
}

/** Called with the keys whose entry has changed, come or gone. */
export type ExportListener = (keys: ReadonlySet<string>) => void;

/** Events of one burst are one calculation: balancers see no difference, and the process does. */
const GATHER_MS = 20;
/** A calculation goes on this long at most before timers and requests have their turn. */
const SLICE_MS = 20;

/**
 * All exported Services with their backends, calculated from the caches of this replica: it needs no other one, and
 * writes nothing. An entry is replaced and never changed.
 */
export class ExportTable {
  readonly #options: ExportTableOptions;
  readonly #entries = new Map<string, ExportEntry>();
  readonly #selections = new Selections();
  readonly #arklets = new Arklets();
  readonly #groups = new Map<string, Set<string>>();
  readonly #listeners: ExportListener[] = [];
  /** Since when an entry has to be calculated, by key. Emptied by the calculation. */
  readonly #dirty = new Map<string, number>();
  /** Which of them is next: the Services of one namespace delay no other namespace. */
  readonly #turns = new Turns({ groupOf: namespaceOf, workers: 1 });
  /** Those whose Service has changed. Emptied by the calculation. */
  readonly #claims = new Set<string>();
  readonly #holdings = new Map<string, Holding>();
  /** Those whose ExportService says something else about what they have. */
  readonly #unsettled = new Set<string>();
  /** The shares of all namespaces, made when they are needed. Undefined after each change of one. */
  #sharing: HostSharing | undefined;
  #isScheduled = false;
  /** How long the conflicts took that were judged last. */
  #settledInMs = 0;
  #version = 0;
  #wasWhole = false;

  constructor(options: ExportTableOptions) {
    this.#options = options;
    const { services, pods, nodes, exports, tenancies } = options;
    services.addHandler({
      onAdd: (service) => this.#onService(service),
      onUpdate: (_old, service) => this.#onService(service),
      onDelete: (service) => this.#onServiceGone(objectKey(service)),
    });
    pods.addHandler({
      onAdd: (pod) => this.#onPod(pod),
      onUpdate: (old, pod) => this.#onPod(pod, old),
      onDelete: (pod) => this.#onPodGone(pod),
    });
    nodes.addHandler({
      onAdd: (node) => this.#onNodes(this.#arklets.put(node)),
      onUpdate: (old, node) => {
        const concerned = this.#arklets.put(node);
        if (readyStatusOf(old) !== readyStatusOf(node)) concerned.add(node.name);
        this.#onNodes(concerned);
      },
      onDelete: ({ name }) => this.#onNodes(this.#arklets.remove(name)),
    });
    exports.addHandler({
      onAdd: (stored) => this.#onHolding(objectKey(stored), holdingOf(stored)),
      onUpdate: (_old, stored) => this.#onHolding(objectKey(stored), holdingOf(stored)),
      onDelete: (stored) => this.#onHolding(objectKey(stored), undefined),
    });
    tenancies.addHandler({
      onAdd: (tenancy) => this.#onSharing([], tenancy.sharedHosts),
      onUpdate: (old, tenancy) => this.#onSharing(old.sharedHosts, tenancy.sharedHosts),
      onDelete: (tenancy) => this.#onSharing(tenancy.sharedHosts, []),
    });
  }

  get(key: string): ExportEntry | undefined {
    return this.#entries.get(key);
  }

  keys(): Iterable<string> {
    return this.#entries.keys();
  }

  /** What balancers of a group get, sorted by namespace and name. */
  entriesOf(group: string): ExportEntry[] {
    const keys = [...(this.#groups.get(group) ?? [])];
    return keys
      .flatMap((key) => {
        const entry = this.#entries.get(key);
        return entry === undefined || entry.conflicts.has(group) ? [] : [entry];
      })
      .sort(byNamespaceAndName);
  }

  /** Raised with every change. */
  get version(): number {
    return this.#version;
  }

  /**
   * Whether others may act on what it says: the caches were whole, everything in them has been calculated, and their
   * watches are alive.
   */
  isCurrent(): boolean {
    const { services, pods, nodes, exports, tenancies } = this.#options;
    const caches = [services, pods, nodes, exports, tenancies];
    this.#wasWhole ||= caches.every((one) => one.hasSynced()) && this.#dirty.size + this.#unsettled.size === 0;
    return this.#wasWhole && caches.every(isWatchAlive);
  }

  addListener(listener: ExportListener): void {
    this.#listeners.push(listener);
  }

  #onService(service: CachedService): void {
    const key = objectKey(service);
    const { exported } = service;
    if (exported === undefined) {
      this.#onServiceGone(key);
      return;
    }
    const { namespace, name } = service;
    const { selector } = exported;
    this.#selections.putService({ namespace, name, selector }, () =>
      this.#options.pods.byIndex('namespace', namespace),
    );
    this.#claims.add(key);
    this.#touch(key);
  }

  #onServiceGone(key: string): void {
    if (!this.#selections.removeService(key)) return;
    this.#claims.add(key);
    this.#touch(key);
  }

  #onPod(pod: ModulePod, old?: ModulePod): void {
    if (old !== undefined && isSameModulePod(old, pod)) return;
    for (const key of this.#selections.putPod(pod)) this.#touch(key);
  }

  #onPodGone(pod: ModulePod): void {
    for (const key of this.#selections.removePod(pod)) this.#touch(key);
  }

  #onNodes(names: Iterable<string>): void {
    for (const name of names)
      for (const pod of this.#options.pods.byIndex('node', name))
        for (const key of this.#selections.servicesOf(pod)) this.#touch(key);
  }

  #onHolding(key: string, holding: Holding | undefined): void {
    const before = this.#holdings.get(key);
    if (isDeepStrictEqual(before, holding)) return;
    if (holding === undefined) this.#holdings.delete(key);
    else this.#holdings.set(key, holding);
    // Most often the leader has written down what is so already: then nobody else is concerned.
    if (before === undefined && holding !== undefined && this.#isAsJudged(key, holding)) return;
    this.#unsettled.add(key);
    this.#schedule();
  }

  /** Rare: all conflicts are judged again. */
  #onSharing(before: CachedTenancy['sharedHosts'], after: CachedTenancy['sharedHosts']): void {
    if (isDeepStrictEqual(before, after)) return;
    this.#sharing = undefined;
    for (const key of this.#entries.keys()) this.#unsettled.add(key);
    this.#schedule();
  }

  #isAsJudged(key: string, { owner, groups, places, guestAt }: Holding): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.uid !== owner) return true;
    const { settings, conflicts } = entry;
    return (
      isDeepStrictEqual(guestAt, entry.guestAt) &&
      isDeepStrictEqual(
        groups,
        settings.groups.filter((group) => !conflicts.has(group)),
      ) &&
      isDeepStrictEqual(places, settings.ports.map(placeOf))
    );
  }

  #touch(key: string): void {
    if (!this.#dirty.has(key)) {
      this.#dirty.set(key, this.#options.clock.now());
      this.#turns.add(key);
    }
    this.#schedule();
  }

  #schedule(delayMs = GATHER_MS): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#options.clock.setTimer(() => this.#flush(), delayMs);
  }

  /**
   * Takes entries to calculate, in turn, until the slice is over. All changed Services are in one slice: of two that
   * want the same, the older one gets it.
   */
  *#slice(): Iterable<[key: string, at: number]> {
    const { clock } = this.#options;
    // Conflicts are judged once a slice: they take half of the time at most.
    const endsAt = clock.now() + Math.max(SLICE_MS, this.#settledInMs);
    for (const key of this.#claims) {
      this.#turns.delete(key);
      yield this.#taken(key);
    }
    this.#claims.clear();
    while (clock.now() < endsAt) {
      const key = this.#turns.take();
      if (key === undefined) break;
      this.#turns.end(key);
      yield this.#taken(key);
    }
    if (this.#dirty.size > 0) this.#schedule(0);
  }

  #taken(key: string): [key: string, at: number] {
    const at = this.#dirty.get(key) ?? this.#options.clock.now();
    this.#dirty.delete(key);
    return [key, at];
  }

  #flush(): void {
    const { clock, metrics } = this.#options;
    this.#isScheduled = false;
    const dirty = new Map<string, number>();
    const changed = new Set<string>();
    const groups = new Set<string>();
    for (const [key, at] of this.#slice()) {
      dirty.set(key, at);
      const old = this.#entries.get(key);
      const entry = this.#entryOf(key, old);
      if (entry === old) continue;
      changed.add(key);
      for (const group of this.#place(key, old, entry)) groups.add(group);
    }
    for (const group of this.#unsettledGroups()) groups.add(group);
    const startedAt = clock.now();
    for (const group of groups) for (const key of this.#settle(group)) changed.add(key);
    this.#settledInMs = clock.now() - startedAt;
    metrics.exportedServices.set(this.#entries.size);
    if (changed.size === 0) return;
    this.#version++;
    this.#notify(changed);
    for (const [key, at] of dirty) if (changed.has(key)) metrics.exportViewSeconds.observe((clock.now() - at) / 1000);
  }

  #unsettledGroups(): string[] {
    const keys = [...this.#unsettled];
    this.#unsettled.clear();
    return keys.flatMap((key) => this.#entries.get(key)?.settings.groups ?? []);
  }

  #notify(changed: ReadonlySet<string>): void {
    for (const listener of this.#listeners) {
      try {
        listener(changed);
      } catch (error) {
        this.#options.logger.error({ err: error }, 'listener of exported Services threw');
      }
    }
  }

  /** The entry as it should be: `old` itself when nothing has changed. */
  #entryOf(key: string, old: ExportEntry | undefined): ExportEntry | undefined {
    const { services, nodes, cluster, dropsLost } = this.#options;
    const selected = this.#selections.podsOf(key);
    const service = services.get(key);
    if (selected === undefined || service?.exported === undefined) return undefined;
    const members = [...selected];
    const { namespace, name, uid, createdAt, exported: settings } = service;
    const serving = servingPods(members, { nodeOf: (nodeName) => nodes.get(nodeName), dropsLost });
    const view = viewOf({ cluster, namespace, name, settings, members, serving, arklets: this.#arklets });
    if (old !== undefined && old.uid === uid && isSameView(old.view, view)) return old;
    const conflicts = new Map([...(old?.conflicts ?? [])].filter(([group]) => settings.groups.includes(group)));
    const { guestAt = [] } = old ?? {};
    return { key, namespace, name, uid, createdAt, settings, view, conflicts, guestAt };
  }

  /** Stores an entry; returns the groups in which conflicts may have changed. */
  #place(key: string, old: ExportEntry | undefined, entry: ExportEntry | undefined): Iterable<string> {
    if (entry === undefined) this.#entries.delete(key);
    else this.#entries.set(key, entry);
    const [before, after] = [old?.settings.groups ?? [], entry?.settings.groups ?? []];
    if (old?.uid === entry?.uid && isSameClaim(old?.settings, entry?.settings)) return [];
    for (const group of before) if (!after.includes(group)) this.#leave(group, key);
    for (const group of after) {
      const keys = this.#groups.get(group) ?? new Set();
      this.#groups.set(group, keys.add(key));
    }
    return new Set([...before, ...after]);
  }

  #leave(group: string, key: string): void {
    const keys = this.#groups.get(group);
    keys?.delete(key);
    if (keys?.size === 0) this.#groups.delete(group);
  }

  /** Judges the conflicts of a group again; returns the keys for which they changed. */
  #settle(group: string): string[] {
    this.#sharing ??= new HostSharing(this.#options.tenancies.list());
    const sharing = this.#sharing;
    const keys = [...(this.#groups.get(group) ?? [])];
    const entries = keys.flatMap((key) => this.#entries.get(key) ?? []);
    const found = conflictsOf(
      entries.map(({ key, uid, createdAt, settings: { ports } }) => {
        const holding = this.#holdings.get(key);
        const isHolder = holding?.owner === uid && holding.groups.includes(group);
        const { places: held, guestAt } = isHolder ? holding : { places: [], guestAt: [] };
        return { key, createdAt, ports, held, guestAt };
      }),
      (host, namespaces) => sharing.isShared(host, namespaces),
    );
    return entries.flatMap((entry) => {
      const conflict = found.get(entry.key);
      const guestAt = sharing.guestAt(entry.namespace, entry.settings.ports);
      if (isDeepStrictEqual([conflict, guestAt], [entry.conflicts.get(group), entry.guestAt])) return [];
      const conflicts = new Map(entry.conflicts);
      if (conflict === undefined) conflicts.delete(group);
      else conflicts.set(group, conflict);
      this.#entries.set(entry.key, { ...entry, conflicts, guestAt });
      return [entry.key];
    });
  }
}

function byNamespaceAndName(a: ExportEntry, b: ExportEntry): number {
  if (a.namespace !== b.namespace) return a.namespace < b.namespace ? -1 : 1;
  return a.name < b.name ? -1 : 1;
}

/** Whether a Service wants the same of its groups as before. */
function isSameClaim(a: ExportSettings | undefined, b: ExportSettings | undefined): boolean {
  return isDeepStrictEqual([a?.groups, a?.ports], [b?.groups, b?.ports]);
}

function isSameView(a: ExportView, b: ExportView): boolean {
  return a.json === b.json && isDeepStrictEqual(diagnosesOf(a), diagnosesOf(b));
}

function diagnosesOf({ faults, unknownWeights, notes, lack, rounded }: ExportView): unknown[] {
  return [faults, unknownWeights, notes, lack, rounded];
}
