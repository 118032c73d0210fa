import { expect } from 'vitest';
import type { ControlPlane } from '../../samples/control-plane/control-plane.ts';
import type { PodObject } from '../../src/kube/objects.ts';
import { eventually } from './eventually.ts';
import type { modulePod } from './manifests.ts';
import { findPod, isReady } from './observe.ts';
import { podPath } from './world.ts';

type Admin = ControlPlane['admin'];

export async function createPod(admin: Admin, pod: ReturnType<typeof modulePod>): Promise<void> {
  await admin.post('/api/v1/namespaces/default/pods', pod);
}

/** Resolves when the Pod is Ready. */
export function readyPod(admin: Admin, name: string, timeoutMs?: number): Promise<PodObject> {
  return eventually(async () => {
    const pod = await findPod(admin, name);
    expect(pod?.status).toSatisfy(() => isReady(pod));
    return pod as PodObject;
  }, timeoutMs);
}

/** Deletes the Pod as `kubectl delete` does, and waits until it is gone. */
export async function removePod(admin: Admin, name: string): Promise<void> {
  await admin.delete(podPath(name));
  await eventually(async () => expect(await findPod(admin, name)).toBeUndefined());
}

/** Pods tell their age in whole seconds; no user updates what he has created within the same one. */
export async function nextSecond(): Promise<void> {
  const from = Date.now();
  await eventually(() => expect(Date.now() - from).toBeGreaterThan(1_000));
}
