import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ApiClient, KubeObject } from '../../samples/control-plane/api-client.ts';
import { reservePort } from '../../samples/control-plane/ports.ts';
import { messageOf } from '../../src/errors.ts';
import { eventually } from '../support/eventually.ts';
import { BUILD_TIMEOUT_MS, ensureGoTool } from '../support/go-tools/programs.ts';
import { commandsOf } from '../support/guide.ts';
import { installChart, runHelmLine, uninstallChart } from '../support/helm.ts';
import { moduleWorkload } from '../support/manifests.ts';
import { isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { untilPoliciesInForce } from '../support/platform.ts';
import { envOfPod, portOf, probeUrl } from '../support/rendered-pod.ts';
import { moduleDeployment } from '../support/rollouts.ts';
import { startWorld } from '../support/start-world.ts';
import { ControllerProcess, type World } from '../support/world.ts';

const NAMESPACE = 'modules';
/** Not the names of `deploy/`, whose objects are in this control plane already. */
const CORE = 'chart-core';
const SECRET = 'broker-user';
const [UPGRADE = '', ROLL_BACK = ''] = commandsOf('docs/guides.md', 'Upgrade and roll back');

let world: World;
let admin: ApiClient;
let kubeconfig: string;
let values: { readonly config: object; readonly [name: string]: unknown };
const processes: ControllerProcess[] = [];

beforeAll(async () => {
  await ensureGoTool('helm');
}, BUILD_TIMEOUT_MS);

/** Into a namespace that lets only Pods in that fulfil `restricted`. */
beforeAll(async () => {
  world = await startWorld();
  admin = world.admin;
  const ports = await Promise.all([reservePort(), reservePort(), reservePort(), reservePort()]);
  const [probes, metrics, platformProbes, platformMetrics] = ports;
  kubeconfig = await world.controlPlane.kubeconfig({ user: 'admin' });
  values = {
    image: { repository: 'registry.example.com/module-controller' },
    nameOverride: CORE,
    replicas: 1,
    config: {
      ENABLE_MQTT_TUNNEL: true,
      MQTT_BROKER: '127.0.0.1',
      MQTT_PORT: world.broker.port,
      HEALTH_PROBE_PORT: probes,
      METRICS_PORT: metrics,
    },
    existingSecret: SECRET,
    networkPolicy: { enabled: true },
    platform: {
      enabled: true,
      replicas: 1,
      // No Service leads to a webhook server here.
      controllers: ['peer', 'rollout', 'export'],
      config: { HEALTH_PROBE_PORT: platformProbes, METRICS_PORT: platformMetrics },
    },
  };
  await world.controlPlane.apply([
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: NAMESPACE, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
    },
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: SECRET, namespace: NAMESPACE },
      stringData: { MQTT_USERNAME: 'module-controller', MQTT_PASSWORD: 'of-the-secret' },
    },
  ]);
  await installChart({ kubeconfig, namespace: NAMESPACE, values });
  await untilPoliciesInForce(world);
});

afterAll(async () => {
  await Promise.all(processes.map((each) => each.stop('SIGKILL')));
  await world?.stop();
});

/** The Pod that the Deployment has got: the API server has taken it. */
async function podOf(deployment: string): Promise<KubeObject> {
  const selector = encodeURIComponent(`app.kubernetes.io/name=${deployment}`);
  return eventually(async () => {
    const found = await admin.list(`/api/v1/namespaces/${NAMESPACE}/pods?labelSelector=${selector}`);
    expect(found).toHaveLength(1);
    return found[0];
  });
}

/** A process with the environment and the token of a Pod. */
async function start(pod: KubeObject): Promise<{ process: ControllerProcess; env: Record<string, string> }> {
  const env = await envOfPod(world, pod, { podIP: '127.0.0.1' });
  const serviceAccount = `${NAMESPACE}/${pod.spec.serviceAccountName}`;
  const KUBECONFIG = await world.controlPlane.kubeconfig({ serviceAccount });
  const process = new ControllerProcess({ ...env, KUBECONFIG });
  processes.push(process);
  return { process, env };
}

async function untilReady(pod: KubeObject): Promise<void> {
  await eventually(async () => expect((await fetch(probeUrl(pod, 'readinessProbe'))).status).toBe(200));
  expect((await fetch(probeUrl(pod, 'livenessProbe'))).status).toBe(200);
}

async function readyOn(app: string): Promise<Set<string | undefined>> {
  const ready = (await pods(admin, `app=${app}`)).filter(isReady);
  return new Set(ready.map(({ spec }) => spec.nodeName));
}

it('a namespace that enforces `restricted` has Pods of both Deployments, and refuses others', async () => {
  for (const name of [CORE, 'module-platform']) {
    const pod = await podOf(name);
    expect(pod.spec.serviceAccountName).toBe(name);
    expect(pod.spec.priority).toBe(name === CORE ? 2_000_000_000 : 0);
  }
  const other = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'other' },
    spec: { containers: [{ name: 'a', image: 'b' }] },
  };
  const answer = await admin.post(`/api/v1/namespaces/${NAMESPACE}/pods`, other).then(() => 'accepted', messageOf);
  expect(answer).toContain('violates PodSecurity "restricted');
});

