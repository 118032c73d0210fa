import { isSameModulePod, MODULE_PODS } from '../../kinds/module-pod.ts';
import { VNODES } from '../../kinds/vnode-object.ts';
import type { PodObject } from '../../kube/objects.ts';
import { PODS } from '../../kube/resource.ts';
import { objectKey } from '../../kube/watch/informer-types.ts';
import { type ControllerModule, groupOf } from '../../reconcile/controller-module.ts';
import { type Controller, controlledBy } from '../../reconcile/informers.ts';
import { Reconciler } from '../../reconcile/reconciler.ts';
import {
  CACHED_MODULE_DEPLOYMENTS,
  MODULE_DEPLOYMENT_CRD,
  MODULE_DEPLOYMENTS,
  type ModuleDeploymentObject,
} from './module-deployment.ts';
import { reviewModuleDeployment } from './module-deployment-review.ts';
import { PodStore } from './pod-store.ts';
import { CACHED_REVISIONS, CONTROLLER_REVISIONS, type RevisionObject } from './revision.ts';
import { RevisionStore } from './revision-store.ts';
import { RolloutController } from './rollout-controller.ts';
import { dependsOnNodes, isSameDeployment, isSameNode, keysOfOwned, keysOfPod } from './triggers.ts';

const NAME = 'rollout';
const WORKERS = 8;

/** ModuleDeployments. The leader of several processes acts. */
export const ROLLOUT: ControllerModule = {
  name: NAME,
  crds: [MODULE_DEPLOYMENT_CRD],
  build: ({ config: { env }, informers, resourcesOf, leaderOf, webhooks, ...shared }) => {
    const deployments = informers.get(CACHED_MODULE_DEPLOYMENTS);
    const modulePods = informers.get(MODULE_PODS);
    const history = informers.get(CACHED_REVISIONS);
    const nodes = informers.get(VNODES);
    const leader = leaderOf(`platform-${NAME}`);
    const permit = (): boolean => leader.isLeading();
    const resources = resourcesOf(`platform-${NAME}`);
    const client = resources.of<ModuleDeploymentObject>(MODULE_DEPLOYMENTS);
    const pods = new PodStore({
      informer: modulePods,
      client: resources.of<PodObject>(PODS),
      deployments: client,
      permit,
      clock: shared.clock,
    });
    const revisions = new RevisionStore({
      informer: history,
      client: resources.of<RevisionObject>(CONTROLLER_REVISIONS),
      permit,
      recorder: shared.recorder,
    });
    // Before the reconciler's own listener, which queues all keys.
    leader.addListener({ onStarted: () => pods.startTerm(), onStopped: () => {} });
    const review = {
      historyOf: (deployment: Controller) =>
        history.byIndex('controller', controlledBy(deployment)).toSorted((a, b) => a.number - b.number),
      deploymentsOf: (namespace: string) => deployments.byIndex('namespace', namespace),
    };
    webhooks.register<ModuleDeploymentObject>('validate', MODULE_DEPLOYMENTS, ['CREATE', 'UPDATE'], (request) =>
      reviewModuleDeployment(request, review),
    );
    const controller = new RolloutController({ deployments, nodes, client, pods, revisions, permit, env, ...shared });
    const reconcile = controller.reconcile.bind(controller);
    const reconciler = new Reconciler({ name: NAME, workers: WORKERS, reconcile, leader, ...shared });
    reconciler.watch({
      informer: deployments,
      keysOf: (deployment) => [objectKey(deployment)],
      isSame: isSameDeployment,
    });
    reconciler.watch({
      informer: modulePods,
      keysOf: (pod) => keysOfPod(pod, deployments.byIndex('namespace', pod.namespace)),
      isSame: isSameModulePod,
    });
    reconciler.watch({ informer: history, keysOf: keysOfOwned, isSame: () => true });
    reconciler.watch({
      informer: nodes,
      keysOf: () => deployments.list().filter(dependsOnNodes).map(objectKey),
      isSame: isSameNode,
    });
    return { groups: [groupOf({ rollouts: reconciler, 'leader of rollouts': leader })] };
  },
};
