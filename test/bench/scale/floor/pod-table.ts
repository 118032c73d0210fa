import { type ModuleId, moduleKeyOf } from '../../../../src/tunnel/module.ts';

export interface FloorModule extends ModuleId {
  /** Of the command that installs it. */
  readonly payload: string;
}

export interface FloorPod {
  readonly uid: string;
  /** Of the base that it is bound to. */
  readonly identity: string;
  /** In the API. */
  readonly path: string;
  /** One for each container, under its name. */
  readonly modules: readonly FloorModule[];
  isDeleting: boolean;
}

/** A module on a base. */
export function keyOf(identity: string, module: ModuleId): string {
  return `${identity}/${moduleKeyOf(module)}`;
}

/** Which Pods there are, and what they wait for. */
export class PodTable {
  /** By UID. Emptied as Pods go. */
  readonly #pods = new Map<string, FloorPod>();
  /** Those that wait for the answer to an install, by module. Emptied by the answer, and as Pods go. */
  readonly #expecting = new Map<string, Set<FloorPod>>();
  /** How many answers each of them waits for. */
  readonly #missing = new Map<FloorPod, number>();
  /** On bases that have not spoken yet, by identity. Emptied as these do, and as Pods go. */
  readonly #held = new Map<string, Set<FloorPod>>();

  /** Of all maps together: 0 when no Pod is left. */
  get size(): number {
    return this.#pods.size + this.#expecting.size + this.#missing.size + this.#held.size;
  }

  get(uid: string): FloorPod | undefined {
    return this.#pods.get(uid);
  }

  add(pod: FloorPod): void {
    this.#pods.set(pod.uid, pod);
  }

  remove(uid: string): void {
    const pod = this.#pods.get(uid);
    if (pod === undefined) return;
    this.#pods.delete(uid);
    this.#forget(pod);
    removeFrom(this.#held, pod.identity, pod);
  }

  /** After a list: what is not in it is gone. */
  keepOnly(uids: ReadonlySet<string>): void {
    for (const uid of this.#pods.keys()) if (!uids.has(uid)) this.remove(uid);
  }

  /** False where that was known. What is still to be installed is of no interest any more. */
  startDeleting(pod: FloorPod): boolean {
    if (pod.isDeleting) return false;
    pod.isDeleting = true;
    this.#forget(pod);
    return true;
  }

  /** Until its base speaks. */
  hold(pod: FloorPod): void {
    addTo(this.#held, pod.identity, pod);
  }

  /** The Pods that waited for this base. */
  release(identity: string): Iterable<FloorPod> {
    const pods = this.#held.get(identity) ?? [];
    this.#held.delete(identity);
    return pods;
  }

  /** Each of its modules is to be answered. */
  expect(pod: FloorPod): void {
    this.#missing.set(pod, pod.modules.length);
    for (const module of pod.modules) addTo(this.#expecting, keyOf(pod.identity, module), pod);
  }

  /** A module is there: the Pods that waited for nothing else. */
  settle(key: string): FloorPod[] {
    const complete: FloorPod[] = [];
    for (const pod of this.#expecting.get(key) ?? []) {
      const missing = (this.#missing.get(pod) ?? 1) - 1;
      if (missing > 0) {
        this.#missing.set(pod, missing);
      } else {
        this.#missing.delete(pod);
        complete.push(pod);
      }
    }
    this.#expecting.delete(key);
    return complete;
  }

  #forget(pod: FloorPod): void {
    this.#missing.delete(pod);
    for (const module of pod.modules) removeFrom(this.#expecting, keyOf(pod.identity, module), pod);
  }
}

function addTo(map: Map<string, Set<FloorPod>>, key: string, pod: FloorPod): void {
  const pods = map.get(key);
  if (pods) pods.add(pod);
  else map.set(key, new Set([pod]));
}

function removeFrom(map: Map<string, Set<FloorPod>>, key: string, pod: FloorPod): void {
  const pods = map.get(key);
  if (pods?.delete(pod) && pods.size === 0) map.delete(key);
}
