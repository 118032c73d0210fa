import { describe, expect, it } from 'vitest';
import { normalForm, typeFaultsOf, withoutNulls } from '../../../src/kinds/pod-form.ts';

const BARE = { containers: [{ name: 'shop', image: 'https://jars.example.com/shop-1.0.0.jar' }] };
const [CONTAINER] = BARE.containers;

function withContainer(fields: object): object {
  return { containers: [{ ...CONTAINER, ...fields }] };
}

describe('the normal form of a Pod template', () => {
  it.each([
    ['an empty list', withContainer({ args: [], env: [], ports: [] })],
    ['an empty map', { ...BARE, nodeSelector: {} }],
    ['null', { ...BARE, tolerations: null, affinity: null }],
    ['a field that a Pod does not have', { ...BARE, tolerationss: [{ key: 'a' }] }],
    ['the default of a Pod', { ...BARE, restartPolicy: 'Always', dnsPolicy: 'ClusterFirst', hostNetwork: false }],
    ['the default of a container', withContainer({ terminationMessagePolicy: 'File', resources: {} })],
    ['the empty security context that every Pod gets', { ...BARE, securityContext: {} }],
  ])('leaves out %s', (_what, spec) => {
    expect(normalForm('PodSpec', spec)).toEqual(BARE);
  });

  it.each([
    ['a variable', [{ name: 'A', value: '' }], [{ name: 'A' }]],
    [
      'a reference to a field of the Pod',
      [{ name: 'A', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'status.podIP' } } }],
      [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }],
    ],
  ])('leaves out the defaults of %s', (_what, env, normal) => {
    expect(normalForm('PodSpec', withContainer({ env }))).toEqual(withContainer({ env: normal }));
  });

  it('has numbers and texts of a quantity as one', () => {
    const of = (cpu: unknown) => normalForm('PodSpec', withContainer({ resources: { requests: { cpu } } }));
    expect(of(2)).toEqual(of('2'));
    expect(of(2)).not.toEqual(of('3'));
  });

  it.each([
    ['a volume', { ...BARE, volumes: [{ name: 'tmp', emptyDir: {} }] }],
    ['a selector of all Pods', { ...BARE, topologySpreadConstraints: [{ labelSelector: {} }] }],
    ['another policy', { ...BARE, restartPolicy: 'Never' }],
    ['a part of another type', { ...BARE, tolerations: 'abc', nodeSelector: ['x'] }],
    ['a null among others, which has a place', { ...BARE, tolerations: [null, { key: 'a' }] }],
    ['a value that is false where the default is true', { ...BARE, enableServiceLinks: false }],
  ])('keeps %s', (_what, spec) => {
    expect(normalForm('PodSpec', spec)).toEqual(spec);
  });
});

describe('a value without nulls', () => {
  it('has none of its fields that are null, but those of lists', () => {
    const value = { a: null, b: [{ c: null, d: 1 }, null], e: { f: null } };
    expect(withoutNulls(value)).toEqual({ b: [{ d: 1 }, null], e: {} });
  });

  it('is the same one where there are none', () => {
    const value = { a: [{ b: 'c' }], d: {} };
    expect(withoutNulls(value)).toBe(value);
  });
});

describe('the types of a Pod template', () => {
  it.each([
    ['a text for a list', { ...BARE, tolerations: 'abc' }, 'spec.tolerations: must be a list'],
    ['a list for an object', { ...BARE, affinity: [] }, 'spec.affinity: must be an object'],
    ['null in a list', { ...BARE, tolerations: [null] }, 'spec.tolerations[0]: must be an object'],
    ['an object for a list', withContainer({ env: {} }), 'spec.containers[0].env: must be a list'],
    [
      'a number for a text',
      withContainer({ env: [{ name: 'A', value: 1 }] }),
      'spec.containers[0].env[0].value: must be a text',
    ],
    ['a number in a map', { ...BARE, nodeSelector: { zone: 1 } }, 'spec.nodeSelector["zone"]: must be a text'],
    ['no name', { containers: [{}] }, 'spec.containers[0].name: is required'],
    ['a text for a number', { ...BARE, priority: '1' }, 'spec.priority: must be a whole number'],
    ['no object at all', 'abc', 'spec: must be an object'],
  ])('are not those of %s', (_what, spec, fault) => {
    expect(typeFaultsOf('PodSpec', spec, 'spec')).toEqual([fault]);
  });

  it('allow null for a field, fields that a Pod does not have, and every form of a quantity', () => {
    const resources = { requests: { cpu: 0.5, memory: '1Gi' }, limits: null };
    const livenessProbe = { httpGet: { port: 'http' }, periodSeconds: null };
    const spec = { ...withContainer({ resources, livenessProbe }), tolerations: null, tolerationss: 1 };
    expect(typeFaultsOf('PodSpec', spec, 'spec')).toEqual([]);
  });
});
