import { describe, expect, it } from 'vitest';
import { completePod } from '../../../../src/kinds/pod-defaults.ts';
import type { PodObject } from '../../../../src/kube/objects.ts';
import {
  type ComposedRelease,
  type Composition,
  compose,
  composeService,
  replicaFaultsOf,
  replicasOf,
} from '../../../../src/platform/catalog/compose/compose.ts';
import { type ModuleSpec, WORKLOADS } from '../../../../src/platform/catalog/module/module.ts';

const RELEASE: ComposedRelease = { id: 'r1', image: 'https://jars.example.com/cart-1.0.0-ark-biz.jar' };
const SPEC: ModuleSpec = {
  app: 'Shop',
  module: 'cart',
  base: { name: 'base' },
  ports: [{ name: 'http', port: 8080, appProtocol: 'http' }],
  args: ['--color=blue'],
};

interface Pod {
  metadata: { labels: Record<string, string>; annotations?: Record<string, string> };
  spec: PodObject['spec'];
}

function moduleOf(spec: Partial<ModuleSpec> = {}, annotations: Record<string, string> = {}) {
  return { namespace: 'team-a', name: 'shop-cart', uid: 'u1', annotations, spec: { ...SPEC, ...spec } };
}

function composed(spec: Partial<ModuleSpec> = {}, release = RELEASE): Composition {
  const result = compose({ module: moduleOf(spec), release, env: 'prod' });
  if ('fault' in result) throw new Error(result.fault);
  return result;
}

function faultOf(spec: Partial<ModuleSpec>, release = RELEASE): string | undefined {
  const result = compose({ module: moduleOf(spec), release, env: 'prod' });
  return 'fault' in result ? result.fault : undefined;
}

function podOf({ workload }: Composition): Pod {
  return workload.spec.template as Pod;
}

function requiredOf(composition: Composition): unknown {
  const { affinity } = podOf(composition).spec;
  return affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
}

describe('the workload of a Module', () => {
  it('is a ModuleDeployment of its name, which the Module owns', () => {
    const { workload, version } = composed({ deploy: { replicas: 3 } });
    expect(workload).toMatchObject({
      apiVersion: 'platform.koupleless.io/v1alpha1',
      kind: 'ModuleDeployment',
      metadata: {
        namespace: 'team-a',
        name: 'shop-cart',
        ownerReferences: [{ kind: 'Module', name: 'shop-cart', uid: 'u1', controller: true }],
      },
      spec: {
        replicas: 3,
        selector: { matchLabels: { 'platform.koupleless.io/app': 'Shop', 'module.koupleless.io/name': 'cart' } },
      },
    });
    expect(version).toBe('1.0.0');
  });

  it('has one container with the jar, its version, its arguments and its ports', () => {
    const [container, ...others] = podOf(composed()).spec.containers;
    expect(others).toEqual([]);
    expect(container).toEqual({
      name: 'cart',
      image: RELEASE.image,
      args: ['--color=blue'],
      env: [{ name: 'BIZ_VERSION', value: '1.0.0' }],
      ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' }],
    });
  });

  it.each(WORKLOADS)(
    'as a %s has Pods that its selector matches, and that no webhook completes further',
    (workload) => {
      const composition = composed({ deploy: { workload } });
      const { selector } = composition.workload.spec as { selector: { matchLabels: object } };
      const pod = podOf(composition);
      expect(pod.metadata.labels).toMatchObject(selector.matchLabels);
      const owner = { apiVersion: 'apps/v1', kind: workload, name: 'shop-cart', uid: 'u', controller: true };
      const withOwner = { ...pod, metadata: { ...pod.metadata, ownerReferences: [owner] } };
      expect(completePod(withOwner, 'prod')).toEqual(withOwner);
    },
  );

  it('is the same bytes for the same input, and has another digest for another', () => {
    expect(JSON.stringify(composed())).toBe(JSON.stringify(composed()));
    const digestOf = ({ workload }: Composition): unknown => workload.metadata.annotations;
    expect(digestOf(composed({ args: [] }))).not.toEqual(digestOf(composed()));
  });

  it('runs on bases of the name, of a version that Module and release fit, and of the cluster', () => {
    const base = { name: 'base', versions: ['1', '2'], clusterName: 'east', env: 'dev' };
    const composition = composed({ base }, { ...RELEASE, baseVersions: ['2', '3'] });
    expect(requiredOf(composition)).toEqual([
      {
        matchExpressions: [
          { key: 'vnode.koupleless.io/name', operator: 'In', values: ['base'] },
          { key: 'vnode.koupleless.io/version', operator: 'In', values: ['2'] },
          { key: 'base.koupleless.io/cluster-name', operator: 'In', values: ['east'] },
        ],
      },
    ]);
    const { labels } = podOf(composition).metadata;
    expect(labels['virtual-kubelet.koupleless.io/env']).toBe('dev');
    expect(podOf(composition).spec.tolerations?.map(({ value }) => value)).toEqual(['True', 'dev']);
  });

  it('asks for Nodes that are given to the application or to the module', () => {
    const label = 'platform.koupleless.io/ability.team-a.Shop';
    const keysOf = (ability: NonNullable<ModuleSpec['base']['ability']>): string =>
      JSON.stringify(podOf(composed({ base: { name: 'base', ability } })).spec.affinity?.nodeAffinity);
    expect(keysOf('AppRequired')).toContain(`{"key":"${label}","operator":"Exists"}`);
    expect(keysOf('ModuleRequired')).toContain(`{"key":"${label}-cart","operator":"Exists"}`);
    expect(keysOf('AppOrModulePreferred')).toMatch(/"weight":60.*Shop-cart.*"weight":30.*Shop"/);
    expect(keysOf('None')).not.toContain('ability');
  });

  it('keeps two copies of a version off one base, unless they may share it', () => {
    const apart = (deploy: NonNullable<ModuleSpec['deploy']>) =>
      podOf(composed({ deploy })).spec.affinity?.podAntiAffinity;
    expect(apart({})?.requiredDuringSchedulingIgnoredDuringExecution).toHaveLength(1);
    expect(apart({ notStacked: false })).toEqual({});
    expect(apart({ workload: 'DaemonSet' })).toEqual({});
  });

  it('with peer leaves the number of copies to the bases', () => {
    const { spec } = composed({ deploy: { peer: true, replicas: 4 } }).workload;
    expect([spec.peer, spec.replicas]).toEqual([true, undefined]);
  });

  it('as a Deployment never waits for a place that does not come', () => {
    const strategyOf = (deploy: NonNullable<ModuleSpec['deploy']>): unknown =>
      composed({ deploy }).workload.spec.strategy;
    const inPlace = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } };
    expect(strategyOf({ workload: 'Deployment' })).toEqual(inPlace);
    expect(strategyOf({ workload: 'Deployment', strategy: { type: 'Recreate' } })).toEqual({
      type: 'Recreate',
      rollingUpdate: null,
    });
  });

  it.each<[string, Partial<ModuleSpec>, ComposedRelease]>([
    [
      'release.version: the name of the jar does not say',
      {},
      { id: 'r1', image: 'https://jars.example.com/latest.jar' },
    ],
    ['base.versions: none of them', { base: { name: 'b', versions: ['1'] } }, { ...RELEASE, baseVersions: ['2'] }],
    ['base.ability: the label', { app: 'A'.repeat(60), base: { name: 'b', ability: 'AppRequired' } }, RELEASE],
  ])('is not composed: %s', (fault, spec, release) => {
    expect(faultOf(spec, release)).toContain(fault);
  });
});

