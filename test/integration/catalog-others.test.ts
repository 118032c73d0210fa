import { execFile } from 'node:child_process';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import { createCertificateAuthority } from '../../samples/control-plane/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { Platform } from '../support/platform.ts';
import { startWorld } from '../support/start-world.ts';
import type { World } from '../support/world.ts';

const execFileAsync = promisify(execFile);
const GROUP = 'platform.koupleless.io/v1alpha1';
const MODULES = `/apis/${GROUP}/namespaces/default/modules`;
const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';
const MUTATIONS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
const BASES = 3;

let world: World;
let platform: Platform;

beforeAll(async () => {
  world = await startWorld();
  platform = await Platform.install(world, ['rollout', 'catalog']);
  await world.startController();
  await world.startFleet({ count: BASES, activateNewModule: true });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(BASES));
  await platform.optIn();
  const controller = await platform.start('catalog', 'rollout,catalog');
  await controller.line(({ msg, lease }) => msg === 'started leading' && lease === 'platform-catalog');
});

afterAll(async () => {
  await platform?.stop();
  await world?.stop();
});

function moduleOf(module: string, deploy: object): KubeObject {
  const release = { id: 'r1', image: `https://jars.example.com/${module}-1.0.0-ark-biz.jar` };
  const spec = { app: 'shop', module, base: { name: 'base' }, release, deploy };
  return { apiVersion: GROUP, kind: 'Module', metadata: { name: `shop-${module}`, namespace: 'default' }, spec };
}

const readyOf = async (module: string): Promise<KubeObject[]> =>
  (await pods(world.admin, `module.koupleless.io/name=${module}`)).filter(isReady);

async function released(module: string, copies: number): Promise<void> {
  await eventually(async () => {
    const { status } = await world.admin.get(`${MODULES}/shop-${module}`);
    const ready = status?.conditions.find(({ type }: { type: string }) => type === 'Ready');
    expect([ready?.reason, status?.readyReplicas]).toEqual(['Released', copies]);
  }, 60_000);
}

describe('an HPA on a Module', () => {
  it('scales it, and the workload follows without a contest', async () => {
    await world.admin.post(MODULES, moduleOf('scaled', { replicas: 1 }));
    await released('scaled', 1);
    const path = '/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers';
    const scaleTargetRef = { apiVersion: GROUP, kind: 'Module', name: 'shop-scaled' };
    // Without metrics an HPA brings the number into its bounds, and no further.
    const bounds = (minReplicas: number, maxReplicas: number) => ({
      spec: { scaleTargetRef, minReplicas, maxReplicas },
    });
    const metadata = { name: 'scaled', namespace: 'default' };
    await world.admin.post(path, {
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata,
      ...bounds(3, 4),
    });
    await released('scaled', 3);
    await world.admin.mergePatch(`${path}/scaled`, bounds(1, 2));
    await released('scaled', 2);
    const { spec, status } = await world.admin.get(`${MODULES}/shop-scaled`);
    expect(spec.deploy.replicas).toBe(2);
    expect(status.conditions.map(({ type }: { type: string }) => type)).not.toContain('Contested');
    await world.admin.delete(`${path}/scaled`);
    await world.admin.delete(`${MODULES}/shop-scaled`);
  });
});

describe('kubectl rollout restart of a composed Deployment', () => {
  it('replaces each Pod once, and is not taken back', async () => {
    await world.admin.post(MODULES, moduleOf('again', { workload: 'Deployment', replicas: 2 }));
    await released('again', 2);
    const before = new Set((await readyOf('again')).map(({ metadata }) => metadata.uid));
    const kubeconfig = await world.controlPlane.kubeconfig({ user: 'admin' });
    await execFileAsync('kubectl', [`--kubeconfig=${kubeconfig}`, 'rollout', 'restart', 'deployment/shop-again']);
    await execFileAsync('kubectl', [
      `--kubeconfig=${kubeconfig}`,
      'rollout',
      'status',
      'deployment/shop-again',
      '--timeout=60s',
    ]);
    await released('again', 2);
    const after = (await readyOf('again')).map(({ metadata }) => metadata.uid);
    expect(after.filter((uid) => before.has(uid))).toEqual([]);
    const { metadata, spec } = await world.admin.get(`${DEPLOYMENTS}/shop-again`);
    expect(metadata.generation).toBe(2);
    expect(spec.template.metadata.annotations).toHaveProperty(['kubectl.kubernetes.io/restartedAt']);
    await world.admin.delete(`${MODULES}/shop-again`);
  });
});

