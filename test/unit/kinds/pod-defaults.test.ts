import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { completePlacement, completePod, type PodTemplate, versionOf } from '../../../src/kinds/pod-defaults.ts';
import type { PodObject } from '../../../src/kube/objects.ts';

type Spec = PodObject['spec'];

const OF_BASES = { key: 'schedule.koupleless.io/virtual-node', operator: 'Equal', value: 'True', effect: 'NoExecute' };
const OF_DEV = { key: 'schedule.koupleless.io/node-env', operator: 'Equal', value: 'dev', effect: 'NoExecute' };

function pod(spec: Partial<Spec> = {}, metadata: PodTemplate['metadata'] = {}): PodTemplate {
  return { metadata, spec: { containers: [container('shop', 'shop-1.0.0-ark-biz.jar')], ...spec } };
}

function container(name: string, file: string) {
  return { name, image: `https://jars.example.com/${file}` };
}

function terms(completed: PodTemplate) {
  return completed.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
}

describe('the version of a module', () => {
  const of = (file: string, labels: Record<string, string> = {}, isOnly = true) =>
    versionOf(container('shop', file), labels, isOnly);
  const LABEL = 'module.koupleless.io/version';

  it.each([
    ['shop-1.0.0-ark-biz.jar', '1.0.0'],
    ['shop-1.0.0.jar', '1.0.0'],
    ['team/shop-2.1.0-SNAPSHOT-ark-biz.jar?sign=a/b-3.jar#x', '2.1.0-SNAPSHOT'],
    ['shop-web-1.0.0-ark-biz.jar', undefined],
    ['shop.jar', undefined],
    ['shop-latest.jar', undefined],
    ['other-1.0.0-ark-biz.jar', undefined],
    ['shop-1.0.0-20260101.101010-1-ark-biz.jar', undefined],
  ])('of %s is %s', (file, version) => {
    expect(of(file)).toBe(version);
  });

  it('is what BIZ_VERSION says, the last one of two', () => {
    const env = [
      { name: 'BIZ_VERSION', value: '1' },
      { name: 'BIZ_VERSION', value: '2' },
    ];
    expect(versionOf({ ...container('shop', 'shop-3.jar'), env }, { [LABEL]: '4' }, true)).toBe('2');
    const later = [{ name: 'BIZ_VERSION', valueFrom: {} }];
    expect(versionOf({ ...container('shop', 'shop-3.jar'), env: later }, {}, true)).toBeUndefined();
  });

  it('is that of the label only where the Pod has one module and the jar does not say another', () => {
    expect(of('latest.jar', { [LABEL]: '4' })).toBe('4');
    expect(of('shop-4.jar', { [LABEL]: '4' })).toBe('4');
    expect(of('shop-3.jar', { [LABEL]: '4' })).toBeUndefined();
    expect(of('latest.jar', { [LABEL]: '4' }, false)).toBeUndefined();
    expect(of('shop-3.jar', { [LABEL]: '4' }, false)).toBe('3');
  });
});

