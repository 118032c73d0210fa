import { isSameForPeers } from '../../kinds/peers.ts';
import { VNODES } from '../../kinds/vnode-object.ts';
import { DEPLOYMENTS } from '../../kube/resource.ts';
import { objectKey } from '../../kube/watch/informer-types.ts';
import { type ControllerModule, groupOf } from '../../reconcile/controller-module.ts';
import { Reconciler } from '../../reconcile/reconciler.ts';
import { PeerController } from './peer-controller.ts';
import { type DeploymentObject, isSameDeployment, isScaled, PEER_DEPLOYMENTS } from './peer-deployment.ts';

const NAME = 'peer';
const WORKERS = 4;

/** Deployments with one copy on each base. The leader of several processes acts. */
export const PEER: ControllerModule = {
  name: NAME,
  build: ({ informers, resourcesOf, leaderOf, ...shared }) => {
    const deployments = informers.get(PEER_DEPLOYMENTS);
    const nodes = informers.get(VNODES);
    const leader = leaderOf(`platform-${NAME}`);
    const isLeading = (): boolean => leader.isLeading();
    const client = resourcesOf(`platform-${NAME}`).of<DeploymentObject>(DEPLOYMENTS);
    const controller = new PeerController({ deployments, nodes, client, isLeading, ...shared });
    const reconcile = controller.reconcile.bind(controller);
    const reconciler = new Reconciler({ name: NAME, workers: WORKERS, reconcile, leader, ...shared });
    reconciler.watch({
      informer: deployments,
      keysOf: (deployment) => [objectKey(deployment)],
      isSame: isSameDeployment,
    });
    // Which Deployments a Node concerns is not known before it is compared with each.
    reconciler.watch({
      informer: nodes,
      keysOf: () => deployments.list().filter(isScaled).map(objectKey),
      isSame: isSameForPeers,
    });
    return { groups: [groupOf({ 'peer deployments': reconciler, 'leader of peer deployments': leader })] };
  },
};
