import type { Clock } from '../../clock.ts';
import { completePlacement } from '../../kinds/pod-defaults.ts';
import type { CachedNode } from '../../kinds/vnode-object.ts';
import { countPeers, placementOf } from '../../kube/placement.ts';
import type { ResourceClient } from '../../kube/resource.ts';
import type { Permit } from '../../kube/transport/rest-lane.ts';
import type { Informer } from '../../kube/watch/informer-types.ts';
import type { Result } from '../../reconcile/reconciler.ts';
import { type CachedModuleDeployment, type ModuleDeploymentObject, replicasOf } from './module-deployment.ts';
import type { RolloutEvent } from './rollout-events.ts';

export interface PeerScalingOptions {
  readonly nodes: Pick<Informer<CachedNode>, 'list'>;
  readonly client: Pick<ResourceClient<ModuleDeploymentObject>, 'setReplicas'>;
  readonly permit: Permit;
  /** ENV of Pods whose template does not name one. */
  readonly env: string;
  readonly clock: Clock;
}

const SCALE_INTERVAL_MS = 1_000;

/** Keeps `replicas` of ModuleDeployments with `peer: true` equal to the number of bases that fit their template. */
export class PeerScaling {
  readonly #options: PeerScalingOptions;
  /** When it was scaled last, by UID: while bases come one by one, once a second at most. Emptied by `forget`. */
  readonly #scaledAt = new Map<string, number>();

  constructor(options: PeerScalingOptions) {
    this.#options = options;
  }

  forget(uid: string): void {
    this.#scaledAt.delete(uid);
  }

  /** Undefined where `replicas` is right. Otherwise nothing else is to be done now: the rest follows with the new version. */
  async follow(deployment: CachedModuleDeployment, report: (event: RolloutEvent) => void): Promise<Result | undefined> {
    const { client, clock, nodes, permit, env } = this.#options;
    if (!deployment.spec.peer) return undefined;
    const wanted = countPeers(placementOf(completePlacement(deployment.spec.template, env).spec), nodes.list());
    const replicas = replicasOf(deployment.spec);
    if (wanted === replicas) return undefined;
    const waitMs = (this.#scaledAt.get(deployment.uid) ?? Number.NEGATIVE_INFINITY) + SCALE_INTERVAL_MS - clock.now();
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    await client.setReplicas(deployment, wanted, { resourceVersion: deployment.resourceVersion, permit });
    this.#scaledAt.set(deployment.uid, clock.now());
    report(['Normal', 'PeerScaled', `${wanted} bases fit: scaled from ${replicas} to ${wanted}`]);
    return {};
  }
}