describe('the Service of a Module', () => {
  it('is headless, and finds its Pods', () => {
    expect(composeService(moduleOf())?.spec).toEqual({
      clusterIP: 'None',
      selector: { 'platform.koupleless.io/app': 'Shop', 'module.koupleless.io/name': 'cart' },
      ports: [{ name: 'http', port: 8080, targetPort: 8080, protocol: 'TCP', appProtocol: 'http' }],
    });
  });

  it('is not there without ports', () => {
    expect(composeService(moduleOf({ ports: [] }))).toBeUndefined();
  });
});

describe('the number of copies', () => {
  it.each([
    [undefined, {}, 1],
    [5, {}, 5],
    [5, { 'platform.koupleless.io/max-replicas': '3' }, 3],
    [0, { 'platform.koupleless.io/min-replicas': '2' }, 2],
    [1, { 'platform.koupleless.io/min-replicas': '4', 'platform.koupleless.io/max-replicas': '3' }, 3],
    [5, { 'platform.koupleless.io/max-replicas': 'many' }, 5],
  ])('of %s with %j is %i', (replicas, annotations, wanted) => {
    const deploy = replicas === undefined ? {} : { replicas };
    expect(replicasOf(moduleOf({ deploy }, annotations))).toBe(wanted);
  });

  it('names the annotations that are no counts', () => {
    expect(replicaFaultsOf({ 'platform.koupleless.io/max-replicas': '-1' })).toEqual([
      'platform.koupleless.io/max-replicas',
    ]);
  });
});

describe('args beside configuration over HTTP', () => {
  it.each([
    ['--spring.config.import=file:x', true],
    ['--spring.config.import[0]=file:x', true],
    ['--spring.cloud.config.name=x', true],
    ['--spring.cloud.config.label=x', true],
    ['--spring.cloud.config.profile=blue', false],
    ['--spring.config.important=x', false],
    ['spring.config.import=x', false],
  ])('%s would read another one: %s', (arg, isRefused) => {
    const faultOf = (as?: 'Http') =>
      compose({
        module: {
          namespace: 't1',
          name: 'shop-cart',
          uid: 'u',
          annotations: {},
          spec: { app: 'Shop', module: 'cart', base: { name: 'base' }, args: [arg] },
        },
        release: {
          id: 'r1',
          image: 'https://jars.example.com/cart-1.0.0-ark-biz.jar',
          configs: [{ name: 'db', version: 'v1', ...(as && { as }) }],
        },
        env: 'dev',
      });
    const fault = { fault: `args: ${arg.split('=')[0]} would replace what \`as: Http\` reads` };
    if (isRefused) expect(faultOf('Http')).toEqual(fault);
    else expect(faultOf('Http')).not.toHaveProperty('fault');
    expect(faultOf()).not.toHaveProperty('fault');
  });
});
