import { describe, expect, it } from 'vitest';
import {
  type CachedModuleDeployment,
  projectModuleDeployment,
} from '../../../../src/platform/rollout/module-deployment.ts';
import { buildPod, podFaultOf } from '../../../../src/platform/rollout/rollout-pod.ts';
import { moduleDeployment } from '../../../support/rollouts.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of older schemas
function cached(change: (spec: any) => void = () => {}): CachedModuleDeployment {
  const object = structuredClone(moduleDeployment());
  change(object.spec);
  const metadata = { ...object.metadata, uid: 'uid', resourceVersion: '1' };
  return projectModuleDeployment({ ...object, metadata } as never);
}

function faultOf(deployment: CachedModuleDeployment): string | undefined {
  return podFaultOf(deployment, { hash: 'abc', template: deployment.spec.template });
}

describe('no Pod may be created', () => {
  it('that its own selector would not match, since its label is that of the template', () => {
    const mine = cached(({ selector, template }) => {
      for (const labels of [selector.matchLabels, template.metadata.labels])
        labels['controller-revision-hash'] = 'mine';
    });
    expect(faultOf(mine)).toBe(
      'spec.selector.matchLabels: controller-revision-hash is mine, and its Pods have abc: create another ModuleDeployment without it',
    );
    expect(podFaultOf(mine, { hash: 'mine', template: mine.spec.template })).toBeUndefined();
  });

  it('whose template lacks a label of the selector', () => {
    const other = cached(({ selector }) => {
      selector.matchLabels.tier = 'web';
    });
    expect(faultOf(other)).toBe(
      'spec.selector.matchLabels: tier is web, and its Pods have no such label: create another ModuleDeployment without it',
    );
  });

  it.each([
    ['tolerations', 'abc', 'spec.template.spec.tolerations: must be a list'],
    ['tolerations', [null], 'spec.template.spec.tolerations[0]: must be an object'],
    ['affinity', 'x', 'spec.template.spec.affinity: must be an object'],
  ])('from a template with %s: %j', (field, value, fault) => {
    expect(faultOf(cached(({ template }) => Object.assign(template.spec, { [field]: value })))).toBe(fault);
  });

  it.each([
    ['labels', 'abc', 'spec.template.metadata.labels: must be an object'],
    ['annotations', { a: 1 }, 'spec.template.metadata.annotations["a"]: must be a text'],
  ])('from a template whose metadata has %s: %j', (field, value, fault) => {
    expect(faultOf(cached(({ template }) => Object.assign(template.metadata, { [field]: value })))).toBe(fault);
  });
});

it('a Pod is created from a template with its own label of that name, which the controller overwrites', () => {
  const deployment = cached(({ template }) => {
    template.metadata.labels['controller-revision-hash'] = 'mine';
  });
  const { template } = deployment.spec;
  expect(faultOf(deployment)).toBeUndefined();
  const pod = buildPod(deployment, { name: 'shop-1', hash: 'abc', template, replaces: undefined });
  expect(pod.metadata.labels).toMatchObject({ app: 'shop', 'controller-revision-hash': 'abc' });
});

it('a Pod is created from a template with fields that are null, as if they were not there', () => {
  const deployment = cached(({ template }) => Object.assign(template.spec, { tolerations: null, affinity: null }));
  expect(faultOf(deployment)).toBeUndefined();
  expect(deployment.spec.template.spec).not.toHaveProperty('tolerations');
});
