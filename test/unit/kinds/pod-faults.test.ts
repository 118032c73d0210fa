import { describe, expect, it } from 'vitest';
import { annotationFaultsOf, isQualifiedName, labelFaultsOf } from '../../../src/kinds/label-syntax.ts';
import { type CheckedPodSpec, podSpecFaultsOf } from '../../../src/kinds/pod-faults.ts';

const CONTAINER = { name: 'shop', image: 'https://jars.example.com/shop-1.0.0.jar' };

function faultsOf(spec: object): string[] {
  return podSpecFaultsOf({ containers: [CONTAINER], ...spec } as unknown as CheckedPodSpec, 'spec');
}

function ofContainer(fields: object): string[] {
  return faultsOf({ containers: [{ ...CONTAINER, ...fields }] });
}

function ofTerm(term: object): string[] {
  return faultsOf({
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } } },
  });
}

function ofSpread(term: object): string[] {
  return faultsOf({
    affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } },
  });
}

describe('a template is at fault', () => {
  it.each([
    [faultsOf({ containers: [CONTAINER, CONTAINER] }), 'spec.containers: there are several containers "shop"'],
    [faultsOf({ initContainers: [CONTAINER] }), 'spec.containers: there are several containers "shop"'],
    [faultsOf({ ephemeralContainers: [{}] }), 'spec.ephemeralContainers: cannot be in a template'],
    [faultsOf({ activeDeadlineSeconds: 5 }), 'spec.activeDeadlineSeconds: cannot be in a template'],
    [faultsOf({ nodeName: 'Base 1' }), 'spec.nodeName: "Base 1" cannot be a name'],
    [faultsOf({ nodeSelector: { zone: 'a b' } }), 'spec.nodeSelector["zone"]: "a b" cannot be the value of a label'],
    [
      faultsOf({ readinessGates: [{ conditionType: 'a b' }] }),
      'spec.readinessGates: "a b" cannot be the type of a condition',
    ],
    [faultsOf({ volumes: [{ name: 'a', emptyDir: {}, hostPath: {} }] }), 'spec.volumes[0]: has several sources'],
    [faultsOf({ volumes: [{ name: 'A' }] }), 'spec.volumes[0].name: "A" cannot be the name of a volume'],
  ])('for its Pods: %j', (faults, fault) => {
    expect(faults).toEqual([fault]);
  });

  it.each([
    [ofContainer({ name: 'Shop' }), 'spec.containers[0].name: "Shop" cannot be the name of a container'],
    [ofContainer({ image: ' x.jar' }), 'spec.containers[0].image: begins or ends with a space'],
    [ofContainer({ env: [{ name: '' }] }), 'spec.containers[0].env[0].name: "" cannot be the name of a variable'],
    [ofContainer({ env: [{ name: 'A=B' }] }), 'spec.containers[0].env[0].name: "A=B" cannot be the name of a variable'],
    [
      ofContainer({ env: [{ name: 'A', value: 'x', valueFrom: { fieldRef: {} } }] }),
      'spec.containers[0].env[0].valueFrom: cannot stand beside a value',
    ],
    [
      ofContainer({ env: [{ name: 'A', valueFrom: {} }] }),
      'spec.containers[0].env[0].valueFrom: needs exactly one source',
    ],
    [ofContainer({ ports: [{ containerPort: 1, name: 'a--b' }] }), 'spec.containers[0].ports: "a--b" cannot be a name'],
    [
      ofContainer({ ports: ['http', 'http'].map((name, index) => ({ containerPort: index + 1, name })) }),
      'spec.containers[0].ports: there are several ports "http"',
    ],
    [
      ofContainer({ volumeMounts: [{ name: 'data', mountPath: '/' }] }),
      'spec.containers[0].volumeMounts: there is no volume "data"',
    ],
    [
      ofContainer({ resources: { requests: { memory: '1 GB' } } }),
      'spec.containers[0].resources: "1 GB" cannot be a quantity of memory',
    ],
    [
      ofContainer({ resources: { limits: { cpu: -1 } } }),
      'spec.containers[0].resources: "-1" cannot be a quantity of cpu',
    ],
    [
      ofContainer({ resources: { requests: { cpu: 2 }, limits: { cpu: '1500m' } } }),
      'spec.containers[0].resources.requests: cpu is above its limit',
    ],
    [
      ofContainer({ startupProbe: { exec: {}, grpc: {} } }),
      'spec.containers[0].startupProbe: needs exactly one of exec, httpGet, tcpSocket, grpc',
    ],
    [
      ofContainer({ lifecycle: { preStop: {} } }),
      'spec.containers[0].lifecycle.preStop: needs exactly one of exec, httpGet, tcpSocket, sleep',
    ],
  ])('for a container: %j', (faults, fault) => {
    expect(faults).toEqual([fault]);
  });

  it.each([
    [{}, 'operator: must be Exists where there is no key'],
    [{ key: 'a b', operator: 'Exists' }, 'key: "a b" cannot be the key of a taint'],
    [{ key: 'a', operator: 'Exists', value: 'x' }, 'value: must be empty where the operator is Exists'],
    [{ key: 'a', value: 'a b' }, 'value: "a b" cannot be the value of a taint'],
    [{ key: 'a', tolerationSeconds: 5 }, 'effect: must be NoExecute where tolerationSeconds is set'],
  ])('for a toleration: %j', (toleration, fault) => {
    expect(faultsOf({ tolerations: [toleration] })).toEqual([`spec.tolerations[0].${fault}`]);
  });

  const EXPRESSION = 'nodeSelectorTerms[0].matchExpressions[0]';
  const FIELD = 'nodeSelectorTerms[0].matchFields[0]';

  it.each([
    [{ matchExpressions: [{ key: 'a', operator: 'In' }] }, `${EXPRESSION}.values: In needs values`],
    [
      { matchExpressions: [{ key: 'a', operator: 'Exists', values: ['x'] }] },
      `${EXPRESSION}.values: Exists takes no value`,
    ],
    [
      { matchExpressions: [{ key: 'a', operator: 'Gt', values: ['1', '2'] }] },
      `${EXPRESSION}.values: Gt takes one value`,
    ],
    [{ matchExpressions: [{ key: 'a', operator: 'Gt' }] }, `${EXPRESSION}.values: Gt needs one value`],
    [{ matchExpressions: [{ key: 'a', operator: 'Is' }] }, `${EXPRESSION}.operator: "Is" is none`],
    [
      { matchExpressions: [{ key: 'a b', operator: 'Exists' }] },
      `${EXPRESSION}.key: "a b" cannot be the key of a label`,
    ],
    [
      { matchFields: [{ key: 'metadata.uid', operator: 'In', values: ['x'] }] },
      `${FIELD}: needs metadata.name, In or NotIn, and one value`,
    ],
  ])('for a term of the node affinity: %j', (term, fault) => {
    const path = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution';
    expect(ofTerm(term)).toEqual([`${path}.${fault}`]);
  });

  it('for a term of the Pod affinity', () => {
    const path = 'spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]';
    expect(ofSpread({ topologyKey: '' })).toEqual([`${path}.topologyKey: "" cannot be the key of a label`]);
    const labelSelector = { matchLabels: { a: 'b c' }, matchExpressions: [{ key: 'a', operator: 'NotIn' }] };
    expect(ofSpread({ topologyKey: 'zone', labelSelector })).toEqual([
      `${path}.labelSelector.matchLabels["a"]: "b c" cannot be the value of a label`,
      `${path}.labelSelector.matchExpressions[0].values: NotIn needs values`,
    ]);
  });
});

