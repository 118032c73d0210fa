import { isDeepStrictEqual } from 'node:util';
import type { ModulePod } from '../../kinds/module-pod.ts';
import { objectKey } from '../../kube/watch/informer-types.ts';

type Selector = Readonly<Record<string, string>>;

interface Selection {
  readonly namespace: string;
  readonly selector: Selector;
  readonly pairs: readonly (readonly [key: string, value: string])[];
  /** The pair that it is found by. */
  readonly foundBy: string | undefined;
  /** Selected Pods by name. */
  readonly pods: Map<string, ModulePod>;
}

/**
 * Which Pods each Service selects, and which Services select a Pod. What it costs to take a Pod does not grow with the
 * number of Services in its namespace.
 */
export class Selections {
  /** Selections by the key of the Service. */
  readonly #selections = new Map<string, Selection>();
  /** Keys of Services by namespace and one pair of their selector: a Pod that is selected has that label. */
  readonly #byPair = new Map<string, Set<string>>();
  /** Keys of Services by the key of a Pod that they select. */
  readonly #ofPod = new Map<string, Set<string>>();

  /** How many Services, Pods and pairs of labels it keeps. */
  get size(): number {
    return this.#selections.size + this.#ofPod.size + this.#byPair.size;
  }

  /** The Pods of a Service; undefined when it was not put. */
  podsOf(key: string): Iterable<ModulePod> | undefined {
    return this.#selections.get(key)?.pods.values();
  }

  /** Keys of the Services that select a Pod. */
  servicesOf(pod: ModulePod): Iterable<string> {
    return this.#ofPod.get(objectKey(pod)) ?? [];
  }

  /** `podsOfNamespace` is asked only where the selector is another one. */
  putService(
    { namespace, name, selector }: { readonly namespace: string; readonly name: string; readonly selector: Selector },
    podsOfNamespace: () => Iterable<ModulePod>,
  ): void {
    const key = objectKey({ namespace, name });
    if (isDeepStrictEqual(this.#selections.get(key)?.selector, selector)) return;
    this.removeService(key);
    const pairs = Object.entries(selector);
    const foundBy = this.#rarestOf(pairs.map(([label, value]) => pairKey(namespace, label, value)));
    const selection: Selection = { namespace, selector, pairs, foundBy, pods: new Map() };
    this.#selections.set(key, selection);
    // An empty selector is that of no Pod, as for Endpoints.
    if (foundBy === undefined) return;
    addTo(this.#byPair, foundBy, key);
    for (const pod of podsOfNamespace()) if (selects(selection, pod)) this.#join(key, selection, pod);
  }

  /** False when it was not put. */
  removeService(key: string): boolean {
    const selection = this.#selections.get(key);
    if (selection === undefined) return false;
    for (const pod of selection.pods.values()) removeFrom(this.#ofPod, objectKey(pod), key);
    if (selection.foundBy !== undefined) removeFrom(this.#byPair, selection.foundBy, key);
    return this.#selections.delete(key);
  }

  /** A Pod that has come or changed; returns the keys of the Services that select it, or did so until now. */
  putPod(pod: ModulePod): Set<string> {
    const concerned = new Set(this.servicesOf(pod));
    for (const key of concerned) {
      const selection = this.#selections.get(key);
      if (selection && !selects(selection, pod)) this.#part(key, selection, pod);
    }
    for (const [label, value] of Object.entries(pod.labels)) {
      for (const key of this.#byPair.get(pairKey(pod.namespace, label, value)) ?? []) {
        const selection = this.#selections.get(key);
        if (selection === undefined || !selects(selection, pod)) continue;
        this.#join(key, selection, pod);
        concerned.add(key);
      }
    }
    return concerned;
  }

  /** Returns the keys of the Services that have selected it. */
  removePod(pod: ModulePod): Set<string> {
    const concerned = new Set(this.servicesOf(pod));
    for (const key of concerned) {
      const selection = this.#selections.get(key);
      if (selection) this.#part(key, selection, pod);
    }
    return concerned;
  }

  #join(key: string, { pods }: Selection, pod: ModulePod): void {
    pods.set(pod.name, pod);
    addTo(this.#ofPod, objectKey(pod), key);
  }

  #part(key: string, { pods }: Selection, pod: ModulePod): void {
    pods.delete(pod.name);
    removeFrom(this.#ofPod, objectKey(pod), key);
  }

  /** That which fewest other Services are found by: all Services of a team may share a label. */
  #rarestOf(pairs: readonly string[]): string | undefined {
    const sizeOf = (pair: string): number => this.#byPair.get(pair)?.size ?? 0;
    return pairs.reduce<string | undefined>(
      (rarest, pair) => (rarest === undefined || sizeOf(pair) < sizeOf(rarest) ? pair : rarest),
      undefined,
    );
  }
}

/** Neither a namespace nor the name of a label has these characters. */
function pairKey(namespace: string, label: string, value: string): string {
  return `${namespace} ${label}=${value}`;
}

function selects({ pairs, foundBy }: Selection, { labels }: ModulePod): boolean {
  if (foundBy === undefined) return false;
  for (const [key, value] of pairs) if (!Object.hasOwn(labels, key) || labels[key] !== value) return false;
  return true;
}

function addTo(map: Map<string, Set<string>>, name: string, key: string): void {
  const keys = map.get(name);
  if (keys) keys.add(key);
  else map.set(name, new Set([key]));
}

/** A name without keys goes too. */
function removeFrom(map: Map<string, Set<string>>, name: string, key: string): void {
  const keys = map.get(name);
  keys?.delete(key);
  if (keys?.size === 0) map.delete(name);
}
