import { X509Certificate } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import { reservePort } from '../../samples/control-plane/ports.ts';
import { messageOf } from '../../src/errors.ts';
import { refusal } from '../support/admission.ts';
import { eventually } from '../support/eventually.ts';
import { jarOf, modulePod } from '../support/manifests.ts';
import { eventsOf, find, isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { Platform } from '../support/platform.ts';
import { startWorld } from '../support/start-world.ts';
import { createTenant } from '../support/tenant.ts';
import type { ControllerProcess, World } from '../support/world.ts';

const SAMPLES = new URL('../../samples/', import.meta.url);
const BASES = 3;
/** A silent base counts as dead after 60 s. */
const BASE_DIES_WITHIN_MS = 120_000;
const MODULE = { 'virtual-kubelet.koupleless.io/component': 'module' };
const OF_MODULES = { 'virtual-kubelet.koupleless.io/component': 'module-deployment' };
const SECRET = '/api/v1/namespaces/koupleless-system/secrets/module-platform-webhook';
const WEBHOOKS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/module-platform';
const MODULE_DEPLOYMENTS = '/apis/platform.koupleless.io/v1alpha1/namespaces/default/moduledeployments';
const TENANCIES = '/apis/platform.koupleless.io/v1alpha1/namespaces/default/moduletenancies';

let world: World;
let fleet: Fleet;
let platform: Platform;
let controller: ControllerProcess;
let port: number;

/** What a user has to write. */
function shortPod(
  name: string,
  version = '1.0.0',
  annotations: Record<string, string> = { 'platform.koupleless.io/base-name': 'base' },
) {
  return {
    metadata: { labels: { app: name, ...MODULE }, annotations },
    spec: { containers: [{ name, image: jarOf(name, version) }] as Record<string, unknown>[] },
  };
}

function workload(kind: string, name: string, spec: Record<string, unknown> = {}, labels: Record<string, string> = {}) {
  const template = shortPod(name);
  return {
    apiVersion: kind === 'ModuleDeployment' ? 'platform.koupleless.io/v1alpha1' : 'apps/v1',
    kind,
    metadata: { name, namespace: 'default', labels },
    spec: { selector: { matchLabels: { app: name } }, template, ...spec },
  };
}

async function readyPods(app: string, count: number) {
  return eventually(async () => {
    const all = await pods(world.admin, `app=${app}`);
    expect(all.filter(isReady)).toHaveLength(count);
    return all;
  });
}

async function startPlatform(): Promise<ControllerProcess> {
  const started = await platform.start(`platform-${Date.now()}`, 'peer,rollout,admission', {
    WEBHOOK_PORT: String(port),
  });
  await started.port('webhooks');
  return started;
}

/** Until the API server has learnt of the CA. */
async function whenAnswering(): Promise<void> {
  await eventually(async () => {
    const short = {
      ...workload('ModuleDeployment', 'probe'),
      spec: { ...workload('ModuleDeployment', 'probe').spec, replicas: 0 },
    };
    await world.admin.post(`${MODULE_DEPLOYMENTS}?dryRun=All`, short as never);
  });
}

beforeAll(async () => {
  world = await startWorld();
  platform = await Platform.install(world);
  await platform.installPolicies();
  await world.startController();
  fleet = await world.startFleet({ count: BASES, activateNewModule: true });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(BASES));
  port = await reservePort();
  await platform.installWebhook(port);
  controller = await startPlatform();
  await whenAnswering();
});

afterAll(async () => {
  await platform?.stop();
  await world?.stop();
});

afterEach(async () => {
  for (const [kind, path] of [
    ['deployments', '/apis/apps/v1/namespaces/default/deployments'],
    ['daemonsets', '/apis/apps/v1/namespaces/default/daemonsets'],
    ['moduledeployments', MODULE_DEPLOYMENTS],
    ['tenancies', TENANCIES],
    ['pods', '/api/v1/namespaces/default/pods'],
  ] as const) {
    const { items = [] } = (await find<{ items?: KubeObject[] }>(world.admin, path)) ?? {};
    for (const { metadata } of items) {
      const query = kind === 'pods' ? '?gracePeriodSeconds=0' : '';
      await world.admin.delete(`${path}/${metadata.name}${query}`).catch(() => {});
    }
  }
  await eventually(async () => expect(await pods(world.admin)).toEqual([]));
});

