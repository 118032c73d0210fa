import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { ApiError, type KubeObject } from '../../samples/control-plane/api-client.ts';
import { messageOf } from '../../src/errors.ts';
import { BorrowedControlPlane } from '../support/control-planes/loans.ts';
import { Pristine } from '../support/control-planes/pristine.ts';
import { eventually } from '../support/eventually.ts';
import { modulePod, moduleWorkload } from '../support/manifests.ts';

const DEFAULT = '/api/v1/namespaces/default';
const CLUSTER_ROLE = '/apis/rbac.authorization.k8s.io/v1/clusterroles/module-controller';
const FLOW_SCHEMA = '/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/global-default';
const THINGS = '/apis/example.com/v1/namespaces/tenant/things';
/** No controller knows it: what has it stays until somebody takes it off. */
const finalizers = ['example.com/never'];

const TENANT = `
apiVersion: v1
kind: Namespace
metadata: { name: tenant }
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: things.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { kind: Thing, plural: things }
  versions:
    - name: v1
      served: true
      storage: true
      schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } }
`;

/** Refuses changes of the ConfigMap `probe` where there is a Deployment of that name. */
const POLICY = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: { name: about-deployments }
spec:
  paramKind: { apiVersion: apps/v1, kind: Deployment }
  matchConstraints:
    resourceRules:
      - { apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE] }
  validations:
    - expression: params.metadata.name != object.metadata.name
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: { name: about-deployments }
spec:
  policyName: about-deployments
  paramRef: { selector: {}, parameterNotFoundAction: Allow }
  validationActions: [Deny]
`;

let controlPlane: BorrowedControlPlane;

beforeAll(async () => {
  controlPlane = await BorrowedControlPlane.at(inject('controlPlanes'));
});

afterAll(() => controlPlane?.stop());

async function statusOf(path: string): Promise<number> {
  try {
    await controlPlane.admin.get(path);
    return 200;
  } catch (error) {
    if (error instanceof ApiError) return error.statusCode;
    throw error;
  }
}

async function rulesOf(path: string): Promise<KubeObject> {
  const { rules, spec } = await controlPlane.admin.get(path);
  return rules ?? spec;
}

describe('a control plane for the next file', () => {
  it('has nothing more and nothing less than before, whatever was done to it', async () => {
    const { admin } = controlPlane;
    const pristine = await Pristine.of(admin);
    const before = await Promise.all([CLUSTER_ROLE, FLOW_SCHEMA].map(rulesOf));

    await controlPlane.apply(TENANT);
    const stuck = {
      apiVersion: 'example.com/v1',
      kind: 'Thing',
      metadata: { name: 'stuck', namespace: 'tenant', finalizers },
    };
    await controlPlane.apply(stuck);
    await controlPlane.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'vnode.left', finalizers } });
    await controlPlane.apply(moduleWorkload('many', [{ name: 'many' }], { replicas: 12 }));
    await controlPlane.apply([modulePod('bound', [{ name: 'bound' }], { nodeName: 'vnode.left' })]);
    await eventually(async () => expect(await admin.list(`${DEFAULT}/pods`)).toHaveLength(13));
    await admin.delete(`${DEFAULT}/pods/bound`, { gracePeriodSeconds: 30 });
    await admin.delete('/api/v1/namespaces/koupleless-system');
    await admin.mergePatch(CLUSTER_ROLE, { rules: [] });
    await admin.mergePatch(FLOW_SCHEMA, { spec: { matchingPrecedence: 9_000 } });

    await pristine.restore();
    expect(await admin.list('/api/v1/pods')).toEqual([]);
    expect(await admin.list('/api/v1/nodes')).toEqual([]);
    expect(await admin.list('/apis/apps/v1/replicasets')).toEqual([]);
    expect(await statusOf(`${THINGS}/stuck`)).toBe(404);
    expect(await statusOf('/api/v1/namespaces/tenant')).toBe(404);
    expect(await statusOf('/api/v1/namespaces/koupleless-system/serviceaccounts/module-controller')).toBe(200);
    expect(await Promise.all([CLUSTER_ROLE, FLOW_SCHEMA].map(rulesOf))).toEqual(before);
  });

  it('has policies that know the Deployments of the next file, not those of the former one', async () => {
    const { admin } = controlPlane;
    const pristine = await Pristine.of(admin);
    const probe = (name: string): Promise<string> =>
      admin.post(`${DEFAULT}/configmaps?dryRun=All`, { metadata: { name } }).then(() => 'accepted', messageOf);
    for (const name of ['first', 'second']) {
      await controlPlane.apply(moduleWorkload(name, [{ name }], { replicas: 0 }));
      await controlPlane.apply(POLICY);
      await eventually(async () => expect(await probe(name)).toContain("'about-deployments'"));
      await pristine.restore();
      await eventually(async () => expect(await probe(name)).toBe('accepted'));
    }
  });

  it('is lent to one at a time', async () => {
    const other = await BorrowedControlPlane.at(inject('controlPlanes'));
    expect(other.server).not.toBe(controlPlane.server);
    await other.stop();
  });
});