it('with the rendered environment, identity and probes a Deployment of module Pods becomes Ready on two bases', async () => {
  const pod = await podOf(CORE);
  const { process, env } = await start(pod);
  expect(env).toMatchObject({
    ENV: 'dev',
    IS_CLUSTER: 'true',
    MQTT_PASSWORD: 'of-the-secret',
    POD_NAME: pod.metadata.name,
    POD_NAMESPACE: NAMESPACE,
    POD_IP: '127.0.0.1',
  });
  await untilReady(pod);
  expect(await (await fetch(`http://127.0.0.1:${portOf(pod, 'metrics')}/metrics`)).text()).toContain(
    'module_controller_tunnel_up',
  );

  await world.startFleet({ count: 2 });
  await eventually(async () => expect((await nodes(admin)).filter(isSchedulable)).toHaveLength(2));
  await world.controlPlane.apply(moduleWorkload('shop', [{ name: 'shop' }], { replicas: 2 }) as KubeObject);
  await eventually(async () => expect((await readyOn('shop')).size).toBe(2));
  // The account that did it is that of the release, confined by its policy.
  const lease = await admin.get('/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/vnode.base-1');
  expect(lease.spec.holderIdentity).toBe(pod.metadata.name);
  expect(await process.metric('rest_client_requests_total', 'code="403"')).toBe(0);
});

it('the platform of the release rolls out a ModuleDeployment', async () => {
  const pod = await podOf('module-platform');
  const { process, env } = await start(pod);
  expect(env).toMatchObject({ CONTROLLERS: 'peer,rollout,export', ENV: 'dev' });
  await untilReady(pod);
  await process.line(({ msg, lease }) => msg === 'started leading' && lease === 'platform-rollout');
  await world.controlPlane.apply(moduleDeployment({ name: 'cart', replicas: 2 }) as KubeObject);
  await eventually(async () => expect((await readyOn('cart')).size).toBe(2));
  expect(await process.metric('rest_client_requests_total', 'code="403"')).toBe(0);
});

it('a Pod that is stopped ends within its grace period, and gives its membership up', async () => {
  const pod = await podOf(CORE);
  const [core] = processes;
  const startedAt = performance.now();
  expect(await core?.stop('SIGTERM')).toBe(0);
  expect(performance.now() - startedAt).toBeLessThan(1000 * pod.spec.terminationGracePeriodSeconds);
  const leases: KubeObject[] = await admin.list('/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases');
  expect(leases.filter(({ spec }) => spec.holderIdentity === pod.metadata.name)).toEqual([]);
});

it('an upgrade with another variable replaces the Pods of the core, and no others', async () => {
  const [core, platform] = await Promise.all([podOf(CORE), podOf('module-platform')]);
  const config = { ...values.config, LOG_LEVEL: 'debug' };
  await runHelmLine(UPGRADE, { kubeconfig, namespace: NAMESPACE, values: { ...values, config } });
  // The update keeps the former Pod until the new one is Ready, which no kubelet says here.
  await eventually(async () => {
    const all: KubeObject[] = await admin.list(`/api/v1/namespaces/${NAMESPACE}/pods`);
    const added = all.filter(({ metadata }) => ![core.metadata.uid, platform.metadata.uid].includes(metadata.uid));
    expect(added.map(({ metadata }) => metadata.labels['app.kubernetes.io/name'])).toEqual([CORE]);
    const [{ metadata }] = added as [KubeObject];
    expect(metadata.annotations['checksum/config']).not.toBe(core.metadata.annotations['checksum/config']);
  });
});

it('a rollback goes back to the Pod of the revision before, and makes no other one', async () => {
  const path = (kind: string) => `/apis/apps/v1/namespaces/${NAMESPACE}/${kind}`;
  const logLevel = async () => (await admin.get(`/api/v1/namespaces/${NAMESPACE}/configmaps/${CORE}`)).data.LOG_LEVEL;
  const selector = encodeURIComponent(`app.kubernetes.io/name=${CORE}`);
  const podsOfCore = () => admin.list(`/api/v1/namespaces/${NAMESPACE}/pods?labelSelector=${selector}`);
  const before = (await podsOfCore()).map(({ metadata }) => metadata.uid);
  expect(await logLevel()).toBe('debug');
  await runHelmLine(ROLL_BACK, { kubeconfig, namespace: NAMESPACE, values });
  expect(await logLevel()).toBeUndefined();
  const { metadata, spec } = await eventually(async () => {
    const deployment = await admin.get(`${path('deployments')}/${CORE}`);
    expect(deployment.status.observedGeneration).toBe(deployment.metadata.generation);
    return deployment;
  });
  expect(metadata.annotations['deployment.kubernetes.io/revision']).toBe('3');
  const after = await podsOfCore();
  const checksum = spec.template.metadata.annotations['checksum/config'];
  expect(after.filter((pod) => pod.metadata.annotations['checksum/config'] === checksum)).toHaveLength(1);
  expect(before).toEqual(expect.arrayContaining(after.map((pod) => pod.metadata.uid)));
});

it('an uninstall leaves the CRD of ModuleTenancies, and the Secret of the user', async () => {
  await uninstallChart(kubeconfig, NAMESPACE);
  const crds = await admin.get(
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/moduletenancies.platform.koupleless.io',
  );
  expect(crds.metadata.deletionTimestamp).toBeUndefined();
  expect((await admin.list(`/api/v1/namespaces/${NAMESPACE}/secrets`)).map(({ metadata }) => metadata.name)).toEqual([
    SECRET,
  ]);
  const paths = [
    'admissionregistration.k8s.io/v1/validatingadmissionpolicies',
    'rbac.authorization.k8s.io/v1/clusterroles',
  ];
  for (const path of paths) {
    const left: KubeObject[] = await admin.list(`/apis/${path}`);
    expect(left.filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/managed-by'] === 'Helm')).toEqual([]);
  }
});