describe('the webhook for Pods of modules', () => {
  it('A-000-10: completes the Pods of a short Deployment', async () => {
    await world.controlPlane.apply(workload('Deployment', 'shop', { replicas: BASES }));
    const all = await readyPods('shop', BASES);
    for (const { metadata, spec } of all) {
      expect(metadata.labels).toMatchObject({
        'module.koupleless.io/name': 'shop',
        'module.koupleless.io/version': '1.0.0',
      });
      expect(spec.containers[0]?.env).toEqual([{ name: 'BIZ_VERSION', value: '1.0.0' }]);
      expect(spec.tolerations).toEqual(
        expect.arrayContaining([
          { key: 'schedule.koupleless.io/virtual-node', operator: 'Equal', value: 'True', effect: 'NoExecute' },
          { key: 'schedule.koupleless.io/node-env', operator: 'Equal', value: 'dev', effect: 'NoExecute' },
        ]),
      );
    }
    // One on each base, without a word about it.
    expect(new Set(all.map(({ spec }) => spec.nodeName)).size).toBe(BASES);
  });

  it('A-000-10: keeps what is written', async () => {
    const pod = modulePod('own', [{ name: 'own', version: '3.0.0', image: jarOf('own', '1.0.0') }]);
    const [stored] = await world.controlPlane.apply(pod as never);
    expect(stored?.spec.containers[0].env).toEqual([{ name: 'BIZ_VERSION', value: '3.0.0' }]);
    expect(stored?.metadata.labels['module.koupleless.io/version']).toBe('3.0.0');
  });

  it('completes the template of a labelled DaemonSet, and follows its annotation', async () => {
    const daemonSet = workload('DaemonSet', 'audit', {}, OF_MODULES);
    await world.controlPlane.apply(daemonSet);
    await readyPods('audit', BASES);
    daemonSet.spec.template.metadata.annotations['platform.koupleless.io/base-name'] = 'elsewhere';
    await world.controlPlane.apply(daemonSet);
    await eventually(async () => expect(await pods(world.admin, 'app=audit')).toEqual([]));
  });

  it('completes the template of a peer deployment, which gets a Pod for each base', async () => {
    const labels = { ...OF_MODULES, 'virtual-kubelet.koupleless.io/strategy': 'peer' };
    await world.controlPlane.apply(workload('Deployment', 'cache', {}, labels));
    await readyPods('cache', BASES);
  });

  it('says all that is wrong with a Pod, and what to write', async () => {
    const pod = { apiVersion: 'v1', kind: 'Pod', ...shortPod('shop') };
    const bad = {
      ...pod,
      metadata: { ...pod.metadata, name: 'bad', namespace: 'default' },
      spec: { hostNetwork: true, containers: [{ name: 'shop', image: 'nginx:1' }] },
    };
    const message = await refusal(world, bad);
    expect(message).toContain('spec.containers[shop].image: must be the address of a jar');
    expect(message).toContain('nginx:1');
    expect(message).toContain('spec.containers[shop].env: BIZ_VERSION is missing');
    expect(message).toContain('spec.hostNetwork');
    expect(message).not.toContain('away');
  });

  it.each([
    ['an image', { containers: [{ name: 'shop', image: 'nginx:1' }] }, 'containers[shop].image'],
    [
      'a volume',
      { volumes: [{ name: 'data', emptyDir: {} }], containers: [{ name: 'shop', image: jarOf('shop', '1') }] },
      'volumes[data]',
    ],
    [
      'an init container',
      {
        initContainers: [{ name: 'first', image: 'busybox' }],
        containers: [{ name: 'shop', image: jarOf('shop', '1') }],
      },
      'initContainers',
    ],
    [
      'values from elsewhere',
      {
        containers: [
          {
            name: 'shop',
            image: jarOf('shop', '1'),
            env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
          },
        ],
      },
      'containers[shop].env',
    ],
    [
      'a port of the host',
      { containers: [{ name: 'shop', image: jarOf('shop', '1'), ports: [{ containerPort: 80, hostPort: 80 }] }] },
      'containers[shop].ports',
    ],
    [
      'the network of its host',
      { hostNetwork: true, containers: [{ name: 'shop', image: jarOf('shop', '1') }] },
      'hostNetwork',
    ],
  ])('refuses a Deployment with %s that no base can run', async (_what, podSpec, path) => {
    const deployment = workload('Deployment', 'shop');
    deployment.spec.template = { ...deployment.spec.template, spec: podSpec as never };
    expect(await refusal(world, deployment)).toContain(`spec.template.spec.${path}`);
    expect(await refusal(world, { ...workload('ModuleDeployment', 'shop'), spec: { ...deployment.spec } })).not.toBe(
      'accepted',
    );
  });

  it('accepts every sample', async () => {
    // The kinds of the catalog are not installed here: its tutorial applies its samples.
    const samples = (await readdir(SAMPLES)).filter((name) => name.endsWith('.yaml') && !name.includes('catalog'));
    expect(samples.length).toBeGreaterThan(5);
    for (const name of samples) {
      for (const text of (await readFile(new URL(name, SAMPLES), 'utf8')).split(/^---$/m)) {
        const object = parse(text);
        const plural = `${object.kind.toLowerCase()}s`;
        const root = object.apiVersion === 'v1' ? '/api/v1' : `/apis/${object.apiVersion}`;
        const answer = world.admin.post(`${root}/namespaces/default/${plural}?dryRun=All`, object);
        await expect(answer, name).resolves.toMatchObject({ kind: object.kind });
      }
    }
  });

  it('changes nothing in a dry run', async () => {
    const before = [await world.admin.get(SECRET), await world.admin.get(WEBHOOKS)];
    const pod = { apiVersion: 'v1', kind: 'Pod', ...shortPod('shop') };
    const dry = { ...pod, metadata: { ...pod.metadata, name: 'dry', namespace: 'default' } };
    const answer = await world.admin.post('/api/v1/namespaces/default/pods?dryRun=All', dry as never);
    expect(answer.spec.containers[0].env).toEqual([{ name: 'BIZ_VERSION', value: '1.0.0' }]);
    expect(await find(world.admin, '/api/v1/namespaces/default/pods/dry')).toBeUndefined();
    expect([await world.admin.get(SECRET), await world.admin.get(WEBHOOKS)]).toEqual(before);
  });
});

