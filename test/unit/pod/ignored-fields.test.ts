import { expect, it } from 'vitest';
import type { PodObject } from '../../../src/kube/objects.ts';
import { projectPod } from '../../../src/pod/vpod.ts';
import { makePodObject } from '../../support/builders.ts';

type Container = PodObject['spec']['containers'][number];

const probe = { httpGet: { path: '/', port: 8080 } };

function ignoredIn(more: Partial<Container>, spec: Partial<PodObject['spec']> = {}): string | undefined {
  const pod = makePodObject({ uid: 'u1' });
  const containers = pod.spec.containers.map((container) => ({ ...container, ...more }));
  return projectPod({ ...pod, spec: { ...pod.spec, containers, ...spec } } as PodObject).ignored?.fields;
}

it.each([
  ['livenessProbe of container biz1', { livenessProbe: probe }],
  ['readinessProbe of container biz1', { readinessProbe: probe }],
  ['livenessProbe, startupProbe of container biz1', { startupProbe: probe, livenessProbe: probe }],
  ['postStart of container biz1', { lifecycle: { postStart: { exec: { command: ['sh'] } } } }],
  ['preStop of container biz1', { lifecycle: { preStop: { exec: { command: ['sh'] } } as never } }],
  ['command of container biz1', { command: ['java'] }],
])('a base cannot act on %s', (fields, more) => {
  expect(ignoredIn(more)).toBe(fields);
});

it('what a base does act on is not among them', () => {
  expect(ignoredIn({ lifecycle: { preStop: { sleep: { seconds: 5 } } }, args: ['-x'] })).toBeUndefined();
});

it('init containers stand beside those of all containers', () => {
  expect(ignoredIn({ livenessProbe: probe }, { initContainers: [{}] })).toBe(
    'livenessProbe of container biz1; initContainers',
  );
});

it('Pods of one controller are told apart from others by its UID, and not by those of other owners', () => {
  const { metadata, spec } = makePodObject({ uid: 'u1' });
  const containers = spec.containers.map((container) => ({ ...container, livenessProbe: probe }));
  const ownerOf = (ownerReferences: PodObject['metadata']['ownerReferences']): string | undefined =>
    projectPod({ metadata: { ...metadata, ownerReferences }, spec: { ...spec, containers } } as PodObject).ignored
      ?.ownerUid;
  const reference = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'r' };
  expect(
    ownerOf([
      { ...reference, uid: 'other' },
      { ...reference, uid: 'rs', controller: true },
    ]),
  ).toBe('rs');
  expect(ownerOf([{ ...reference, uid: 'other' }])).toBe('u1');
});