describe('a Pod of a module', () => {
  it('gets all that its author left out', () => {
    const completed = completePod(pod({}, { annotations: { 'platform.koupleless.io/base-name': 'base' } }), 'dev');
    const labels = { 'module.koupleless.io/name': 'shop', 'module.koupleless.io/version': '1.0.0' };
    expect(completed.metadata.labels).toEqual(labels);
    expect(completed.spec.tolerations).toEqual(
      [OF_BASES, OF_DEV].map(({ operator, ...taint }) => ({ ...taint, operator })),
    );
    expect(completed.spec.containers[0]?.env).toEqual([{ name: 'BIZ_VERSION', value: '1.0.0' }]);
    expect(terms(completed)).toEqual([
      { matchExpressions: [{ key: 'vnode.koupleless.io/name', operator: 'In', values: ['base'] }] },
    ]);
    expect(completed.spec.affinity?.podAntiAffinity).toEqual({
      requiredDuringSchedulingIgnoredDuringExecution: [
        { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: labels } },
      ],
    });
  });

  it('keeps what its author wrote', () => {
    const written = pod(
      {
        tolerations: [{ operator: 'Exists' }],
        nodeSelector: { 'vnode.koupleless.io/name': 'mine' },
        affinity: { podAntiAffinity: {} },
        containers: [{ ...container('shop', 'shop-1.0.0.jar'), env: [{ name: 'BIZ_VERSION', value: '9' }] }],
      },
      {
        labels: { 'module.koupleless.io/name': 'a', 'module.koupleless.io/version': 'b' },
        annotations: { 'platform.koupleless.io/base-name': 'base' },
      },
    );
    expect(completePod(written, 'dev')).toEqual(written);
  });

  it('gets the one toleration that is missing', () => {
    for (const [written, added] of [
      [OF_BASES, OF_DEV],
      [OF_DEV, OF_BASES],
    ] as const) {
      const { tolerations } = completePod(pod({ tolerations: [written] }), 'dev').spec;
      expect(tolerations).toEqual([written, added]);
    }
  });

  it('has the version of its label where its jar says none', () => {
    const labels = { 'module.koupleless.io/version': '4' };
    const { spec } = completePod(pod({ containers: [container('shop', 'latest.jar')] }, { labels }), 'dev');
    expect(spec.containers[0]?.env).toEqual([{ name: 'BIZ_VERSION', value: '4' }]);
  });

  it('tolerates the ENV of its label', () => {
    const { spec } = completePod(pod({}, { labels: { 'virtual-kubelet.koupleless.io/env': 'test' } }), 'dev');
    expect(spec.tolerations?.map(({ value }) => value)).toEqual(['True', 'test']);
  });

  const TOLERATES_PROD = { ...OF_DEV, value: 'prod' };
  const inEnvs = (...values: string[]) => ({
    matchExpressions: [{ key: 'virtual-kubelet.koupleless.io/env', operator: 'In', values }],
  });
  const required = (...nodeSelectorTerms: object[]) => ({
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
  });

  it.each<[string, Partial<Spec>, string[]]>([
    ['that it tolerates', { tolerations: [TOLERATES_PROD] }, ['prod']],
    ['whose NoSchedule it tolerates', { tolerations: [{ ...TOLERATES_PROD, effect: 'NoSchedule' }] }, ['prod', 'prod']],
    ['of its node selector', { nodeSelector: { 'virtual-kubelet.koupleless.io/env': 'prod' } }, ['prod']],
    ['of its node affinity', required(inEnvs('prod')) as Partial<Spec>, ['prod']],
    ['of all its terms', required(inEnvs('prod', 'test'), inEnvs('prod')) as Partial<Spec>, ['prod', 'test']],
    ['of the platform, where a term names none', required(inEnvs('prod'), {}) as Partial<Spec>, ['dev']],
  ])('has the ENV %s, and no other', (_, spec, envs) => {
    const { tolerations = [] } = completePod(pod(spec), 'dev').spec;
    expect(tolerations.filter(({ key }) => key === OF_DEV.key).map(({ value }) => value)).toEqual(envs);
  });

  it('gets none where it names ENVs that exclude each other, so that it is refused', () => {
    const labels = { 'virtual-kubelet.koupleless.io/env': 'test' };
    const { tolerations } = completePod(pod({ tolerations: [TOLERATES_PROD] }, { labels }), 'dev').spec;
    expect(tolerations).toEqual([TOLERATES_PROD, OF_BASES]);
  });

  it('has each of its terms on the base, but for those that name one', () => {
    const onNode = { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['vnode.a'] }] };
    const own = { matchExpressions: [{ key: 'vnode.koupleless.io/name', operator: 'Exists' }] };
    const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [onNode, own] } };
    const annotations = {
      'platform.koupleless.io/base-name': 'base',
      'platform.koupleless.io/base-version': '7.0.0',
    };
    const version = { key: 'vnode.koupleless.io/version', operator: 'In', values: ['7.0.0'] };
    expect(terms(completePod(pod({ affinity: { nodeAffinity } }, { annotations }), 'dev'))).toEqual([
      { ...onNode, matchExpressions: [{ key: 'vnode.koupleless.io/name', operator: 'In', values: ['base'] }, version] },
      { matchExpressions: [...own.matchExpressions, version] },
    ]);
  });

  it('with several modules gets a version for each, and nothing that is about one', () => {
    const several = pod({ containers: [container('a', 'a-1.jar'), container('b', 'b-2.jar')] });
    const { metadata, spec } = completePod(several, 'dev');
    expect(spec.containers.map(({ env }) => env?.[0]?.value)).toEqual(['1', '2']);
    expect([metadata.labels, spec.affinity]).toEqual([undefined, undefined]);
  });

  it('of a DaemonSet is on each base anyway', () => {
    const owner = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'd', uid: 'u', controller: true };
    expect(completePod(pod({}, { ownerReferences: [owner] }), 'dev').spec.affinity).toBeUndefined();
  });

  it('without a version that is known gets none, and shares a base with others', () => {
    const { metadata, spec } = completePod(pod({ containers: [container('shop', 'latest.jar')] }), 'dev');
    expect(metadata.labels).toEqual({ 'module.koupleless.io/name': 'shop' });
    expect([spec.containers[0]?.env, spec.affinity]).toEqual([undefined, undefined]);
  });

  it('is complete after once', () => {
    const text = fc.constantFrom('a', 'b-1', 'dev', '1.0.0');
    const some = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
    const random = fc.record({
      labels: some(
        fc.dictionary(fc.constantFrom('module.koupleless.io/version', 'virtual-kubelet.koupleless.io/env'), text),
      ),
      annotations: some(
        fc.dictionary(fc.constantFrom('platform.koupleless.io/base-name', 'platform.koupleless.io/base-version'), text),
      ),
      files: fc.array(fc.constantFrom('m-1.jar', 'm-1.0.0-ark-biz.jar', 'x.jar'), { minLength: 1, maxLength: 3 }),
      tolerations: some(fc.subarray([OF_BASES, OF_DEV, TOLERATES_PROD, { operator: 'Exists' }])),
      nodeSelector: some(
        fc.dictionary(fc.constantFrom('vnode.koupleless.io/name', 'virtual-kubelet.koupleless.io/env'), text),
      ),
    });
    fc.assert(
      fc.property(random, ({ labels, annotations, files, tolerations, nodeSelector }) => {
        const containers = files.map((file) => container('m', file));
        const spec = { containers, ...(tolerations && { tolerations }), ...(nodeSelector && { nodeSelector }) };
        const once = completePod(
          { metadata: { ...(labels && { labels }), ...(annotations && { annotations }) }, spec },
          'dev',
        );
        expect(completePod(once, 'dev')).toEqual(once);
        expect(completePlacement(once, 'dev')).toEqual(once);
      }),
    );
  });
});