describe('ModuleDeployments', () => {
  it('can be written short', async () => {
    await world.controlPlane.apply(workload('ModuleDeployment', 'shop', { replicas: BASES }));
    const all = await readyPods('shop', BASES);
    expect(new Set(all.map(({ spec }) => spec.nodeName)).size).toBe(BASES);
  });

  it('are refused without a version that anybody could know', async () => {
    const deployment = workload('ModuleDeployment', 'shop');
    deployment.spec.template.spec.containers = [{ name: 'shop', image: 'https://jars.example.com/latest.jar' }];
    expect(await refusal(world, deployment)).toContain(
      'spec.template.spec.containers[shop].env: BIZ_VERSION is missing',
    );
  });

  it('are refused when they ask for a revision that there is not', async () => {
    await world.controlPlane.apply(workload('ModuleDeployment', 'shop'));
    await readyPods('shop', 1);
    const patch = (revision: number) =>
      world.admin.request('PATCH', `${MODULE_DEPLOYMENTS}/shop`, {
        body: { spec: { rollbackTo: { revision } } },
        contentType: 'application/merge-patch+json',
      });
    await expect(patch(7)).rejects.toThrow('spec.rollbackTo.revision: there is no revision 7, there are 1');
    await expect(patch(0)).rejects.toThrow('spec.rollbackTo.revision: there is no earlier revision');
  });
});

