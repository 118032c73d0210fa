import type { ContainerStatus } from '../kube/objects.ts';
import { type ModuleKey, type ModuleSpec, moduleKeyOf } from '../tunnel/module.ts';
import { moduleSpecsOf } from './module-spec.ts';
import type { PendingRemoval } from './removals.ts';
import { byCreation, isTerminal, statusIn, type VPod } from './vpod.ts';
import { NAME_TAKEN } from './waiting-reason.ts';

/** Who owns the module names that Pods of a namespace ask for: the same for namespaces that share modules. */
export type OwnerOf = (namespace: string) => string;

/** `groups`: namespaces that count as one owner; `all`: every namespace does. */
export function ownerOfNamespaces(groups: readonly (readonly string[])[] | 'all'): OwnerOf {
  if (groups === 'all') return () => 'all';
  // No namespace has a `+` in its name.
  const owners = new Map(groups.flatMap((group) => group.map((namespace) => [namespace, group.join('+')] as const)));
  return (namespace) => owners.get(namespace) ?? namespace;
}

export interface NameOwnersInput {
  /** All vPods bound to the base, in any order. */
  readonly pods: readonly VPod[];
  readonly pendingRemovals: ReadonlyMap<ModuleKey, PendingRemoval>;
  /** Whether the module may still be on the base, or in work there. */
  readonly isLeft: (key: ModuleKey) => boolean;
  readonly ownerOf: OwnerOf;
}

/** How firmly a Pod holds a module name: the lowest of all Pods decides, then the oldest Pod, then the UID. */
const RANK = {
  /** Its container has started on this base. */
  started: 0,
  /** The Pod has ended or is gone, and its module is not gone yet. */
  left: 1,
  /** Its status says that the module is being installed, or failed to be. */
  tried: 2,
} as const;

interface Holder {
  readonly owner: string;
  readonly rank: number;
  readonly createdAt: string;
  readonly uid: string;
}

/**
 * Which namespace owns each module name of a base. It follows from the Pods' statuses, which tenants cannot write, so
 * every replica finds the same owner. A Pod that has ended keeps the name until its module is gone.
 * A Pod that has begun nothing gets all of its names or none: two Pods that each held a name of the other would wait
 * for ever.
 */
export class NameOwners {
  readonly #ownerOf: OwnerOf;
  /** Owners by the name of the module. */
  readonly #ownerByName: Map<string, string> = new Map();
  /** A Pod's own names that wait because another of its names has another owner. */
  readonly #withheld = new Map<VPod, ReadonlySet<string>>();

  constructor(input: NameOwnersInput) {
    this.#ownerOf = input.ownerOf;
    // Nearly every base: no name can belong to anybody else.
    if (hasOneOwner(input)) return;
    this.#ownerByName = holdersOf(input);
    const waiting: { readonly pod: VPod; readonly names: readonly string[] }[] = [];
    for (const pod of input.pods) {
      const names = untriedNamesOf(pod);
      if (names.length > 0) waiting.push({ pod, names });
    }
    for (const { pod, names } of waiting.sort((a, b) => byCreation(a.pod, b.pod))) this.#take(pod, names);
  }

  /**
   * Whether nothing is done for a module of the Pod: its name belongs to another owner, or another name of the Pod does
   * and the module was not begun.
   */
  isWithheld(pod: VPod, name: string): boolean {
    return this.isForeign(pod, name) || this.#withheld.get(pod)?.has(name) === true;
  }

  /** Whether the name belongs to another owner than the Pod's. */
  isForeign(pod: VPod, name: string): boolean {
    const owner = this.#ownerByName.get(name);
    return owner !== undefined && owner !== this.#ownerOf(pod.namespace);
  }

