import { describe, expect, it } from 'vitest';
import {
  composedPartOf,
  firstDifference,
  podCountsOf,
} from '../../../../src/platform/catalog/compose/composed-object.ts';

describe('the composed part of an object', () => {
  it('leaves out what others have added, in any order', () => {
    const composed = {
      spec: { containers: [{ name: 'cart', env: [{ name: 'A', value: '1' }] }], tolerations: [{ key: 'x' }] },
    };
    const live = {
      spec: {
        containers: [
          { name: 'sidecar' },
          { name: 'cart', imagePullPolicy: 'Always', env: [{ name: 'B' }, { value: '1', name: 'A' }] },
        ],
        tolerations: [{ key: 'x' }],
        restartPolicy: 'Always',
      },
      status: {},
    };
    expect(composedPartOf(composed, live)).toEqual(composed);
  });

  it('shows what is missing, and lists that are one value as they are', () => {
    const composed = { spec: { args: ['a'], replicas: 1 } };
    expect(composedPartOf(composed, { spec: { args: ['a', 'b'] } })).toEqual({ spec: { args: ['a', 'b'] } });
    expect(composedPartOf(composed, { spec: null })).toEqual({ spec: null });
    expect(composedPartOf({ containers: [{ name: 'a', image: 'x' }] }, { containers: [] })).toEqual({
      containers: [undefined],
    });
  });
});

describe('the first difference', () => {
  it.each([
    [{ a: 1 }, { a: 1 }, undefined],
    [{ a: { b: [{ c: 1 }] } }, { a: { b: [{ c: 2 }] } }, 'a.b[0].c'],
    [{ a: [1] }, { a: [1, 2] }, 'a'],
    [{ a: 1 }, {}, 'a'],
    [{ a: [{ b: 1 }] }, { a: [undefined] }, 'a[0]'],
  ])('of %j and %j is %s', (expected, found, path) => {
    expect(firstDifference(expected, found)).toBe(path);
  });
});

describe('the counts of a workload', () => {
  const objectOf = (spec: object, status: object) =>
    ({ object: { metadata: { name: 'a', generation: 2 }, spec, status } }) as never;

  it('are those of its status', () => {
    const status = { observedGeneration: 2, replicas: 3, readyReplicas: 2, updatedReplicas: 1 };
    const counts = {
      desired: 3,
      replicas: 3,
      ready: 2,
      updated: 1,
      isObserved: true,
      isStalled: false,
      message: undefined,
    };
    expect(podCountsOf('Deployment', objectOf({ replicas: 3 }, status))).toEqual(counts);
  });

  it('of a DaemonSet are those of its Nodes', () => {
    const status = {
      observedGeneration: 1,
      desiredNumberScheduled: 4,
      currentNumberScheduled: 3,
      numberReady: 2,
      updatedNumberScheduled: 1,
    };
    const counts = {
      desired: 4,
      replicas: 3,
      ready: 2,
      updated: 1,
      isObserved: false,
      isStalled: false,
      message: undefined,
    };
    expect(podCountsOf('DaemonSet', objectOf({}, status))).toEqual(counts);
  });

  it('say what holds it up', () => {
    const conditions = [
      { type: 'Available', status: 'False', message: 'no' },
      { type: 'Progressing', status: 'False', message: 'deadline' },
    ];
    expect(podCountsOf('ModuleDeployment', objectOf({}, { conditions }))).toMatchObject({
      isStalled: true,
      message: 'deadline',
    });
    const waits = [{ type: 'Ready', status: 'False', message: 'base-1 is silent' }];
    expect(podCountsOf('ModuleDeployment', objectOf({}, { conditions: waits }))).toMatchObject({
      isStalled: false,
      message: 'base-1 is silent',
    });
  });
});
