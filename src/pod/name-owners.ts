import type { ContainerStatus } from '../kube/objects.ts';
import { type ModuleKey, type ModuleSpec, moduleKeyOf } from '../tunnel/module.ts';
import { moduleSpecsOf } from './module-spec.ts';
import type { Debt } from './removals.ts';
import { isTerminal, type VPod } from './vpod.ts';
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
  readonly debts: ReadonlyMap<ModuleKey, Debt>;
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
  /** Nothing was done for it yet, or its name belonged to others. */
  waiting: 3,
} as const;

interface Holder {
  readonly owner: string;
  readonly rank: number;
  readonly createdAt: string;
  readonly uid: string;
}

/**
 * Which namespace owns each module name of a base. It follows from the Pods' statuses, which tenants cannot write, so
 * every replica finds the same owner. What is left of a Pod that has ended keeps the name until it is gone.
 */
export class NameOwners {
  readonly #ownerOf: OwnerOf;
  readonly #holders = new Map<string, Holder>();

  constructor({ pods, debts, isLeft, ownerOf }: NameOwnersInput) {
    this.#ownerOf = ownerOf;
    for (const [key, { name, namespace }] of debts) {
      if (namespace !== undefined && isLeft(key)) {
        this.#hold(name, { owner: ownerOf(namespace), rank: RANK.left, createdAt: '', uid: '' });
      }
    }
    for (const pod of pods) {
      for (const spec of moduleSpecsOf(pod)) {
        const rank = rankOf(pod, spec, isLeft);
        const { createdAt, uid } = pod;
        if (rank !== undefined) this.#hold(spec.name, { owner: ownerOf(pod.namespace), rank, createdAt, uid });
      }
    }
  }

  /** Whether the name belongs to another owner than the Pod's. */
  isForeign(pod: VPod, name: string): boolean {
    const owner = this.#holders.get(name)?.owner;
    return owner !== undefined && owner !== this.#ownerOf(pod.namespace);
  }

  /** The modules of a Pod whose names are its own. */
  specsOf(pod: VPod): ModuleSpec[] {
    return moduleSpecsOf(pod).filter(({ name }) => !this.isForeign(pod, name));
  }

  /** The modules of a Pod that ran here before their names belonged to another owner. */
  lostSpecsOf(pod: VPod): ModuleSpec[] {
    const hasRun = (name: string): boolean => statusOf(pod, name)?.containerID !== undefined;
    return moduleSpecsOf(pod).filter(({ name }) => this.isForeign(pod, name) && hasRun(name));
  }

  #hold(name: string, holder: Holder): void {
    const other = this.#holders.get(name);
    if (other === undefined || compare(holder, other) < 0) this.#holders.set(name, holder);
  }
}

/** undefined: the Pod has ended and holds nothing. */
function rankOf(pod: VPod, spec: ModuleSpec, isLeft: NameOwnersInput['isLeft']): number | undefined {
  const status = statusOf(pod, spec.name);
  const isTried = status !== undefined && !isTaken(status);
  if (isTerminal(pod)) return isTried && isLeft(moduleKeyOf(spec)) ? RANK.left : undefined;
  if (!isTried) return RANK.waiting;
  return hasStarted(status) ? RANK.started : RANK.tried;
}

function statusOf({ status }: VPod, container: string): ContainerStatus | undefined {
  return status.containerStatuses.find(({ name }) => name === container);
}

/** What it ran before it lost the name does not count: the next Pod of the owner may not have started yet. */
function isTaken({ state }: ContainerStatus): boolean {
  return state?.waiting?.reason === NAME_TAKEN || state?.terminated?.reason === NAME_TAKEN;
}

function hasStarted({ containerID, state, lastState }: ContainerStatus): boolean {
  return containerID !== undefined || state?.running !== undefined || lastState?.terminated !== undefined;
}

function compare(a: Holder, b: Holder): number {
  if (a.rank !== b.rank) return a.rank - b.rank;
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return a.uid < b.uid ? -1 : 1;
}