  /** The modules of a Pod for which something is done. */
  specsOf(pod: VPod): readonly ModuleSpec[] {
    const specs = moduleSpecsOf(pod);
    if (this.#ownerByName.size === 0) return specs;
    return specs.filter(({ name }) => !this.isWithheld(pod, name));
  }

  /** The modules of a Pod that ran here before their names belonged to another owner. */
  lostSpecsOf(pod: VPod): ModuleSpec[] {
    const hasRun = (name: string): boolean => statusOf(pod, name)?.containerID !== undefined;
    return moduleSpecsOf(pod).filter(({ name }) => this.isWithheld(pod, name) && hasRun(name));
  }

  #take(pod: VPod, names: readonly string[]): void {
    if (moduleSpecsOf(pod).some(({ name }) => this.isForeign(pod, name))) {
      this.#withheld.set(pod, new Set(names));
      return;
    }
    for (const name of names) this.#ownerByName.set(name, this.#ownerOf(pod.namespace));
  }
}

/** Whether all Pods, and all modules that Pods have left, are of namespaces that count as one owner. */
function hasOneOwner({ pods, pendingRemovals, ownerOf }: NameOwnersInput): boolean {
  const owners = new Set<string>();
  for (const { namespace } of pods) owners.add(ownerOf(namespace));
  for (const { namespace } of pendingRemovals.values()) if (namespace !== undefined) owners.add(ownerOf(namespace));
  return owners.size <= 1;
}

/** The owner of each name for which a Pod has begun, or has left something. */
function holdersOf({ pods, pendingRemovals, isLeft, ownerOf }: NameOwnersInput): Map<string, string> {
  const holders = new Map<string, Holder>();
  for (const [key, { name, namespace }] of pendingRemovals) {
    if (namespace !== undefined && isLeft(key)) {
      hold(holders, name, { owner: ownerOf(namespace), rank: RANK.left, createdAt: '', uid: '' });
    }
  }
  for (const pod of pods) {
    const { createdAt, uid } = pod;
    for (const spec of moduleSpecsOf(pod)) {
      const rank = rankOf(pod, spec, isLeft);
      if (rank !== undefined) hold(holders, spec.name, { owner: ownerOf(pod.namespace), rank, createdAt, uid });
    }
  }
  const owners = new Map<string, string>();
  for (const [name, { owner }] of holders) owners.set(name, owner);
  return owners;
}

/** The modules of a Pod for which nothing was done yet, or whose names belonged to others. */
function untriedNamesOf(pod: VPod): string[] {
  if (isTerminal(pod)) return [];
  const names: string[] = [];
  for (const { name } of moduleSpecsOf(pod)) if (triedStatusOf(pod, name) === undefined) names.push(name);
  return names;
}

/** undefined: the Pod has ended and nothing is left of the module, or nothing was done for it yet. */
function rankOf(pod: VPod, spec: ModuleSpec, isLeft: NameOwnersInput['isLeft']): number | undefined {
  const status = triedStatusOf(pod, spec.name);
  if (status === undefined) return undefined;
  if (isTerminal(pod)) return isLeft(moduleKeyOf(spec)) ? RANK.left : undefined;
  return hasStarted(status) ? RANK.started : RANK.tried;
}

function statusOf({ status }: VPod, container: string): ContainerStatus | undefined {
  return statusIn(status.containerStatuses, container);
}

/** What it ran before it lost the name does not count: the next Pod of the owner may not have started yet. */
function triedStatusOf(pod: VPod, container: string): ContainerStatus | undefined {
  const status = statusOf(pod, container);
  const { waiting, terminated } = status?.state ?? {};
  return waiting?.reason === NAME_TAKEN || terminated?.reason === NAME_TAKEN ? undefined : status;
}

function hasStarted({ containerID, state, lastState }: ContainerStatus): boolean {
  return containerID !== undefined || state?.running !== undefined || lastState?.terminated !== undefined;
}

function hold(holders: Map<string, Holder>, name: string, holder: Holder): void {
  const other = holders.get(name);
  if (other === undefined || compare(holder, other) < 0) holders.set(name, holder);
}

function compare(a: Holder, b: Holder): number {
  if (a.rank !== b.rank) return a.rank - b.rank;
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return a.uid < b.uid ? -1 : 1;
}
