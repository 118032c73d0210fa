import { isSameModulePod, MODULE_PODS } from '../../kinds/module-pod.ts';
import { VNODES } from '../../kinds/vnode-object.ts';
import { CONTROLLER_REVISIONS, MODULE_DEPLOYMENTS } from '../../kinds/workload-kinds.ts';
import type { PodObject } from '../../kube/objects.ts';
import { NODES, PODS } from '../../kube/resource.ts';
import { objectKey } from '../../kube/watch/informer-types.ts';
import { READ } from '../../reconcile/access.ts';
import { type ControllerDefinition, groupOf } from '../../reconcile/controller-definition.ts';
import { controlledBy, type OwnerKey } from '../../reconcile/informers.ts';
import { ledReconciler } from '../../reconcile/led.ts';
import type { WebhookRule } from '../../reconcile/webhooks.ts';
import { CACHED_MODULE_DEPLOYMENTS, MODULE_DEPLOYMENT_CRD, type ModuleDeploymentObject } from './module-deployment.ts';
import { reviewModuleDeployment } from './module-deployment-review.ts';
import { PodStore } from './pod-store.ts';
import { CACHED_REVISIONS, type RevisionObject } from './revision.ts';
import { RevisionStore } from './revision-store.ts';
import { ROLLBACK_EVENTS } from './rollback.ts';
import { RolloutController } from './rollout-controller.ts';
import { ROLLOUT_EVENTS } from './rollout-events.ts';
import { dependsOnNodes, isSameDeployment, isSameNode, keysOfOwned, keysOfPod } from './triggers.ts';

const NAME = 'rollout';
const WORKERS = 8;

const REVIEW: WebhookRule = {
  name: MODULE_DEPLOYMENTS.plural,
  path: 'validate',
  kind: MODULE_DEPLOYMENTS,
  operations: ['CREATE', 'UPDATE'],
  failurePolicy: 'Fail',
  conditions: [
    {
      name: 'specification-changes',
      expression: "request.operation == 'CREATE' || object.spec != oldObject.spec",
    },
    { name: 'is-not-being-deleted', expression: '!has(object.metadata.deletionTimestamp)' },
  ],
  use: 'While the platform is away, a ModuleDeployment can be deleted and scaled, but not changed.',
};

/** ModuleDeployments. The leader of several processes acts. */
export const ROLLOUT: ControllerDefinition = {
  name: NAME,
  summary: 'ModuleDeployments: updates on the same base, in batches, with rollback',
  access: [
    { kind: NODES, verbs: READ, use: 'SharedInformer: the Nodes of bases.' },
    {
      kind: MODULE_DEPLOYMENTS,
      verbs: ['get', 'list', 'watch', 'patch'],
      use: 'RolloutController: ModuleDeployments; it changes a template only to roll it back.',
    },
    { kind: MODULE_DEPLOYMENTS, subresource: 'status', verbs: ['patch'], use: 'RolloutController: their status.' },
    {
      kind: MODULE_DEPLOYMENTS,
      subresource: 'scale',
      verbs: ['patch'],
      use: 'RolloutController: their replicas, where these follow the number of bases.',
    },
    {
      kind: MODULE_DEPLOYMENTS,
      subresource: 'finalizers',
      verbs: ['update'],
      use: 'PodStore: owner references of its Pods that hold up the deletion of their ModuleDeployment.',
    },
    {
      kind: PODS,
      verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'],
      use: 'PodStore: the Pods of ModuleDeployments.',
    },
    {
      kind: CONTROLLER_REVISIONS,
      verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'],
      use: 'RevisionStore: their history.',
    },
  ],
  leads: true,
  crds: [{ crd: MODULE_DEPLOYMENT_CRD, usersMay: 'edit' }],
  webhooks: [REVIEW],
  events: [...ROLLOUT_EVENTS, ...ROLLBACK_EVENTS],
  build: (context) => {
    const { config, informers, resources, permit, webhooks, ...shared } = context;
    const { env } = config;
    const deployments = informers.get(CACHED_MODULE_DEPLOYMENTS);
    const modulePods = informers.get(MODULE_PODS);
    const history = informers.get(CACHED_REVISIONS);
    const nodes = informers.get(VNODES);
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
    context.leader().addListener({ onStarted: () => pods.startTerm(), onStopped: () => {} });
    const review = {
      historyOf: (deployment: OwnerKey) =>
        history.byIndex('controller', controlledBy(deployment)).toSorted((a, b) => a.number - b.number),
      deploymentsOf: (namespace: string) => deployments.byIndex('namespace', namespace),
    };
    webhooks.register<ModuleDeploymentObject>(REVIEW, (request) => reviewModuleDeployment(request, review));
    const controller = new RolloutController({ deployments, nodes, client, pods, revisions, permit, env, ...shared });
    const reconcile = controller.reconcile.bind(controller);
    const reconciler = ledReconciler(NAME, context, { workers: WORKERS, reconcile });
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
    return { groups: [groupOf({ rollouts: reconciler })] };
  },
};
