import { describe, expect, it } from 'vitest';
import { projectModulePod } from '../../../src/kinds/module-pod.ts';
import type { ContainerState, PodObject, PodStatus } from '../../../src/kube/objects.ts';
import { makePodObject } from '../../support/builders.ts';

function waitingIn(status: PodStatus): string | undefined {
  return projectModulePod({ ...makePodObject(), status } as PodObject).waiting;
}

const statusWith = (...states: ContainerState[]): PodStatus => ({
  containerStatuses: states.map((state, index) => ({ name: `c${index}`, state }) as never),
});

describe('why a Pod does not run', () => {
  it('is what its first container waits for', () => {
    const missing = { waiting: { reason: 'ErrImagePull', message: 'no such jar' } };
    expect(waitingIn(statusWith({ running: {} }, missing))).toBe('ErrImagePull: no such jar');
    expect(waitingIn(statusWith({ waiting: { reason: 'BackOff' } }))).toBe('BackOff');
  });

  it('is nothing while it runs, or its install is in work', () => {
    expect(waitingIn(statusWith({ running: {} }))).toBeUndefined();
    expect(waitingIn(statusWith({ waiting: { reason: 'ContainerCreating', message: 'installing' } }))).toBeUndefined();
    expect(waitingIn({ conditions: [{ type: 'PodScheduled', status: 'True' }] })).toBeUndefined();
    expect(waitingIn({})).toBeUndefined();
  });

  it('is what the scheduler says while it has no base', () => {
    const message = '0/5 nodes are available';
    const conditions = [{ type: 'PodScheduled', status: 'False' as const, reason: 'Unschedulable', message }];
    expect(waitingIn({ conditions })).toBe('Unschedulable: 0/5 nodes are available');
  });

  it('is 256 characters long at most', () => {
    const found = waitingIn(statusWith({ waiting: { reason: 'ErrImagePull', message: 'x'.repeat(5_000) } }));
    expect(found?.length).toBeLessThanOrEqual(256);
  });
});
