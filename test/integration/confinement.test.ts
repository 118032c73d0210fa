import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { ApiClient, KubeObject } from '../../samples/control-plane/api-client.ts';
import { messageOf } from '../../src/errors.ts';
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
const BINDINGS = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings';
const NODE = 'worker-1';
const VNODE = 'vnode.of-the-test';
/** Several seconds, not a minute: whichever replica dies, or base that says goodbye. */
const REPLICA_DIES_WITHIN_MS = 30_000;

let world: World;
let admin: ApiClient;

beforeAll(async () => {
  world = await startWorld();
  admin = world.admin;
  const platform = await Platform.install(world);
  await platform.installPolicies();
  const replicaSet = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'a1b2', controller: true };
  const owned = modulePod('owned', [{ name: 'owned' }], { nodeName: VNODE });
  await world.controlPlane.apply([
    { apiVersion: 'v1', kind: 'Node', metadata: { name: NODE } },
    { apiVersion: 'v1', kind: 'Node', metadata: { name: VNODE }, spec: { taints: nodeTaintsOf('dev') } },
    { ...lease(NODE), metadata: { name: NODE, namespace: 'kube-node-lease' } },
    { ...lease('foreign'), metadata: { name: 'foreign', namespace: 'koupleless-system' } },
    pod('ordinary', NODE),
    pod('foreign', VNODE),
    modulePod('labelled', [{ name: 'labelled' }], { nodeName: NODE }),
    modulePod('unbound', [{ name: 'unbound' }], { spec: { nodeSelector: { nowhere: 'true' } } }),
    { ...owned, metadata: { ...owned.metadata, ...ownedBy(replicaSet) } },
    revision('agents-1', {}, 'DaemonSet'),
  ] as KubeObject[]);
});

afterAll(() => world?.stop());

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

function lease(name: string, labels: Record<string, string> = {}): KubeObject {
  const metadata = { name, labels };
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec: { holderIdentity: name } };
}

/** The owner does not exist: the finalizer keeps the object. */
function ownedBy(owner: KubeObject): KubeObject {
  return { ownerReferences: [owner], finalizers: ['example.com/kept'] };
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
  { what: 'takes the Lease of an ordinary Node', act: merge(`${LEASES}/${NODE}`, HOLD) },
  {
    what: 'takes it and gives it the label of the Lease of a base',
    act: merge(`${LEASES}/${NODE}`, { ...HOLD, metadata: { labels: OF_A_LEASE } }),
  },
  { what: 'deletes the Lease of an ordinary Node', act: remove(`${LEASES}/${NODE}`) },
  { what: 'makes a Lease of an ordinary Node', act: create(LEASES, lease('worker-2')) },
  { what: 'makes one with the label of the Lease of a base', act: create(LEASES, lease('worker-3', OF_A_LEASE)) },
  { what: 'deletes an ordinary Pod', act: remove(`${PODS}/ordinary`) },
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
  ['module-controller', OF_THE_CORE],
  ['module-platform', OF_THE_PLATFORM],
] as const)('whoever has stolen the token of %s', (account, attempts) => {
  let thief: ApiClient;
  let bindings: KubeObject[];

  beforeAll(async () => {
    thief = await world.controlPlane.client({ serviceAccount: `koupleless-system/${account}` });
    bindings = await Promise.all(
      ['', '-leases'].map((suffix) => admin.get(`${BINDINGS}/${account}-confinement${suffix}`)),
    );
    await learnt();
  });

  /** The API server learns of a policy by a watch. */
  async function learnt(): Promise<void> {
    for (const attempt of attempts)
      await eventually(async () => expect(await answerOf(attempt, thief)).toContain('this account may write'));
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

describe('whoever has stolen the token of the platform', () => {
  it('gets no Pod that a kubelet could run: with the label it has to be one of modules', async () => {
    const thief = await world.controlPlane.client({ serviceAccount: 'koupleless-system/module-platform' });
    const answer = await answerOf({ what: '', act: create(PODS, pod('mine', undefined, MODULE)) }, thief);
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
    expect(await find(admin, `${LEASES}/${gone}`)).toBeUndefined();

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
    for (const name of ['module-controller', 'module-platform'].flatMap((account) => [
      `${account}-confinement`,
      `${account}-confinement-leases`,
    ])) {
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
