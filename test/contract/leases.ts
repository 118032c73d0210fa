import { describe, expect, it } from 'vitest';
import type { LeaseClient } from '../../src/kube/lease-client.ts';
import type { LeaseObject } from '../../src/kube/objects.ts';
import { isAlreadyExists, isConflict, isInvalidUid, isNotFound } from '../../src/kube/transport/api-error.ts';

export const LEASE_NAMESPACE = 'default';

/** What the API server does with Leases, as far as a leader relies on it. `client`: of `LEASE_NAMESPACE`. */
export function describeLeases(name: string, client: () => LeaseClient): void {
  let count = 0;

  const leaseOf = (leaseName: string): LeaseObject => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: leaseName, namespace: LEASE_NAMESPACE },
    spec: { holderIdentity: 'a', leaseDurationSeconds: 15, leaseTransitions: 2 },
  });

  /** A new Lease with a name of its own. */
  const created = (): Promise<LeaseObject> => client().create(leaseOf(`contract-${count++}`));

  const failureOf = (call: Promise<unknown>): Promise<unknown> =>
    call.then(
      () => undefined,
      (error: unknown) => error,
    );

  describe(`Leases of ${name}`, () => {
    it('get a UID and a version when they are created', async () => {
      const { metadata } = await created();
      expect(metadata.uid).toMatch(/./);
      expect(metadata.resourceVersion).toMatch(/^\d+$/);
      expect(await client().get(metadata.name)).toMatchObject({ metadata, spec: { holderIdentity: 'a' } });
    });

    it('are not found when there is none, by a read or a write', async () => {
      expect(isNotFound(await failureOf(client().get('missing')))).toBe(true);
      expect(isNotFound(await failureOf(client().patch('missing', { spec: { holderIdentity: 'b' } })))).toBe(true);
      expect(isNotFound(await failureOf(client().delete('missing', 'uid')))).toBe(true);
    });

    it('are created once', async () => {
      const { metadata } = await created();
      expect(isAlreadyExists(await failureOf(client().create(leaseOf(metadata.name))))).toBe(true);
    });

    it('keep what a patch does not name, and get a greater version', async () => {
      const { metadata } = await created();
      const { name: leaseName, resourceVersion } = metadata;
      const patched = await client().patch(leaseName, { metadata: { resourceVersion }, spec: { holderIdentity: 'b' } });
      expect(patched.spec).toMatchObject({ holderIdentity: 'b', leaseDurationSeconds: 15, leaseTransitions: 2 });
      expect(Number(patched.metadata.resourceVersion)).toBeGreaterThan(Number(resourceVersion));
      expect(patched.metadata.uid).toBe(metadata.uid);
    });

    it('keep their version when a patch changes nothing', async () => {
      const { metadata } = await created();
      const patched = await client().patch(metadata.name, { spec: { holderIdentity: 'a' } });
      expect(patched.metadata.resourceVersion).toBe(metadata.resourceVersion);
    });

    it('are patched in one version only when the patch names it', async () => {
      const { metadata } = await created();
      const { name: leaseName, resourceVersion } = metadata;
      await client().patch(leaseName, { spec: { holderIdentity: 'b' } });
      const stale = { metadata: { resourceVersion }, spec: { holderIdentity: 'c' } };
      expect(isConflict(await failureOf(client().patch(leaseName, stale)))).toBe(true);
      expect((await client().get(leaseName)).spec).toMatchObject({ holderIdentity: 'b' });
    });

    it('are patched in one incarnation only when the patch names it', async () => {
      const { metadata } = await created();
      const { name: leaseName, resourceVersion } = metadata;
      const other = { metadata: { uid: 'another', resourceVersion }, spec: { holderIdentity: 'c' } };
      const error = await failureOf(client().patch(leaseName, other));
      expect(isInvalidUid(error) || isConflict(error)).toBe(true);
      expect((await client().get(leaseName)).spec).toMatchObject({ holderIdentity: 'a' });
    });

    it('are deleted in one incarnation and one version', async () => {
      const { metadata } = await created();
      const { name: leaseName, uid = '', resourceVersion = '' } = metadata;
      const patched = await client().patch(leaseName, { spec: { holderIdentity: 'b' } });
      expect(isConflict(await failureOf(client().delete(leaseName, 'another')))).toBe(true);
      expect(isConflict(await failureOf(client().delete(leaseName, uid, resourceVersion)))).toBe(true);
      await client().delete(leaseName, uid, patched.metadata.resourceVersion);
      expect(isNotFound(await failureOf(client().get(leaseName)))).toBe(true);
    });

    it('have another UID when they are created again', async () => {
      const { metadata } = await created();
      const { name: leaseName, uid = '' } = metadata;
      await client().delete(leaseName, uid);
      const again = await client().create(leaseOf(leaseName));
      expect(again.metadata.uid).not.toBe(uid);
    });
  });
}