describe.each([
  ['ModuleDeployment', `/apis/${GROUP}/namespaces/default/moduledeployments`, GROUP],
  ['Deployment', DEPLOYMENTS, 'apps/v1'],
])('what another manager owns too in a composed %s', (workload, collection, apiVersion) => {
  const module = `co-${workload.toLowerCase()}`;
  const name = `shop-${module}`;
  const container = async () => (await world.admin.get(`${collection}/${name}`)).spec.template.spec.containers[0];
  const portsOf = async () => (await world.admin.get(`/api/v1/namespaces/default/services/${name}`)).spec.ports;

  afterAll(() => world?.admin.delete(`${MODULES}/${name}`));

  it('goes when the Module drops it, and comes with another number where it changes that', async () => {
    const object = moduleOf(module, { workload, replicas: 1 });
    const ports = [{ name: 'http', port: 8080 }];
    await world.admin.post(MODULES, { ...object, spec: { ...object.spec, args: ['--a=1'], ports } });
    await released(module, 1);
    const { args, ports: ofContainer } = await container();
    const containers = [{ name: module, args, ports: ofContainer }];
    await world.admin.applyObject(
      `${collection}/${name}`,
      { apiVersion, kind: workload, metadata: { name }, spec: { template: { spec: { containers } } } },
      'another',
    );
    const service = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name },
      spec: { ports: await portsOf() },
    };
    await world.admin.applyObject(`/api/v1/namespaces/default/services/${name}`, service, 'another');
    const changed = [{ name: 'http', port: 8081 }];
    await world.admin.mergePatch(`${MODULES}/${name}`, { spec: { args: null, ports: changed } });
    await eventually(async () => {
      const own = await container();
      expect([own.args, own.ports.map(({ containerPort }: { containerPort: number }) => containerPort)]).toEqual([
        undefined,
        [8081],
      ]);
      expect((await portsOf()).map(({ port }: { port: number }) => port)).toEqual([8081]);
    }, 30_000);
    await released(module, 1);
    const { metadata } = await world.admin.get(`${collection}/${name}`);
    expect(metadata.generation).toBeLessThanOrEqual(4);
  });

  it('is not lost with the mark: that comes back with an event', async () => {
    const mark = 'platform.koupleless.io/composed-by';
    await world.admin.mergePatch(`${collection}/${name}`, { metadata: { labels: { [mark]: null } } });
    await eventually(async () => {
      const { metadata } = await world.admin.get(`${collection}/${name}`);
      expect(metadata.labels[mark]).toBe('Module');
      const events = await world.admin.list('/apis/events.k8s.io/v1/namespaces/default/events');
      const notes = events.filter(({ regarding, reason }) => regarding.name === name && reason === 'Restored');
      expect(notes.map(({ note }) => note).join()).toContain(`metadata.labels.${mark}`);
    }, 30_000);
  });

  it('and a status that somebody writes by hand is mended', async () => {
    const before = (await world.admin.get(`${MODULES}/${name}`)).status;
    await world.admin.mergePatch(`${MODULES}/${name}/status`, { status: { readyReplicas: 77, conditions: [] } });
    await eventually(async () => {
      const { status } = await world.admin.get(`${MODULES}/${name}`);
      expect([status.readyReplicas, status.conditions.length]).toEqual([1, before.conditions.length]);
    }, 10_000);
  });
});

describe('a mutating webhook that gives jars another address', () => {
  let server: Server;
  let answered = 0;

  beforeAll(async () => {
    const authority = createCertificateAuthority('mirror');
    const { certificate, privateKey } = authority.issue({ commonName: 'mirror', hosts: ['127.0.0.1'] });
    server = createServer({ cert: certificate, key: privateKey }, async (request, response) => {
      const { request: asked } = (await json(request)) as { request: KubeObject };
      answered++;
      const [{ image }] = asked.object.spec.template.spec.containers;
      const value = image.replace('jars.example.com', 'mirror.example.com');
      const patch = [{ op: 'replace', path: '/spec/template/spec/containers/0/image', value }];
      const answer = {
        uid: asked.uid,
        allowed: true,
        patchType: 'JSONPatch',
        patch: Buffer.from(JSON.stringify(patch)).toString('base64'),
      };
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: answer }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    await world.admin.post(MUTATIONS, {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingWebhookConfiguration',
      metadata: { name: 'mirror' },
      webhooks: [
        {
          name: 'mirror.example.com',
          clientConfig: { url, caBundle: Buffer.from(authority.certificate).toString('base64') },
          rules: [
            { apiGroups: ['apps'], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['deployments'] },
          ],
          admissionReviewVersions: ['v1'],
          sideEffects: 'None',
        },
      ],
    });
  });

  afterAll(async () => {
    await world.admin.delete(`${MUTATIONS}/mirror`).catch(() => {});
    server?.close();
  });

  it('starts no loop of writes, nor an event', async () => {
    await world.admin.post(MODULES, moduleOf('mirrored', { workload: 'Deployment', replicas: 2 }));
    await released('mirrored', 2);
    const deployment = () => world.admin.get(`${DEPLOYMENTS}/shop-mirrored`);
    expect((await deployment()).spec.template.spec.containers[0].image).toContain('mirror.example.com');
    expect(answered).toBeGreaterThan(0);
    await world.admin.mergePatch(`${MODULES}/shop-mirrored`, { spec: { deploy: { replicas: 1 } } });
    await released('mirrored', 1);
    const { metadata } = await deployment();
    expect(metadata.generation).toBe(2);
    const events = await world.admin.list('/apis/events.k8s.io/v1/namespaces/default/events');
    const reasons = events.filter(({ regarding }) => regarding.name === 'shop-mirrored' && regarding.kind === 'Module');
    expect(reasons.map(({ reason }) => reason)).toEqual(['Released']);
  });
});
