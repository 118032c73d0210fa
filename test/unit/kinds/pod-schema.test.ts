import { describe, expect, it } from 'vitest';
import { KUBERNETES_VERSION } from '../../../samples/control-plane/versions.ts';
import { podSchemaOf, type Structural, withFields } from '../../../src/kinds/pod-schema.ts';
import { podTypeOf } from '../../../src/kinds/pod-types.ts';
import { MODULE_DEPLOYMENT_CRD } from '../../../src/platform/rollout/module-deployment.ts';
import { podTypesOf } from '../../manifests/pod-types.ts';
import { readText } from '../docs/sources.ts';

function fieldOf(type: string, field: string): Structural | undefined {
  return podSchemaOf(type).properties?.[field];
}

describe('the schema of a Pod template', () => {
  it('has a type for each value', () => {
    expect(fieldOf('Toleration', 'tolerationSeconds')).toEqual({ type: 'integer', format: 'int64' });
    expect(fieldOf('PodSpec', 'hostNetwork')).toEqual({ type: 'boolean' });
    expect(fieldOf('PodSpec', 'nodeSelector')).toEqual({ type: 'object', additionalProperties: { type: 'string' } });
    expect(fieldOf('HTTPGetAction', 'port')).toEqual({ 'x-kubernetes-int-or-string': true });
    expect(fieldOf('Toleration', 'effect')).toMatchObject({
      enum: ['', 'NoSchedule', 'PreferNoSchedule', 'NoExecute'],
    });
  });

  it('tells items of a list apart where each has the key, for server-side apply', () => {
    expect(fieldOf('Container', 'env')).toMatchObject({
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
    });
    for (const [type, field] of [
      ['Container', 'ports'],
      ['PodSpec', 'tolerations'],
      ['PodSpec', 'imagePullSecrets'],
    ] as const)
      expect(fieldOf(type, field)).not.toHaveProperty('x-kubernetes-list-type');
    expect(podSchemaOf('LabelSelector')['x-kubernetes-map-type']).toBe('atomic');
  });

  it('has quantities in every form', () => {
    const { pattern, type } = (fieldOf('ResourceRequirements', 'limits')?.additionalProperties ?? {}) as Structural;
    expect(type).toBeUndefined();
    const isQuantity = (text: string): boolean => new RegExp(String(pattern)).test(text);
    expect(['1', '0.5', '.5', '500m', '1Gi', '1e3', '-1'].filter((text) => !isQuantity(text))).toEqual([]);
    expect(['', '1 GB', '1gb', 'x'].filter(isQuantity)).toEqual([]);
  });

  it('adds no default, so that no template changes by itself', () => {
    const [version] = MODULE_DEPLOYMENT_CRD.spec.versions;
    expect(JSON.stringify(podSchemaOf('PodSpec'))).not.toContain('"default"');
    expect(JSON.stringify(version).match(/"default":/g)).toHaveLength(1);
  });

  it('is small enough for a CRD', () => {
    expect(JSON.stringify(MODULE_DEPLOYMENT_CRD).length).toBeLessThan(100_000);
  });

  it('can have other rules for a field, which then comes first', () => {
    const changed = withFields(podSchemaOf('Toleration'), { value: { type: 'string', maxLength: 3 } });
    expect(Object.keys(changed.properties ?? {})[0]).toBe('value');
    expect(Object.keys(changed.properties ?? {}).sort()).toEqual(
      Object.keys(podSchemaOf('Toleration').properties ?? {}).sort(),
    );
    expect(changed.properties?.value).toEqual({ type: 'string', maxLength: 3 });
    expect(fieldOf('Toleration', 'value')).toEqual({ type: 'string' });
  });

  it('is that of the Kubernetes that the pages name', () => {
    const version = /^v(\d+\.\d+)/.exec(KUBERNETES_VERSION)?.[1];
    expect(readText('docs/module-deployments.md')).toContain(`has the fields of a Pod of Kubernetes ${version}`);
    expect(readText('docs/limits.md')).toContain(`has the fields of a Pod template that Kubernetes ${version} has`);
  });

  it('has no type that a Pod does not have', () => {
    expect(() => podTypeOf('Deployment')).toThrow('a Pod has no type Deployment');
  });
});

describe('the types of a Pod', () => {
  const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` });
  const documentOf = (schemas: object) => ({ components: { schemas } }) as never;
  const ROOT = 'io.k8s.api.core.v1.PodSpec';

  it('are read from the document of an API server', () => {
    const types = podTypesOf(
      documentOf({
        [ROOT]: {
          required: ['containers'],
          properties: {
            containers: {
              type: 'array',
              items: { allOf: [reference('io.k8s.api.core.v1.Container')], default: {} },
              'x-kubernetes-list-type': 'map',
              'x-kubernetes-list-map-keys': ['name'],
            },
            nodeSelector: {
              type: 'object',
              additionalProperties: { type: 'string' },
              'x-kubernetes-map-type': 'atomic',
            },
            priority: { type: 'integer', format: 'int32' },
          },
        },
        'io.k8s.api.core.v1.Container': {
          'x-kubernetes-map-type': 'atomic',
          properties: {
            size: reference('io.k8s.apimachinery.pkg.api.resource.Quantity'),
            args: { type: 'array', items: { type: 'string' } },
            inner: reference('io.k8s.api.core.v1.Container'),
          },
        },
        'io.k8s.api.core.v1.NotOfPods': { properties: {} },
      }),
    );
    expect(types).toEqual({
      Container: { '@': 'atomic', size: 'quantity', args: 'string[]', inner: 'Container' },
      PodSpec: { containers: 'Container[name]!', nodeSelector: 'map<string>', priority: 'int32' },
    });
  });

  it('are not read where a form is unknown, or two types have one name', () => {
    expect(() => podTypesOf(documentOf({ [ROOT]: { properties: { size: { type: 'number' } } } }))).toThrow(
      'PodSpec.size has the type number, which has no form here',
    );
    const properties = { a: reference('a.Term'), b: reference('b.Term') };
    expect(() => podTypesOf(documentOf({ [ROOT]: { properties }, 'a.Term': {}, 'b.Term': {} }))).toThrow(
      'a.Term and b.Term have one short name',
    );
  });
});