describe('a namespace with a ModuleTenancy', () => {
  const tenancy = {
    apiVersion: 'platform.koupleless.io/v1alpha1',
    kind: 'ModuleTenancy',
    metadata: { name: 'limits', namespace: 'default' },
    spec: {
      baseNames: ['base'],
      moduleNames: ['shop', 'shop-*'],
      imagePrefixes: ['https://jars.example.com/'],
      installStrategies: ['installOnly'],
      maxPreStopSeconds: 5,
    },
  };

  it('has the limits that it names, and no others', async () => {
    await world.controlPlane.apply(tenancy);
    const bad = workload('Deployment', 'shop');
    const { template } = bad.spec;
    template.metadata.annotations = { 'virtual-kubelet.koupleless.io/install-strategy': 'uninstallThenInstall' };
    template.spec.containers = [
      { name: 'payment', image: 'https://jars.example.com.evil.example/payment-1.0.0.jar' },
      {
        name: 'shop',
        image: 'https://jars.example.com/../x/shop-1.0.0.jar',
        lifecycle: { preStop: { sleep: { seconds: 20 } } },
      },
    ];
    // The API server learns of parameters by a watch.
    const message = await eventually(async () => {
      const text = await refusal(world, bad);
      expect(text).not.toBe('accepted');
      return text;
    });
    for (const part of [
      'containers[payment].name: this namespace may have modules shop, shop-*',
      'containers[payment].image: this namespace may have jars from https://jars.example.com/',
      'containers[shop].image',
      'containers[shop].lifecycle.preStop.sleep.seconds: this namespace may have at most 5',
      'install-strategy]: this namespace may have installOnly',
      'affinity: this namespace may use the bases base',
    ])
      expect(message).toContain(part);
    await world.admin.delete('/apis/apps/v1/namespaces/default/deployments/shop').catch(() => {});

    const pod = modulePod('foreign', [{ name: 'payment' }]);
    expect(await refusal(world, pod)).toContain('containers[payment].name');
    // Without the label nobody completes its template, and its Pods would run on every base.
    expect(await refusal(world, workload('DaemonSet', 'shop'))).toContain('this namespace may use the bases base');
    const elsewhere = modulePod('shop', [{ name: 'shop' }], {
      spec: { nodeSelector: { 'vnode.koupleless.io/name': 'other' } },
    });
    expect(await refusal(world, elsewhere)).toContain('this namespace may use the bases base');
    await world.controlPlane.apply(workload('Deployment', 'shop-web'));
    await world.controlPlane.apply(workload('DaemonSet', 'shop', {}, OF_MODULES));
    await readyPods('shop-web', 1);
    await readyPods('shop', BASES);
  });

  it('limits also what is being deleted, and lets it go', async () => {
    const finalizers = ['example.com/kept'];
    const path = (name: string) => `/api/v1/namespaces/default/pods/${name}`;
    const patch = (name: string, metadata: object) =>
      world.admin.mergePatch(path(name), { metadata }).then(() => 'accepted', messageOf);
    const nowhere = { spec: { nodeSelector: { nowhere: 'true' } } };
    for (const [name, labels] of [
      ['before', MODULE],
      ['later', {}],
    ] as const) {
      const pod = modulePod(name, [{ name: 'payment' }], nowhere);
      await world.controlPlane.apply({ ...pod, metadata: { name, namespace: 'default', labels, finalizers } });
    }
    await world.controlPlane.apply(tenancy);
    const foreign = modulePod('foreign', [{ name: 'payment' }]);
    await eventually(async () => expect(await refusal(world, foreign)).toContain('containers[payment].name'));
    for (const name of ['before', 'later']) {
      await world.admin.delete(path(name));
      expect((await world.admin.get(path(name))).metadata.deletionTimestamp).toBeDefined();
    }
    expect(await patch('later', { labels: MODULE })).toContain('containers[payment].name: this namespace may have');
    expect(await patch('before', { annotations: { 'example.com/note': 'x' } })).toBe('accepted');
    for (const name of ['before', 'later']) expect(await patch(name, { finalizers: null })).toBe('accepted');
    await eventually(async () => expect(await pods(world.admin)).toEqual([]));
  });

  it('takes from kube-controller-manager only the Pods of DaemonSets as they are, whatever its name', async () => {
    await world.controlPlane.apply(tenancy);
    const manager = await world.controlPlane.client({
      user: 'system:kube-controller-manager',
      groups: ['system:masters'],
    });
    const ownedBy = (kind: string, more: object = { controller: true }) => {
      const pod = modulePod('shop', [{ name: 'shop' }]);
      const ownerReferences = [{ apiVersion: 'apps/v1', kind, name: 'shop', uid: 'a1b2', ...more }];
      const object = { ...pod, metadata: { ...pod.metadata, ownerReferences } };
      return manager.post('/api/v1/namespaces/default/pods?dryRun=All', object).then(() => 'accepted', messageOf);
    };
    await eventually(async () => expect(await ownedBy('ReplicaSet')).toContain('may use the bases base'));
    expect(await ownedBy('Job')).toContain('may use the bases base');
    expect(await ownedBy('DaemonSet', {})).toContain('may use the bases base');
    expect(await ownedBy('DaemonSet')).toBe('accepted');
  });

  it('cannot be changed by those who may edit the namespace, who can read it', async () => {
    await world.controlPlane.apply(tenancy);
    const tenant = await createTenant(world.controlPlane, 'default');
    await eventually(async () => expect((await tenant.get(`${TENANCIES}/limits`)).spec).toEqual(tenancy.spec));
    await expect(tenant.delete(`${TENANCIES}/limits`)).rejects.toThrow('forbidden');
    await expect(tenant.post(TENANCIES, { ...tenancy, metadata: { name: 'other' } } as never)).rejects.toThrow(
      'forbidden',
    );
  });
});