it('a template without a fault has none', () => {
  const spec = {
    containers: [
      {
        ...CONTAINER,
        env: [
          { name: 'A.b-c d', value: '' },
          { name: 'IP', value: '', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
        ],
        ports: [{ containerPort: 80 }, { containerPort: 81, name: 'http' }],
        resources: { requests: { cpu: '500m', memory: 1024 }, limits: { cpu: 0.5 } },
        livenessProbe: { exec: { command: ['true'] }, periodSeconds: 1 },
        volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }],
      },
    ],
    volumes: [{ name: 'tmp' }],
    nodeName: 'vnode.base-1',
    tolerations: [
      { operator: 'Exists' },
      { key: 'a.example.com/b', value: 'c', effect: 'NoExecute', tolerationSeconds: 5 },
      { key: 'a', operator: 'Lt', value: '-5' },
    ],
    topologySpreadConstraints: [{ topologyKey: 'zone', labelSelector: {} }],
    affinity: {
      nodeAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          { preference: { matchExpressions: [{ key: 'a', operator: 'Exists', values: [] }] } },
        ],
      },
    },
  };
  expect(faultsOf(spec)).toEqual([]);
});

describe('labels and annotations', () => {
  it.each(['a', 'A.b_c-1', 'example.com/a', `${'a'.repeat(63)}`])('may have the key %s', (key) => {
    expect(isQualifiedName(key)).toBe(true);
  });

  it.each(['', '/a', 'a/', 'a/b/c', 'A.com/a', 'a b', '-a', 'a'.repeat(64)])('cannot have the key %j', (key) => {
    expect(isQualifiedName(key)).toBe(false);
  });

  it('show what is wrong with a value', () => {
    expect(labelFaultsOf({ a: 'b\u0000' }, 'labels')).toEqual([
      'labels["a"]: "b\\u0000" cannot be the value of a label',
    ]);
    expect(labelFaultsOf({ a: '', b: 'x'.repeat(63) }, 'labels')).toEqual([]);
    expect(labelFaultsOf({ a: 'x'.repeat(64) }, 'labels')).toHaveLength(1);
  });

  it('have values of any kind and 256 KiB together in annotations, and keys in any case', () => {
    expect(annotationFaultsOf({ 'Example.com/a': 'any\u0000thing', b: 'x'.repeat(200_000) }, 'annotations')).toEqual(
      [],
    );
    expect(annotationFaultsOf({ a: 'x'.repeat(270_000) }, 'annotations')).toEqual([
      'annotations: has 270001 bytes, 262144 are allowed',
    ]);
    expect(annotationFaultsOf({ 'a b': '' }, 'annotations')).toEqual([
      'annotations: "a b" cannot be the key of an annotation',
    ]);
  });
});
