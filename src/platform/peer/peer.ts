import { VNODES } from '../../kinds/vnode-object.ts';
import { isSameForPeers } from '../../kube/placement.ts';
import { DEPLOYMENTS, NODES } from '../../kube/resource.ts';
import { objectKey } from '../../kube/watch/informer-types.ts';
import { READ } from '../../reconcile/access.ts';
import { type ControllerDefinition, groupOf } from '../../reconcile/controller-definition.ts';
import { ledReconciler } from '../../reconcile/led.ts';
import { PeerController } from './peer-controller.ts';
import { type DeploymentObject, isSameDeployment, isScaled, PEER_DEPLOYMENTS } from './peer-deployment.ts';

const NAME = 'peer';
const WORKERS = 4;

/** Deployments with one copy on each base. The leader of several processes acts. */
export const PEER: ControllerDefinition = {
  name: NAME,
  summary: 'Deployments with one copy on each base',
  access: [
    { kind: NODES, verbs: READ, use: 'SharedInformer: the Nodes of bases.' },
    { kind: DEPLOYMENTS, verbs: READ, use: 'SharedInformer: Deployments with the label `strategy: peer`.' },
    {
      kind: DEPLOYMENTS,
      subresource: 'scale',
      verbs: ['patch'],
      use: 'PeerController: their replicas, and nothing else of them.',
    },
  ],
  leads: true,
  events: [
    {
      about: 'Deployment',
      type: 'Normal',
      reasons: ['PeerScaled'],
      meaning: 'The number of bases that fit the Deployment has changed, and so have its replicas.',
    },
    {
      about: 'Deployment',
      type: 'Warning',
      reasons: ['PeerIgnored'],
      meaning: 'The Deployment has the label `strategy: peer`, but its Pods are not modules.',
    },
  ],
  build: (context) => {
    const { informers, resources } = context;
    const deployments = informers.get(PEER_DEPLOYMENTS);
    const nodes = informers.get(VNODES);
    const client = resources.of<DeploymentObject>(DEPLOYMENTS);
    const controller = new PeerController({ deployments, nodes, client, ...context });
    const reconcile = controller.reconcile.bind(controller);
    const reconciler = ledReconciler(NAME, context, { workers: WORKERS, reconcile });
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
    return { groups: [groupOf({ 'peer deployments': reconciler })] };
  },
};
