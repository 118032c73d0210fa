import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { isCollectionOf } from '../../../src/assembly/controller-parts.ts';
import { VARIABLES } from '../../../src/config/variables.ts';
import { MODULE_TENANCIES } from '../../../src/kinds/module-tenancy.ts';
import { CONTROLLER_REVISIONS, MODULE_DEPLOYMENTS } from '../../../src/kinds/workload-kinds.ts';
import type { KubeObject } from '../../../src/kube/objects.ts';
import { DEPLOYMENTS, NODES, PODS, type ResourceKind, SERVICES } from '../../../src/kube/resource.ts';
import { PLATFORM_GROUP } from '../../../src/labels.ts';
import { MODULE_CONFIGS } from '../../../src/platform/catalog/config/module-config.ts';
import { MODULES, WORKLOADS } from '../../../src/platform/catalog/module/module.ts';
import {
  PLATFORM_CONFIG_NAME,
  PLATFORM_CONFIGS,
} from '../../../src/platform/catalog/platform-config/platform-config.ts';
import { MODULE_RELEASES } from '../../../src/platform/catalog/release/module-release.ts';
import { EXPORT_SERVICES } from '../../../src/platform/export/export-service.ts';
import { resourceOf } from '../../../src/reconcile/access.ts';
import { accessOf, type ControllerDefinition } from '../../../src/reconcile/controller-definition.ts';
import { SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS } from '../../../src/reconcile/token-access.ts';
import { DEFINITIONS, PLATFORM } from '../../manifests/definitions.ts';
import { moduleWorkload } from '../../support/manifests.ts';
import { declaredUses, PlatformRig } from '../../support/platform-rig.ts';
import { moduleDeployment } from '../../support/rollouts.ts';
import { readText, sourceFilesOf } from '../docs/sources.ts';

const KNOWN = DEFINITIONS.map(({ name }) => name);
const definitionOf = (name: string): ControllerDefinition => PLATFORM.find((one) => one.name === name) as never;

const TLS = fileURLToPath(new URL('../tunnels/testdata/tls/', import.meta.url));
const FEED = { EXPORT_PORT: '0', EXPORT_CERT_PATH: `${TLS}server.crt`, EXPORT_KEY_PATH: `${TLS}server.key` };

/** The Node of a base. */
function node(name: string): KubeObject {
  const labels = {
    'virtual-kubelet.koupleless.io/component': 'vnode',
    'virtual-kubelet.koupleless.io/env': 'dev',
    'kubernetes.io/hostname': name,
  };
  const taints = [
    { key: 'schedule.koupleless.io/virtual-node', value: 'True', effect: 'NoExecute' },
    { key: 'schedule.koupleless.io/node-env', value: 'dev', effect: 'NoExecute' },
  ];
  const status = { conditions: [{ type: 'Ready', status: 'True' }] };
  return { metadata: { name, labels }, spec: { taints }, status } as never;
}

/** Binds all Pods, each to a base of its own, and makes them Ready. */
async function run(rig: PlatformRig): Promise<void> {
  for (const [index, pod] of rig.all(PODS).entries()) {
    const lastTransitionTime = rig.clock.wallTime().toISOString();
    const conditions = ['Ready', 'ContainersReady'].map((type) => ({ type, status: 'True', lastTransitionTime }));
    const { spec } = pod as unknown as { spec: { nodeName?: string } };
    const nodeName = spec.nodeName ?? `vnode.b${index}`;
    await rig.put(PODS, { ...pod, spec: { ...spec, nodeName }, status: { phase: 'Running', conditions } } as never);
  }
}

/** Edits the spec of the ModuleDeployment `shop` as a user does. */
async function edit(rig: PlatformRig, change: object): Promise<void> {
  const stored = rig.all(MODULE_DEPLOYMENTS).find(({ metadata }) => metadata.name === 'shop') as unknown as {
    metadata: { generation?: number };
    spec: object;
  };
  const metadata = { ...stored.metadata, generation: (stored.metadata.generation ?? 1) + 1 };
  await rig.put(MODULE_DEPLOYMENTS, { ...stored, metadata, spec: { ...stored.spec, ...change } } as never);
}

