import { describe, expect, it } from 'vitest';
import { isSameModulePod, projectModulePod } from '../../../../src/kinds/module-pod.ts';
import { type CachedNode, projectNode } from '../../../../src/kinds/vnode-object.ts';
import {
  type CachedModuleDeployment,
  projectModuleDeployment,
} from '../../../../src/platform/rollout/module-deployment.ts';
import {
  dependsOnNodes,
  isSameDeployment,
  isSameNode,
  keysOfOwned,
  keysOfPod,
} from '../../../../src/platform/rollout/triggers.ts';
import { moduleDeployment, type RolloutManifest } from '../../../support/rollouts.ts';
import { podObject } from './rollout-world.ts';

function deployment(manifest: RolloutManifest = {}, reason?: string): CachedModuleDeployment {
  const { metadata, ...rest } = moduleDeployment(manifest);
  const conditions = reason === undefined ? [] : [{ type: 'Progressing', status: 'True', reason }];
  const object = { ...rest, metadata: { ...metadata, namespace: 'default', generation: 1 }, status: { conditions } };
  return projectModuleDeployment(object as never);
}

function node(ready: 'True' | 'False', labels: Record<string, string> = {}): CachedNode {
  const conditions = [
    { type: 'Ready', status: ready },
    { type: 'BaseReachable', status: 'True' as const },
  ];
  return projectNode({ metadata: { name: 'vnode.a', labels }, status: { conditions } } as never);
}

const POD = projectModulePod(podObject({ revision: 'r1', version: '1' }, 'pod-1'));
const OWNER = {
  apiVersion: 'platform.koupleless.io/v1alpha1',
  kind: 'ModuleDeployment',
  name: 'shop',
  uid: 'u1',
  controller: true,
};

describe('what a ModuleDeployment is looked at for', () => {
  it('is its spec, its deletion and the confirmation of a batch, and not its own status', () => {
    const before = deployment();
    expect(isSameDeployment(before, { ...before, resourceVersion: '8', status: undefined })).toBe(true);
    expect(isSameDeployment(before, { ...before, generation: 2 })).toBe(false);
    expect(isSameDeployment(before, { ...before, isDeleting: true })).toBe(false);
    expect(isSameDeployment(before, { ...before, confirmBatch: '1' })).toBe(false);
  });

  it('is a change of its Pods', () => {
    expect(isSameModulePod(POD, { ...POD, resourceVersion: '8' })).toBe(true);
    expect(isSameModulePod(POD, { ...POD, isReady: true })).toBe(false);
  });

  it('is a Pod that it owns, or one without an owner that fits its selector', () => {
    const all = [deployment(), deployment({ name: 'other' })];
    expect(keysOfPod({ ...POD, namespace: 'default', controller: OWNER as never }, all)).toEqual(['default/shop']);
    expect(
      keysOfPod({ ...POD, namespace: 'default', controller: { ...OWNER, kind: 'ReplicaSet' } as never }, all),
    ).toEqual([]);
    const orphan = { ...POD, namespace: 'default', controller: undefined };
    expect(keysOfPod({ ...orphan, labels: { app: 'shop' } }, all)).toEqual(['default/shop']);
    expect(keysOfPod({ ...orphan, labels: { app: 'third' } }, all)).toEqual([]);
  });

  it('is a revision that it owns', () => {
    expect(keysOfOwned({ namespace: 'default', controller: OWNER as never })).toEqual(['default/shop']);
    expect(keysOfOwned({ namespace: 'default', controller: undefined })).toEqual([]);
  });

  it('is a Node while it depends on Nodes: with a Pod on each base, or until its rollout is complete', () => {
    expect(dependsOnNodes(deployment({}, 'RolloutComplete'))).toBe(false);
    expect(dependsOnNodes(deployment({}, 'PodsNotAvailable'))).toBe(true);
    expect(dependsOnNodes(deployment())).toBe(true);
    expect(dependsOnNodes(deployment({ spec: { peer: true } }, 'RolloutComplete'))).toBe(true);
  });

  it('is a Node that becomes Ready or not, or other Pods fit', () => {
    expect(isSameNode(node('True'), node('True'))).toBe(true);
    expect(isSameNode(node('True'), node('False'))).toBe(false);
    expect(isSameNode(node('True'), node('True', { zone: 'a' }))).toBe(false);
  });
});
