import type { ApiClient, KubeObject } from '../../samples/control-plane/api-client.ts';
import type { ModuleDeploymentStatus } from '../../src/platform/rollout/module-deployment.ts';
import { moduleWorkload } from './manifests.ts';
import { isReady } from './observe.ts';

const PATH = '/apis/platform.koupleless.io/v1alpha1/namespaces/default/moduledeployments';

export interface RolloutManifest {
  readonly name?: string;
  readonly version?: string;
  readonly image?: string;
  readonly replicas?: number;
  /** Of the container, besides the version. */
  readonly env?: Readonly<Record<string, string>>;
  /** Further fields of the spec. */
  readonly spec?: Readonly<Record<string, unknown>>;
}

/** A ModuleDeployment as users write it: one copy of a version on each base. */
export function moduleDeployment({
  name = 'shop',
  version,
  image,
  replicas = 3,
  env = {},
  spec,
}: RolloutManifest = {}) {
  const module = { name, ...(version && { version }), ...(image && { image }) };
  const workload = moduleWorkload(name, [module], { replicas });
  const { containers } = workload.spec.template.spec;
  for (const container of containers) {
    container.env.push(...Object.entries(env).map(([key, value]) => ({ name: key, value })));
  }
  return {
    ...workload,
    apiVersion: 'platform.koupleless.io/v1alpha1',
    kind: 'ModuleDeployment',
    spec: { ...workload.spec, ...spec },
  };
}

export function moduleDeploymentPath(name = 'shop'): string {
  return `${PATH}/${name}`;
}

export async function statusOf(admin: ApiClient, name = 'shop'): Promise<ModuleDeploymentStatus> {
  return (await admin.get(moduleDeploymentPath(name))).status;
}

/**
 * `status.replicas`, `updatedReplicas`, `availableReplicas`, and the reason of Progressing. Nothing, as for
 * `kubectl rollout status`, while the status is of an older generation.
 */
export async function rolloutOf(admin: ApiClient, name = 'shop') {
  const { metadata, status } = await admin.get(moduleDeploymentPath(name));
  const {
    observedGeneration,
    replicas,
    updatedReplicas,
    availableReplicas,
    conditions = [],
  } = (status as ModuleDeploymentStatus | undefined) ?? {};
  if (observedGeneration !== metadata.generation) return [];
  return [replicas, updatedReplicas, availableReplicas, conditions.find(({ type }) => type === 'Progressing')?.reason];
}

/** What a watch sees of the Pods with a label: every state in between too. */
export class PodSpectator {
  readonly #pods = new Map<string, KubeObject>();
  readonly #stop: () => void;
  /** The fewest that served, and the most that were not being deleted, since `reset`. */
  leastServed = Number.POSITIVE_INFINITY;
  mostLive = 0;
  /** Names of all Pods that there have been. */
  readonly names = new Set<string>();
  /** Every Pod that there has been, as it was seen last, by UID: a name may be used again. */
  readonly incarnations = new Map<string, KubeObject>();

  private constructor(stop: () => void) {
    this.#stop = stop;
  }

  static async start(admin: ApiClient, label: string): Promise<PodSpectator> {
    const query = encodeURIComponent(label);
    let spectator: PodSpectator | undefined;
    const early: { type: string; object: KubeObject }[] = [];
    const watch = await admin.watch(`/api/v1/namespaces/default/pods?labelSelector=${query}`, (event) => {
      if (spectator) spectator.#see(event);
      else early.push(event);
    });
    spectator = new PodSpectator(() => watch.stop());
    for (const event of early) spectator.#see(event);
    return spectator;
  }

  reset(): void {
    this.leastServed = this.served;
    this.mostLive = this.live.length;
  }

  get live(): KubeObject[] {
    return [...this.#pods.values()].filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  }

  get available(): KubeObject[] {
    return this.live.filter((pod) => isReady(pod as never));
  }

  /**
   * Pods that are Ready, and those that have just handed over: on one base the old Pod is Ready=False in the write
   * before the one that makes its successor Ready, and the base has the module all the time.
   */
  get served(): number {
    const ready = new Set(this.available);
    const successors = new Map(
      this.live.map((pod) => [pod.metadata.annotations?.['platform.koupleless.io/replaces'], pod]),
    );
    const handingOver = this.live.filter((pod) => {
      const successor = successors.get(pod.metadata.uid);
      return !ready.has(pod) && successor !== undefined && !ready.has(successor);
    });
    return ready.size + handingOver.length;
  }

  stop(): void {
    this.#stop();
  }

  #see({ type, object }: { readonly type: string; readonly object: KubeObject }): void {
    if (object.metadata === undefined || type === 'BOOKMARK') return;
    const { uid = '', name } = object.metadata;
    this.incarnations.set(uid, object);
    if (type === 'DELETED') this.#pods.delete(uid);
    else {
      this.#pods.set(uid, object);
      this.names.add(name);
    }
    this.leastServed = Math.min(this.leastServed, this.served);
    this.mostLive = Math.max(this.mostLive, this.live.length);
  }
}