/** What makes each controller do everything that it declares. */
const SCENARIOS: Readonly<Record<string, { env?: Record<string, string>; run: (rig: PlatformRig) => Promise<void> }>> =
  {
    peer: {
      run: async (rig) => {
        const workload = moduleWorkload('shop', [{ name: 'shop' }], { replicas: 1 });
        const labels = { 'virtual-kubelet.koupleless.io/strategy': 'peer' };
        const metadata = { ...workload.metadata, namespace: 'default', labels };
        await rig.put(DEPLOYMENTS, { ...workload, metadata } as never);
        for (const name of ['vnode.a', 'vnode.b']) await rig.put(NODES, node(name));
      },
    },
    rollout: {
      run: async (rig) => {
        for (const name of ['vnode.b0', 'vnode.b1', 'vnode.b2']) await rig.put(NODES, node(name));
        const first = moduleDeployment({ version: '1.0.0', replicas: 1 });
        const create = async (object: object): Promise<void> => {
          const { metadata } = object as KubeObject;
          await rig.put(MODULE_DEPLOYMENTS, {
            ...object,
            metadata: { ...metadata, namespace: 'default', generation: 1 },
          } as never);
        };
        // Writes without an answer: what has the name then is read.
        for (const kind of [PODS, CONTROLLER_REVISIONS]) rig.loseNextCreate(kind);
        await create(first);
        await run(rig);
        // A second version replaces the first; the history keeps one.
        const second = moduleDeployment({ version: '2.0.0', replicas: 1 });
        await edit(rig, { template: second.spec.template, revisionHistoryLimit: 0 });
        for (let step = 0; step < 3; step++) await run(rig);
        // A Pod without a controller fits, and is adopted; then the template of the first version comes back.
        const [pod] = rig.all(PODS);
        const { ownerReferences: _, ...metadata } = (pod as KubeObject).metadata;
        await rig.put(PODS, { ...pod, metadata: { ...metadata, name: 'orphan', uid: 'orphan' } } as never);
        await edit(rig, {
          template: moduleDeployment({ version: '3.0.0', replicas: 1 }).spec.template,
          revisionHistoryLimit: 5,
        });
        for (let step = 0; step < 3; step++) await run(rig);
        await edit(rig, { rollbackTo: {} });
        for (let step = 0; step < 3; step++) await run(rig);
        await edit(rig, { peer: true, replicas: 1 });
      },
    },
    catalog: {
      env: FEED,
      run: async (rig) => {
        rig.answer(TOKEN_REVIEWS, { authenticated: true, user: { username: 'u' } });
        rig.answer(SUBJECT_ACCESS_REVIEWS, { allowed: true });
        await rig.askFeed('/resolve/default/shop.cart.http');
        await rig.put(MODULE_RELEASES, {
          metadata: { name: 'shop-cart', namespace: 'default' },
          spec: {
            releases: Array.from({ length: 49 }, (_, index) => ({
              id: `r${49 - index}`,
              image: 'https://jars.example.com/cart-1.0.0-ark-biz.jar',
            })),
          },
        } as never);
        const name = PLATFORM_CONFIG_NAME;
        await rig.put(PLATFORM_CONFIGS, { metadata: { name, namespace: 'default' }, spec: {} } as never);
        // One version more than the limit.
        for (let index = 0; index <= 48; index++) {
          const before = rig.all(MODULE_CONFIGS)[0]?.metadata;
          const metadata = { ...before, name: 'db', namespace: 'default', generation: index + 1 };
          const target = { kind: 'Module', app: 'shop', name: 'cart' };
          const spec = { target, file: 'application.yaml', format: 'yaml', content: `n: ${index}` };
          await rig.put(MODULE_CONFIGS, { ...rig.all(MODULE_CONFIGS)[0], metadata, spec } as never);
        }
        for (const workload of WORKLOADS) {
          const ports = [{ name: 'http', port: 8080 }];
          const spec = { app: 'shop', module: 'cart', base: { name: 'base' }, ports, deploy: { workload } };
          const module = { metadata: { name: 'shop-cart', namespace: 'default', generation: 1 }, spec };
          await rig.put(MODULES, { ...module, spec: { ...spec, release: { id: 'r1' } } } as never);
          const next = { ...rig.all(MODULES)[0], spec: { ...spec, ports: [] } } as KubeObject;
          await rig.put(MODULES, { ...next, metadata: { ...next.metadata, generation: 2 } });
          await rig.remove(MODULES, 'shop-cart');
        }
        // A Pod goes, and nobody has deleted the record of the former Module.
        for (const [index, name] of ['a', 'b'].entries()) {
          const own = { app: 'shop', module: 'cart', base: { name: 'base' } };
          await rig.put(MODULES, { metadata: { name: 'shop-cart', namespace: 'default' }, spec: own } as never);
          const labels = {
            'virtual-kubelet.koupleless.io/component': 'module',
            'platform.koupleless.io/app': 'shop',
            'module.koupleless.io/name': 'cart',
          };
          const pod = { metadata: { name, namespace: 'default', labels }, spec: { containers: [] } };
          await rig.put(PODS, pod as never);
          await rig.remove(PODS, name);
          if (index === 0) await rig.remove(MODULES, 'shop-cart');
        }
        const spec = { app: 'shop', module: 'cart', base: { name: 'base' }, rollbackTo: {} };
        const metadata = { name: 'shop-cart', namespace: 'default', generation: 1 };
        await rig.put(MODULES, { metadata, spec } as never);
      },
    },
    export: {
      env: FEED,
      run: async (rig) => {
        const service = {
          metadata: { name: 'shop', namespace: 'default', labels: { BCSGROUP: 'external' } },
          spec: { selector: { app: 'shop' }, ports: [{ name: 'tcp', port: 28_800, targetPort: 8080 }] },
        };
        await rig.put(SERVICES, service as never);
        // Somebody removes the owner reference.
        const [stored] = rig.all(EXPORT_SERVICES);
        const { ownerReferences: _, ...metadata } = (stored as KubeObject).metadata;
        await rig.put(EXPORT_SERVICES, { ...stored, metadata } as never);
        await rig.remove(SERVICES, 'shop');
        rig.answer(TOKEN_REVIEWS, { authenticated: true, user: { username: 'u' } });
        rig.answer(SUBJECT_ACCESS_REVIEWS, { allowed: true });
        await rig.askFeed('/v1/exportservices?group=external');
      },
    },
    admission: {
      env: { WEBHOOK_PORT: '0' },
      run: async (rig) => {
        const [mutating, validating, secrets] = [
          'mutatingwebhookconfigurations',
          'validatingwebhookconfigurations',
          'secrets',
        ].map(
          (plural) => definitionOf('admission').access.find(({ kind }) => kind.plural === plural)?.kind as ResourceKind,
        );
        if (!mutating || !validating || !secrets) throw new Error('not declared');
        await rig.put(secrets, { metadata: { name: 'module-platform-webhook', namespace: 'koupleless-system' } });
        for (const kind of [mutating, validating]) {
          const webhooks = [{ name: 'pods.platform.koupleless.io', clientConfig: {} }];
          await rig.put(kind, { metadata: { name: 'module-platform' }, webhooks } as never);
        }
        await rig.untilUsed(`${resourceOf({ kind: validating })} patch`);
      },
    },
  };