describe('while the platform is away', () => {
  it('ordinary Pods start, complete Pods of modules start and move, and incomplete ones wait for it', async () => {
    const complete = modulePod('complete', [{ name: 'complete' }]);
    const ordinary = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'nginx', namespace: 'default' },
      spec: { containers: [{ name: 'nginx', image: 'nginx:1' }] },
    };
    await controller.stop('SIGKILL');
    await world.controlPlane.apply(ordinary);
    await world.controlPlane.apply(complete as never);
    await eventually(async () =>
      expect(isReady((await pods(world.admin)).find(({ metadata }) => metadata.name === 'complete'))).toBe(true),
    );
    const move = { ...workload('Deployment', 'mover', { replicas: 1 }) };
    const { metadata, spec } = modulePod('mover', [{ name: 'mover' }], { labels: { app: 'mover' } });
    move.spec.template = { metadata: { labels: metadata.labels }, spec } as never;
    await world.controlPlane.apply(move);
    const [before] = await readyPods('mover', 1);
    const baseOf = (pod: { spec: { nodeName?: string } } | undefined): string => pod?.spec.nodeName ?? '';
    await fleet.base(baseOf(before).replace('vnode.', '')).kill();
    await eventually(async () => {
      const now = (await pods(world.admin, 'app=mover')).filter(isReady);
      expect(now.map(baseOf)).toEqual([expect.not.stringMatching(baseOf(before))]);
    }, BASE_DIES_WITHIN_MS);

    await world.controlPlane.apply(workload('Deployment', 'shop', { replicas: 1 }));
    await eventually(async () => {
      const sets = await world.admin.get('/apis/apps/v1/namespaces/default/replicasets?labelSelector=app%3Dshop');
      const events = await eventsOf(world.admin, 'ReplicaSet', sets.items[0].metadata.name);
      const messages = events.map(({ message }) => message).join();
      expect(messages).toContain('BIZ_VERSION is missing');
      expect(messages).toContain('while the platform is away, a Pod of modules has to be complete');
    });
    controller = await startPlatform();
    await readyPods('shop', 1);
    await whenAnswering();
  });
});

describe('the certificates of the webhook server', () => {
  it('change without a refused request: both CAs are trusted before the new one signs', async () => {
    const created: string[] = [];
    const failures: string[] = [];
    let isRunning = true;
    const requests = (async () => {
      for (let index = 0; isRunning; index++) {
        const object = workload('ModuleDeployment', `probe-${index}`, { replicas: 0 });
        try {
          await world.admin.post(`${MODULE_DEPLOYMENTS}?dryRun=All`, object as never);
          created.push(object.metadata.name);
        } catch (error) {
          failures.push(messageOf(error));
        }
      }
    })();
    let before: KubeObject;
    let after: KubeObject;
    try {
      before = await world.admin.get(SECRET);
      await world.admin.request('PATCH', SECRET, {
        body: [{ op: 'remove', path: '/data' }],
        contentType: 'application/json-patch+json',
      });
      after = await eventually(async () => {
        const secret = await world.admin.get(SECRET);
        expect(secret.data?.['tls.crt']).toBeDefined();
        return secret;
      });
      const countAt = created.length;
      await eventually(() => expect(created.length).toBeGreaterThan(countAt + 20));
    } finally {
      isRunning = false;
      await requests;
    }
    expect(failures).toEqual([]);
    expect(after.data['tls.crt']).not.toBe(before.data['tls.crt']);
    const { webhooks } = await world.admin.get(WEBHOOKS);
    for (const { clientConfig } of webhooks) {
      const text = Buffer.from(clientConfig.caBundle, 'base64').toString();
      expect(text.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
    }
    const served = new X509Certificate(Buffer.from(after.data['tls.crt'], 'base64'));
    expect(served.subjectAltName).toBe('IP Address:127.0.0.1');
  });

  it('go into a webhook configuration that is installed again', async () => {
    await world.admin.delete(WEBHOOKS);
    await platform.installWebhook(port);
    await eventually(async () => {
      const { webhooks } = await world.admin.get(WEBHOOKS);
      expect(webhooks.every(({ clientConfig }: KubeObject) => clientConfig.caBundle !== undefined)).toBe(true);
    });
  });
});
