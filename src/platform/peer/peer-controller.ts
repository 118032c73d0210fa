import type { Clock } from '../../clock.ts';
import type { EventRecorder } from '../../kube/events/event-recorder.ts';
import { countPeers, type PeerNode } from '../../kube/placement.ts';
import type { ResourceClient } from '../../kube/resource.ts';
import { isNotFound } from '../../kube/transport/api-error.ts';
import type { Permit } from '../../kube/transport/rest-lane.ts';
import type { Informer } from '../../kube/watch/informer-types.ts';
import { COMPONENT, COMPONENT_LABEL } from '../../labels.ts';
import type { Logger } from '../../logger.ts';
import type { Result } from '../../reconcile/reconciler.ts';
import type { DeploymentObject, PeerDeployment } from './peer-deployment.ts';

export interface PeerControllerOptions {
  readonly deployments: Pick<Informer<PeerDeployment>, 'get'>;
  /** All VNodes of this ENV. */
  readonly nodes: { list(): Iterable<PeerNode> };
  readonly client: Pick<ResourceClient<DeploymentObject>, 'setReplicas'>;
  /** Asked at the last moment before a write. */
  readonly permit: Permit;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Minimum interval between two scalings of a Deployment, also while bases come or go one after the other. */
const SCALE_INTERVAL_MS = 1_000;

/** Keeps the replicas of Deployments with the label `strategy: peer` equal to the number of bases that fit them. */
export class PeerController {
  readonly #options: PeerControllerOptions;
  /** When a Deployment was scaled last, by key. Emptied as Deployments go. */
  readonly #scaledAt = new Map<string, number>();

  constructor(options: PeerControllerOptions) {
    this.#options = options;
  }

  /** `key`: of the Deployment. Scales it by its scale subresource, that version of it only. */
  async reconcile(key: string): Promise<Result | undefined> {
    const { deployments, nodes, client, permit, recorder, clock, logger } = this.#options;
    const deployment = deployments.get(key);
    if (deployment === undefined || deployment.isDeleting) {
      this.#scaledAt.delete(key);
      return undefined;
    }
    if (deployment.isReleased) return undefined;
    const { namespace, name, uid, replicas } = deployment;
    const subject = { apiVersion: 'apps/v1', kind: 'Deployment', namespace, name, uid };
    if (!deployment.isOfModules) {
      const message = `the Pod template has no label ${COMPONENT_LABEL}: ${COMPONENT.module}, so no base runs it`;
      recorder.event(subject, 'Warning', 'PeerIgnored', message);
      return undefined;
    }
    const wanted = countPeers(deployment.placement, nodes.list());
    if (wanted === replicas) return undefined;
    const waitMs = (this.#scaledAt.get(key) ?? Number.NEGATIVE_INFINITY) + SCALE_INTERVAL_MS - clock.now();
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    try {
      const { resourceVersion } = deployment;
      await client.setReplicas({ namespace, name }, wanted, { resourceVersion, permit });
    } catch (error) {
      // The watch brings the rest. A conflict is tried again with the newer version.
      if (isNotFound(error)) return undefined;
      throw error;
    }
    this.#scaledAt.set(key, clock.now());
    logger.info({ deployment: key, from: replicas, to: wanted }, 'peer deployment scaled');
    recorder.event(
      subject,
      'Normal',
      'PeerScaled',
      `${wanted} bases fit: scaled from ${replicas} to ${wanted} replicas`,
    );
    return undefined;
  }
}