describe.each(PLATFORM.map(({ name }) => name))('the controller %s', (name) => {
  it('does with the API what its definition declares, and nothing else', async () => {
    const scenario = SCENARIOS[name];
    expect(scenario, `a scenario of ${name} in this file`).toBeDefined();
    const definition = definitionOf(name);
    const rig = new PlatformRig(definition, KNOWN, scenario?.env);
    await rig.start();
    try {
      await scenario?.run(rig);
      await rig.rest();
    } finally {
      await rig.stop();
    }
    expect([...rig.used].sort()).toEqual([...declaredUses(definition)].sort());
    // Reviews store nothing.
    const unpermitted = [...rig.unpermitted].filter((use) => !use.includes('reviews create'));
    expect(definition.leads ? unpermitted : []).toEqual([]);
    expect(rig.leads).toBe(definition.leads ?? false);
    expect(rig.missingWebhooks()).toEqual([]);
    const declared = (definition.events ?? []).flatMap(({ about, type, reasons }) =>
      reasons.map((reason) => `${about} ${type} ${reason}`),
    );
    expect(rig.events.filter((event) => !declared.includes(event))).toEqual([]);
  });

  it('declares the variables and metrics that only its folder names', () => {
    const { variables = [], metrics = [] } = definitionOf(name);
    const folder = `src/platform/${name}`;
    const files = sourceFilesOf('src', 'tunnels');
    const inFolder = (path: string): boolean => path.startsWith(`${folder}/`);
    const usesOf = (metric: string): string[] =>
      files
        .filter(({ path }) => path !== 'src/metrics.ts' && !path.includes('-definition'))
        .filter(({ code }) => new RegExp(`\\b(metrics\\??|this\\.#options\\.metrics)\\.${metric}\\b`).test(code))
        .map(({ path }) => path);
    expect(metrics.filter((metric) => !usesOf(metric).some(inFolder))).toEqual([]);
    expect(metrics.filter((metric) => usesOf(metric).some((path) => !inFolder(path)))).toEqual([]);
    const own = [...readText('src/metrics.ts').matchAll(/^ {4}(\w+): (?:counter|gauge|histogram)\(/gm)]
      .map(([, metric = '']) => metric)
      .filter((metric) => usesOf(metric).length > 0 && usesOf(metric).every(inFolder));
    expect([...metrics].sort()).toEqual(own.sort());
    expect([...variables].sort()).toEqual((CONFIG_OF[name] ?? []).flatMap(variablesReadBy).sort());
  });
});

/** The functions of src/config/config.ts that read the variables of a controller. */
const CONFIG_OF: Readonly<Record<string, readonly string[]>> = {
  export: ['exportOf', 'feedOf'],
  catalog: ['feedOf'],
  admission: ['webhookOf'],
};

/** Variables that a function names, without those that every Pod has. */
function variablesReadBy(name: string): string[] {
  const [, body = ''] =
    new RegExp(`^function ${name}\\([\\s\\S]*?\\{\n([\\s\\S]*?)^\\}`, 'm').exec(readText('src/config/config.ts')) ?? [];
  const known = Object.keys(VARIABLES).filter((word) => !word.startsWith('POD_'));
  return [...new Set(body.match(/\b[A-Z][A-Z_]+\b/g) ?? [])].filter((word) => known.includes(word)).sort();
}

describe('definitions', () => {
  it('install each kind of the platform that they read or write', () => {
    const installed = DEFINITIONS.flatMap(({ crds = [] }) => crds.map(({ crd }) => crd.spec.names.plural));
    const used = DEFINITIONS.flatMap(({ access }) => access)
      .filter(({ kind }) => kind.group === PLATFORM_GROUP)
      // The manifests install it: policies of the API server need it first.
      .filter(({ kind }) => kind.plural !== MODULE_TENANCIES.plural)
      .map(({ kind }) => kind.plural);
    expect([...new Set(used)].sort()).toEqual(installed.sort());
  });

  it('reach Secrets, ConfigMaps and Leases in one namespace only, or where a namespace has opted in', () => {
    const wide = DEFINITIONS.flatMap(accessOf).filter(
      ({ kind, namespace, optInRole }) =>
        ['secrets', 'configmaps', 'leases'].includes(kind.plural) && namespace === undefined && optInRole === undefined,
    );
    expect(wide).toEqual([]);
    const secrets = DEFINITIONS.flatMap(accessOf).filter(({ kind }) => kind.plural === 'secrets');
    expect(secrets.map(({ names }) => names)).toEqual([['module-platform-webhook']]);
  });

  it('are all in the registry', () => {
    const rooms = sourceFilesOf('src/platform')
      .filter(({ code }) => /: ControllerDefinition(<\w+>)? = \{/.test(code))
      .map(({ path }) => path.split('/')[2]);
    expect(rooms.sort()).toEqual(PLATFORM.map(({ name }) => name).sort());
  });

  it('have CRDs that the guide of the removal names', () => {
    const guide = readText('docs/guides.md');
    const names = DEFINITIONS.flatMap(({ crds = [] }) => crds.map(({ crd }) => crd.metadata.name));
    expect(names.filter((name) => !guide.includes(name))).toEqual([]);
  });

  it('declare no right twice, and no verb twice', () => {
    for (const definition of DEFINITIONS) {
      const rights = accessOf(definition).map(
        (access) => `${resourceOf(access)} ${access.namespace ?? ''} ${access.names ?? ''} ${access.optInRole ?? ''}`,
      );
      expect([definition.name, rights.length]).toEqual([definition.name, new Set(rights).size]);
      for (const { verbs } of definition.access) expect(new Set(verbs).size).toBe(verbs.length);
    }
  });

  it.each([
    ['/api/v1/pods', true],
    ['/api/v1/namespaces/a/pods', true],
    ['/apis/apps/v1/pods', false],
    ['/api/v1/nodes', false],
    ['/api/v1/pods/x/status', false],
  ])('know the kind of the path %s: %s', (path, isPods) => {
    expect(isCollectionOf(PODS, path)).toBe(isPods);
  });

  it('are loaded only when they are on: none imports another room of the platform', () => {
    const imports = sourceFilesOf('src/platform').flatMap(({ path, imports: all }) =>
      all.filter(({ target }) => target.startsWith('src/platform/')).map(({ target }) => [path, target] as const),
    );
    const roomOf = (path: string): string => path.split('/').slice(0, 3).join('/');
    expect(imports.filter(([from, to]) => roomOf(from) !== roomOf(to))).toEqual([]);
  });
});
